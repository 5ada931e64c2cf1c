// CostRanker lets go what is worth least: rate of return x seconds of recomputation saved per slot.
// Threads:   owned by the engine thread.
// Ownership: as Ranker; borrows the visits.
// Invariant: a candidate stands in the list of its law, its level (rate and saving, at half octaves) and the idle time
//            that it had when ages were last reviewed, which is kReviewEvery ago at most.
// Cost:      O(1) per call: a bitmap of non-empty lists in order of worth; a candidate passes each idle time once.
#pragma once

#include <array>
#include <vector>

#include "kv/eviction_ranker.h"
#include "kv/eviction_visits.h"

namespace cachalot::kv {

class CostRanker final : public Ranker {
 public:
  CostRanker(const EntryTable& entries, VisitTable& visits);
  void Inserted(EntryId entry) override;
  void Add(EntryId entry, Rung rung, Nanos now) override;
  void Remove(EntryId entry, Rung rung) override;
  EntryId Best(Rung rung, Nanos now) override;
  uint64_t steps() const override { return steps_; }

 private:
  static constexpr Nanos kReviewEvery{250'000'000};
  static constexpr uint32_t kLists = VisitTable::kLaws * kLevels * kIdleBins;
  static constexpr uint32_t kWords = kLists / 64;
  static constexpr EntryId kNone = UINT32_MAX;
  struct Link {
    EntryId next = kNone, previous = kNone;
    uint32_t list = 0;
  };
  struct List {
    EntryId front = kNone, back = kNone;
  };
  struct Shelf {
    std::array<List, kLists> lists{};
    std::array<uint64_t, kWords> filled{};  // by place in order_
    Nanos reviewed{0};
  };

  double IdleSeconds(EntryId entry, Nanos now) const;
  int LevelOf(EntryId entry) const;
  uint32_t ListOf(EntryId entry, Nanos now) const;
  void PutIn(Shelf& shelf, EntryId entry, uint32_t list, Nanos now);
  void Unlink(Shelf& shelf, EntryId entry);
  void Mark(Shelf& shelf, uint32_t list);
  void Review(Shelf& shelf, Nanos now);
  void ReviewList(Shelf& shelf, uint32_t list, Nanos now);
  void OrderLists(Nanos now);

  const EntryTable& entries_;
  VisitTable& visits_;
  std::vector<Link> links_;
  std::vector<Shelf> shelves_;            // by rung
  std::array<uint32_t, kLists> order_{};  // lists, least worth first
  std::array<uint32_t, kLists> place_{};  // of a list in order_
  uint64_t ordered_for_fit_ = 0;
  double mean_saving_ = 0;  // seconds per slot, over all insertions
  uint64_t insertions_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace cachalot::kv
