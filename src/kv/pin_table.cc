#include "kv/pin_table.h"

#include <algorithm>

#include "base/check.h"
#include "kv/kv_manager.h"

namespace cachalot::kv {

PinTable::PinTable(KvManager& kv, SlotBudget& budget, uint32_t most_slots)
    : kv_(kv),
      budget_(budget),
      most_slots_(most_slots),
      full_groups_(std::max(1u, static_cast<uint32_t>(std::ranges::count(kv.geometry().windows, 0u)))),
      holders_(kv.geometry().slots, 0) {}

PinTable::~PinTable() { EndAll(); }

uint64_t PinTable::Pin(const PrefixScope& scope, std::span<const TokenId> tokens, Nanos deadline) {
  return Pin(scope, tokens, Wish{deadline, 0}).tokens;
}

PinTable::Standing PinTable::Stand(const PrefixScope& scope, std::span<const TokenId> tokens) {
  return Pin(scope, tokens, Wish{Nanos(0), 1});
}

void PinTable::LetGo(const Standing& standing) {
  Held& held = pins_.at(standing.last_slot);
  if (--held.standing == 0) by_deadline_.insert({held.deadline, standing.last_slot});
}

PinTable::Standing PinTable::Pin(const PrefixScope& scope, std::span<const TokenId> tokens, const Wish& wish) {
  constexpr int kTries = 8;  // of ever shorter prefixes
  uint64_t limit = most_slots_ == 0 ? 0 : tokens.size();
  for (int tries = 0; tries < kTries && limit >= kv_.geometry().block_tokens; ++tries) {
    const SequenceId sequence = kv_.Hold(scope, tokens, limit);
    const uint64_t held = kv_.Length(sequence);
    const LastSlot last = LastSlotOf(sequence);
    if (Extend(sequence, wish) || Keep(sequence, wish)) return {last, held};
    const uint32_t excess = Excess(sequence);
    kv_.Free(sequence);
    if (excess == 0) break;  // the room is there, but promised
    const uint64_t fewer = (excess + full_groups_ - 1) / full_groups_ * kv_.geometry().block_tokens;
    limit = held - std::min(held, fewer);
  }
  return {};
}

// Where a pin ends with the same block, that one goes on, and the sequence is freed.
bool PinTable::Extend(SequenceId sequence, const Wish& wish) {
  const LastSlot last = LastSlotOf(sequence);
  if (!pins_.contains(last)) return false;
  kv_.Free(sequence);
  Add(last, wish);
  return true;
}

void PinTable::Add(LastSlot last, const Wish& wish) {
  Held& held = pins_.at(last);
  by_deadline_.erase({held.deadline, last});
  held.deadline = std::max(held.deadline, wish.deadline);
  held.standing += wish.standing;
  if (held.standing == 0) by_deadline_.insert({held.deadline, last});
}

// Takes the sequence as a new pin, if there is room.
bool PinTable::Keep(SequenceId sequence, const Wish& wish) {
  const uint32_t windows = WindowSlots(sequence);
  if (kv_.Length(sequence) == 0 || Excess(sequence) > 0) return false;
  Result<SlotPromise> promise = budget_.Promise(windows, kv_.full_slots_in_use());
  if (!promise.ok() || budget_.promised() + kv_.full_slots_in_use() > budget_.total()) return false;
  Count(sequence, 1);
  window_slots_ += windows;
  const LastSlot last = LastSlotOf(sequence);
  pins_.emplace(last, Held{.sequence = sequence, .windows = std::move(promise).value()});
  Add(last, wish);
  return true;
}

// Slots that it would take beyond the budget.
uint32_t PinTable::Excess(SequenceId sequence) const {
  const uint32_t needed = NewFullSlots(sequence) + WindowSlots(sequence);
  return needed - std::min(needed, most_slots_ - slots());
}

// Of the first layer group that holds any.
PinTable::LastSlot PinTable::LastSlotOf(SequenceId sequence) const {
  for (uint32_t group = 0; group < kv_.geometry().windows.size(); ++group) {
    const PageTableRef pages = kv_.Pages(sequence, group);
    if (pages.slot_count > 0) return pages.slots[pages.slot_count - 1];
  }
  return kNoSlot;
}

uint32_t PinTable::EndDue(Nanos now, uint32_t limit) {
  uint32_t ended = 0;
  while (ended < limit && !by_deadline_.empty() && by_deadline_.begin()->first <= now) {
    End(by_deadline_.begin()->second);
    ++ended;
  }
  return ended;
}

void PinTable::EndAll() {
  while (!pins_.empty()) End(pins_.begin()->first);
}

std::optional<Nanos> PinTable::NextDeadline() const {
  if (by_deadline_.empty()) return std::nullopt;
  return by_deadline_.begin()->first;
}

void PinTable::End(LastSlot last) {
  auto pin = pins_.extract(last);
  by_deadline_.erase({pin.mapped().deadline, last});
  window_slots_ -= static_cast<uint32_t>(pin.mapped().windows.slots());
  Count(pin.mapped().sequence, -1);
  kv_.Free(pin.mapped().sequence);
}

uint32_t PinTable::NewFullSlots(SequenceId sequence) const {
  uint32_t fresh = 0;
  for (uint32_t group = 0; group < kv_.geometry().windows.size(); ++group) {
    if (kv_.geometry().windows[group] != 0) continue;
    const PageTableRef pages = kv_.Pages(sequence, group);
    fresh += static_cast<uint32_t>(
        std::count_if(pages.slots, pages.slots + pages.slot_count, [&](uint32_t slot) { return holders_[slot] == 0; }));
  }
  return fresh;
}

uint32_t PinTable::WindowSlots(SequenceId sequence) const {
  uint32_t held = 0;
  for (uint32_t group = 0; group < kv_.geometry().windows.size(); ++group) {
    if (kv_.geometry().windows[group] != 0) held += kv_.Pages(sequence, group).slot_count;
  }
  return held;
}

// The sequence begins (+1) or ceases (-1) to hold its slots of full attention for a pin.
void PinTable::Count(SequenceId sequence, int change) {
  for (uint32_t group = 0; group < kv_.geometry().windows.size(); ++group) {
    if (kv_.geometry().windows[group] != 0) continue;
    const PageTableRef pages = kv_.Pages(sequence, group);
    for (uint32_t i = 0; i < pages.slot_count; ++i) {
      uint32_t& holders = holders_[pages.slots[i]];
      if (change > 0 && holders++ == 0) ++full_slots_;
      if (change < 0 && --holders == 0) --full_slots_;
    }
  }
}

}  // namespace cachalot::kv
