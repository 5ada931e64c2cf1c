// SlotTransfers knows which slots have bytes on their way, and holds back those that are given up meanwhile.
// Threads:   owned by the engine thread.
// Ownership: none; whoever starts a copy ends it here, a cancelled or failed one too, once it touches nothing any more.
// Invariant: a slot is free only when it was released and no copy out of it or into it runs. Copies go out of sealed
//            slots alone, whose bytes no longer change; a loading slot has one copy in and none out.
// Cost:      O(1) per call, no allocation after construction.
//
//            Compute                  Seal
//   free ───────────────► computing ────────► sealed ◄──► copies out
//     │  Load              ▲ EndIn(kLost)       ▲
//     └───────► loading ───┴────────────────────┘ EndIn(kArrived)
//
// Release leads back to free from everywhere: at once, or when the last copy ends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"

namespace cachalot::kv {

enum class SlotState : uint8_t { kFree, kComputing, kLoading, kSealed };
enum class CopyInEnd : uint8_t { kArrived, kLost };
// What a call meant for a slot that nobody refers to any more.
enum class SlotFate : uint8_t { kStays, kFreed };

class SlotTransfers {
 public:
  struct Slot {
    SlotState state = SlotState::kFree;
    bool released = false;    // nobody refers to it; copies hold it
    uint32_t copies_out = 0;  // a loading slot has one copy in, any other none
    bool operator==(const Slot&) const = default;
  };

  explicit SlotTransfers(uint32_t slots) : slots_(slots) {}

  // Require that the slot is free.
  void Compute(SlotId slot);
  void Load(SlotId slot);
  // Its last position is written, or its sequence ended. Requires that it is computing.
  void Seal(SlotId slot);
  // The copy in is over. Lost bytes are to be computed. Requires that the slot is loading.
  [[nodiscard]] SlotFate EndIn(SlotId slot, CopyInEnd end);

  // Requires that the slot is sealed and not released.
  void BeginOut(SlotId slot);
  [[nodiscard]] SlotFate EndOut(SlotId slot);

  // The last reference and the index entry are gone. kStays: the call that ends the last copy frees it. Requires that
  // the slot is neither free nor released.
  [[nodiscard]] SlotFate Release(SlotId slot);

  const Slot& slot(SlotId slot) const { return slots_.at(slot.value); }
  std::span<const Slot> slots() const { return slots_; }
  uint32_t copying() const { return copying_; }    // slots with a copy out or in
  uint32_t deferred() const { return deferred_; }  // of them: released, so that they come free without an eviction

 private:
  Slot& At(SlotId slot) { return slots_.at(slot.value); }
  SlotFate FreeIfDue(Slot& slot);

  std::vector<Slot> slots_;
  uint32_t copying_ = 0;
  uint32_t deferred_ = 0;
};

// One line per broken invariant; empty when all hold. `free_list` and `references`, by slot, are the pool's: exactly
// the slots that are free here are on its list, and none that is released here has references.
std::vector<std::string> Violations(const SlotTransfers& transfers, std::span<const SlotId> free_list,
                                    std::span<const uint32_t> references);

}  // namespace cachalot::kv
