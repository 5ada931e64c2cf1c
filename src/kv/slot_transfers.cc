#include "kv/slot_transfers.h"

#include <fmt/format.h>

#include "base/check.h"

namespace cachalot::kv {

void SlotTransfers::Take(SlotId slot) {
  CACHALOT_CHECK(At(slot).state == SlotState::kFree);
  At(slot).state = SlotState::kComputing;
}

void SlotTransfers::Seal(SlotId slot) {
  CACHALOT_CHECK(At(slot).state == SlotState::kComputing);
  At(slot).state = SlotState::kSealed;
}

void SlotTransfers::BeginIn(SlotId slot) {
  Slot& to = At(slot);
  CACHALOT_CHECK((to.state == SlotState::kComputing || to.state == SlotState::kLoading) && !to.released);
  to.state = SlotState::kLoading;
  Begin(to);
}

SlotFate SlotTransfers::EndIn(SlotId slot) {
  Slot& to = At(slot);
  CACHALOT_CHECK(to.state == SlotState::kLoading);
  if (to.copies == 1) to.state = SlotState::kComputing;
  return End(to);
}

void SlotTransfers::BeginOut(SlotId slot) {
  Slot& from = At(slot);
  CACHALOT_CHECK(from.state == SlotState::kSealed && !from.released);
  if (from.copies == 0) ++leaving_;
  Begin(from);
}

SlotFate SlotTransfers::EndOut(SlotId slot) {
  Slot& from = At(slot);
  CACHALOT_CHECK(from.state == SlotState::kSealed && from.copies > 0);
  if (from.copies == 1 && !from.released) --leaving_;
  return End(from);
}

void SlotTransfers::Begin(Slot& slot) {
  if (++slot.copies == 1) ++copying_;
}

SlotFate SlotTransfers::End(Slot& slot) {
  if (--slot.copies > 0) return SlotFate::kStays;
  --copying_;
  return FreeIfDue(slot);
}

SlotFate SlotTransfers::Release(SlotId slot) {
  Slot& given_up = At(slot);
  CACHALOT_CHECK(given_up.state != SlotState::kFree && !given_up.released);
  given_up.released = true;
  ++deferred_;
  if (given_up.state == SlotState::kSealed && given_up.copies > 0) --leaving_;
  return given_up.copies > 0 ? SlotFate::kStays : FreeIfDue(given_up);
}

void SlotTransfers::TakeBack(SlotId slot) {
  Slot& given_up = At(slot);
  CACHALOT_CHECK(given_up.released && given_up.state == SlotState::kSealed && given_up.copies > 0);
  given_up.released = false;
  --deferred_;
  ++leaving_;
}

SlotFate SlotTransfers::FreeIfDue(Slot& slot) {
  if (!slot.released) return SlotFate::kStays;
  slot = Slot();
  --deferred_;
  return SlotFate::kFreed;
}

std::vector<std::string> Violations(const SlotTransfers& transfers, std::span<const SlotId> free_list,
                                    std::span<const uint32_t> references) {
  std::vector<std::string> out;
  const std::span<const SlotTransfers::Slot> slots = transfers.slots();
  std::vector<bool> listed(slots.size(), false);
  for (const SlotId slot : free_list) {
    if (slot.value < slots.size()) listed[slot.value] = true;
  }
  uint32_t copying = 0;
  uint32_t deferred = 0;
  uint32_t leaving = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    const SlotTransfers::Slot& slot = slots[i];
    copying += slot.copies > 0;
    deferred += slot.released;
    leaving += slot.copies > 0 && slot.state == SlotState::kSealed && !slot.released;
    if (slot.copies > 0 && slot.state != SlotState::kSealed && slot.state != SlotState::kLoading) {
      out.push_back(fmt::format("slot {}: {} copies, yet it is neither sealed nor loading", i, slot.copies));
    }
    if (slot.released && slot.copies == 0) out.push_back(fmt::format("slot {}: released and held by nothing", i));
    if (slot.released && references[i] > 0) {
      out.push_back(fmt::format("slot {}: released, yet the pool counts {} references", i, references[i]));
    }
    if (listed[i] != (slot.state == SlotState::kFree)) {
      out.push_back(fmt::format("slot {}: {} the pool's free list, {} here", i, listed[i] ? "on" : "not on",
                                slot.state == SlotState::kFree ? "free" : "not free"));
    }
  }
  if (copying != transfers.copying()) {
    out.push_back(fmt::format("{} slots copy, counted {}", copying, transfers.copying()));
  }
  if (deferred != transfers.deferred()) {
    out.push_back(fmt::format("{} slots are released, counted {}", deferred, transfers.deferred()));
  }
  if (leaving != transfers.leaving()) {
    out.push_back(fmt::format("{} slots leave, counted {}", leaving, transfers.leaving()));
  }
  return out;
}

}  // namespace cachalot::kv
