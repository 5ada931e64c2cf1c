// SlotTransfers knows which slots have bytes on their way, and holds back those that are given up meanwhile.
// Threads:   owned by the engine thread.
// Ownership: none; whoever starts a copy ends it here, a cancelled or failed one too, once it touches nothing any more.
// Invariant: a slot is free only when it was released and no copy out of it or into it runs. Copies go out of sealed
//            slots alone, whose bytes no longer change, and into those that nobody has sealed yet.
// Cost:      O(1) per call, no allocation after construction.
//
//            Take              Seal
//   free ──────────► computing ─────► sealed ◄──► copies out
//             BeginIn │  ▲ last EndIn
//                     ▼  │
//                   loading
//
// Release leads back to free from everywhere: at once, or when the last copy ends; until then it can be taken back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"

namespace cachalot::kv {

enum class SlotState : uint8_t { kFree, kComputing, kLoading, kSealed };
// What a call meant for a slot that nobody refers to any more.
enum class SlotFate : uint8_t { kStays, kFreed };

class SlotTransfers {
 public:
  struct Slot {
    SlotState state = SlotState::kFree;
    bool released = false;  // nobody refers to it; copies hold it
    uint32_t copies = 0;    // into a loading slot, out of a sealed one; any other has none
    bool operator==(const Slot&) const = default;
  };

  explicit SlotTransfers(uint32_t slots) : slots_(slots) {}

  // Requires that the slot is free.
  void Take(SlotId slot);
  // What it holds changes no more. Requires that it is computing.
  void Seal(SlotId slot);

  // Requires that the slot is computing or loading, and not released.
  void BeginIn(SlotId slot);
  [[nodiscard]] SlotFate EndIn(SlotId slot);
  // Requires that the slot is sealed and not released.
  void BeginOut(SlotId slot);
  [[nodiscard]] SlotFate EndOut(SlotId slot);

  // Somebody refers to it again: it goes on as if it had not been released. Requires that it is, and that a copy out of
  // it still runs.
  void TakeBack(SlotId slot);

  // The last reference and the index entry are gone. kStays: the call that ends the last copy frees it. Requires that
  // the slot is neither free nor released.
  [[nodiscard]] SlotFate Release(SlotId slot);

  const Slot& slot(SlotId slot) const { return slots_.at(slot.value); }
  std::span<const Slot> slots() const { return slots_; }
  uint32_t copying() const { return copying_; }    // slots with a copy out or in
  uint32_t deferred() const { return deferred_; }  // of them: released, so that they come free without an eviction
  uint32_t leaving() const { return leaving_; }    // of them: with a copy out, and not released yet

 private:
  Slot& At(SlotId slot) { return slots_.at(slot.value); }
  void Begin(Slot& slot);
  SlotFate End(Slot& slot);
  SlotFate FreeIfDue(Slot& slot);

  std::vector<Slot> slots_;
  uint32_t copying_ = 0;
  uint32_t deferred_ = 0;
  uint32_t leaving_ = 0;
};

// One line per broken invariant; empty when all hold. `free_list` and `references`, by slot, are the pool's: exactly
// the slots that are free here are on its list, and none that is released here has references.
std::vector<std::string> Violations(const SlotTransfers& transfers, std::span<const SlotId> free_list,
                                    std::span<const uint32_t> references);

}  // namespace cachalot::kv
