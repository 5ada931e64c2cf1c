// RankedPolicy is every policy of MakeEvictionPolicy: deadlines and priorities above one Ranker's order.
// Threads:   owned by the engine thread.
// Ownership: owns entries, visits and its ranker.
// Invariant: a candidate stands on exactly one rung: the one that its retention calls for when it got there
//            or when a victim was asked for last, whichever was later.
// Cost:      that of the ranker, and O(log entries with a deadline) where there are deadlines.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kv/eviction_heap.h"
#include "kv/eviction_ranker.h"
#include "kv/eviction_visits.h"

namespace cachalot::kv {

class RankedPolicy final : public EvictionPolicy {
 public:
  using MakeRanker = std::unique_ptr<Ranker> (*)(const EntryTable& entries, VisitTable& visits);
  explicit RankedPolicy(MakeRanker make_ranker);

  VisitId StartVisit(const Arrival& arrival) override;
  void EndVisit(VisitId visit, Nanos now) override;
  void Insert(EntryId entry, const EntryInfo& info, Nanos now) override;
  void Touch(EntryId entry, Nanos now) override;
  void Retain(EntryId entry, const Retention& wish, Nanos now) override;
  void BecomeCandidate(EntryId entry) override;
  void NotCandidate(EntryId entry) override;
  void Evict(EntryId entry) override;
  void Remove(EntryId entry) override;
  std::optional<EntryId> Victim(Nanos now) override;
  std::optional<EntryId> Expired(Nanos now) override;
  std::optional<Nanos> NextExpiry() const override;

  uint64_t steps() const { return ranker_->steps() + deadlines_.steps(); }

 private:
  Rung RungOf(const Entry& entry) const;
  // Runs `change` while the entry is on no rung, and puts it back if it was on one.
  template <class Change>
  void Update(EntryId entry, Change change);
  Nanos ChangeOf(const Entry& entry) const;
  void Schedule(EntryId entry);
  void MoveDue();
  void Note(Nanos now);

  EntryTable entries_;
  VisitTable visits_;
  std::unique_ptr<Ranker> ranker_;
  std::vector<uint32_t> deadline_places_;
  CandidateHeap deadlines_{&deadline_places_};  // by Entry::change, all that have one
  std::array<uint64_t, kRungs> on_rung_{};
  VisitId started_last_ = kNoVisit;
  uint64_t calls_ = 0;  // that used an entry
  Nanos now_{0};        // the latest that was told
};

}  // namespace cachalot::kv
