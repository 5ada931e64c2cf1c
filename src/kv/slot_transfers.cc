#include "kv/slot_transfers.h"

#include <fmt/format.h>

#include "base/check.h"

namespace cachalot::kv {
namespace {

bool Copies(const SlotTransfers::Slot& slot) { return slot.state == SlotState::kLoading || slot.copies_out > 0; }

}  // namespace

void SlotTransfers::Compute(SlotId slot) {
  CACHALOT_CHECK(At(slot).state == SlotState::kFree);
  At(slot).state = SlotState::kComputing;
}

void SlotTransfers::Load(SlotId slot) {
  CACHALOT_CHECK(At(slot).state == SlotState::kFree);
  At(slot).state = SlotState::kLoading;
  ++copying_;
}

void SlotTransfers::Seal(SlotId slot) {
  CACHALOT_CHECK(At(slot).state == SlotState::kComputing);
  At(slot).state = SlotState::kSealed;
}

SlotFate SlotTransfers::EndIn(SlotId slot, CopyInEnd end) {
  CACHALOT_CHECK(At(slot).state == SlotState::kLoading);
  At(slot).state = end == CopyInEnd::kArrived ? SlotState::kSealed : SlotState::kComputing;
  --copying_;
  return FreeIfDue(At(slot));
}

void SlotTransfers::BeginOut(SlotId slot) {
  Slot& from = At(slot);
  CACHALOT_CHECK(from.state == SlotState::kSealed && !from.released);
  if (++from.copies_out == 1) ++copying_;
}

SlotFate SlotTransfers::EndOut(SlotId slot) {
  Slot& from = At(slot);
  CACHALOT_CHECK(from.copies_out > 0);
  if (--from.copies_out > 0) return SlotFate::kStays;
  --copying_;
  return FreeIfDue(from);
}

SlotFate SlotTransfers::Release(SlotId slot) {
  Slot& given_up = At(slot);
  CACHALOT_CHECK(given_up.state != SlotState::kFree && !given_up.released);
  given_up.released = true;
  ++deferred_;
  return Copies(given_up) ? SlotFate::kStays : FreeIfDue(given_up);
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
  for (const SlotId slot : free_list) listed.at(slot.value) = true;
  uint32_t copying = 0;
  uint32_t deferred = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    const SlotTransfers::Slot& slot = slots[i];
    copying += Copies(slot);
    deferred += slot.released;
    if (slot.copies_out > 0 && slot.state != SlotState::kSealed) {
      out.push_back(fmt::format("slot {}: {} copies out, yet it is not sealed", i, slot.copies_out));
    }
    if (slot.released && !Copies(slot)) out.push_back(fmt::format("slot {}: released and held by nothing", i));
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
  return out;
}

}  // namespace cachalot::kv
