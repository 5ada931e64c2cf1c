// VisitTable follows requests through the prefix index: which conversation each goes on with, what it shares with
// others, and whether it is taken up again. From that it learns how soon a visit's blocks are likely to be wanted.
// Threads:   owned by the engine thread.
// Ownership: a visit lives while it is open, an entry belongs to it, or a visit that is live branched off it.
// Invariant: every record of the window is closed at most once: returned, or lost from sight.
// Cost:      O(1) per call; one fit over the window for every kFitEvery records, in FitWhenDue().
//
// A visit's tail is the last full block of its prompt. A request that goes past the tail of an earlier one continues
// that conversation. A request that leaves an earlier one's way before its tail shares what lies above; that part
// becomes a visit of its own, kind shared, which returns each time anybody comes by. So the rate of a shared prefix is
// that of all conversations below it together.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kv/eviction.h"
#include "kv/eviction_ranker.h"
#include "kv/eviction_returns.h"

namespace cachalot::kv {

class VisitTable {
 public:
  VisitTable();

  // `deepest`: the entry that the arrival names; null when there is none.
  VisitId Start(const Arrival& arrival, const Entry* deepest);
  void End(VisitId id, Nanos now);

  // Says which visit an entry belongs to from now on, and counts its old one's return when it was that one's tail.
  void Touch(Entry& entry, VisitId by, Nanos now);
  void Insert(Entry& entry, VisitId by, Nanos now);
  void Forget(Entry& entry, Nanos now);

  Nanos LastUse(VisitId id) const { return visits_[id].last; }

  // Conversations and shared prefixes return each after their own law.
  static constexpr size_t kLaws = 2;
  size_t LawOf(VisitId id) const { return visits_[id].kind == Kind::kShared ? 1 : 0; }
  // Multiple of the average rate of return under its law.
  double ScoreOf(VisitId id) const { return rates_[LawOf(id)].Score(visits_[id].traits); }
  const ReturnRates& rates(size_t law) const { return rates_[law]; }
  // Learns from what was seen since the last time, when that is enough to matter.
  void FitWhenDue(Nanos now);
  uint64_t fits() const { return fits_; }
  size_t live() const { return visits_.size() - spare_.size() - 1; }

 private:
  static constexpr size_t kWindow = 4096;
  static constexpr uint64_t kFitEvery = 128;
  static constexpr uint64_t kNoRecord = UINT64_MAX;
  enum class Kind : uint8_t { kTurn, kShared, kShortBlock };
  struct Visit {
    Kind kind = Kind::kTurn;
    bool open = false;
    bool branches_off = false;  // left all known ways at shared_tokens
    uint32_t count = 0;         // turns before, or branches
    uint32_t references = 0;
    VisitTraits traits{};
    uint64_t fresh_tokens = 0;
    Nanos last{0};
    uint64_t tail_tokens = 0;    // where its tail ends; 0: none
    uint64_t shared_tokens = 0;  // above that it belongs to others too
    VisitId shared = kNoVisit;   // takes over what it shares
    uint64_t record = kNoRecord;
  };
  struct Watched {
    ReturnRecord record;
    VisitId visit = kNoVisit;  // while neither returned nor lost
    size_t law = 0;
  };

  VisitId Make(Kind kind, Nanos now);
  VisitId MakeShared(const Arrival& arrival, VisitId above);
  void Release(VisitId id);
  void Assign(Entry& entry, VisitId to);
  void Watch(VisitId id);
  void Close(Visit& visit, Nanos now, bool returned);

  std::vector<Visit> visits_;  // [kNoVisit] is a visit of which nothing is known
  std::vector<VisitId> spare_;
  std::vector<Watched> window_;  // a ring
  uint64_t records_ = 0;
  uint64_t fitted_ = 0;  // records at the last fit
  uint64_t fits_ = 0;
  Nanos now_{0};
  std::array<ReturnRates, kLaws> rates_;
  std::vector<ReturnRecord> sample_;  // scratch
};

}  // namespace cachalot::kv
