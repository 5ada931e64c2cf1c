// KvManager gives sequences their blocks: page tables, growth, forks with copy-on-write, sliding windows. Arithmetic
// only: it never sees a tensor.
// Threads:   owned by the engine thread; no method may be called from another.
// Ownership: owns the slot pool and every page table. A StepReservation must end before the manager does.
// Invariant: free + reserved + referenced slots == all slots; a slot's reference count is the number of page-table
//            entries that name it; a block that two sequences share is never written.
// Cost:      O(blocks touched); no heap allocation per block in steady state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/block_copy.h"
#include "base/ids.h"
#include "base/page_view.h"
#include "base/status.h"
#include "kv/geometry.h"

namespace cachalot::kv {

struct KvSnapshot;
class KvManager;

// Growth of one sequence in one step.
struct Growth {
  SequenceId sequence;
  uint32_t tokens = 0;
};

// The blocks of one step: page tables already show them, so that the step can run. Commit makes the growth last;
// destruction without Commit puts every page table back as it was.
class StepReservation {
 public:
  StepReservation(StepReservation&& other) noexcept;
  StepReservation& operator=(StepReservation&&) = delete;
  ~StepReservation();

  // Copies that must be done before the step runs (copy-on-write of shared, unfilled tails).
  std::span<const BlockCopy> copies() const;
  // Lengths grow; blocks that left their window are released.
  void Commit() &&;

 private:
  friend class KvManager;
  explicit StepReservation(KvManager* manager) : manager_(manager) {}
  KvManager* manager_;  // null once ended
};

class KvManager {
 public:
  explicit KvManager(KvGeometry geometry);
  ~KvManager();

  const KvGeometry& geometry() const;
  uint32_t free_slots() const;

  // An empty sequence.
  SequenceId Create();
  // A sequence with the parent's tokens, sharing all its blocks. Requires that no reservation is open.
  SequenceId Fork(SequenceId parent);
  // Drops the sequence's references. Requires that no reservation is open.
  void Free(SequenceId sequence);

  // Tokens committed.
  uint64_t Length(SequenceId sequence) const;
  // Free slots that growing by `tokens` would take now, copy-on-write included. Requires that no reservation is open.
  uint32_t SlotsToGrow(SequenceId sequence, uint32_t tokens) const;

  // Reserves the growth of all sequences together, or nothing: kOverloaded with needed and free. One reservation may
  // be open at a time; each sequence at most once in `growth`.
  Result<StepReservation> Reserve(std::span<const Growth> growth);

  // The sequence's blocks in one group, an open reservation's included. Valid until the next call that changes it.
  PageTableRef Pages(SequenceId sequence, uint32_t group) const;

  KvSnapshot Snapshot() const;

 private:
  friend class StepReservation;
  void Commit();
  void RollBack();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachalot::kv
