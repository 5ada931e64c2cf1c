#include "kv/eviction_ranked.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "kv/eviction_cost.h"
#include "kv/eviction_keyed.h"

namespace cachalot::kv {
namespace {

template <EntryKey key>
std::unique_ptr<Ranker> MakeKeyed(const EntryTable& entries, VisitTable&) {
  return std::make_unique<KeyedRanker>(entries, key);
}
std::unique_ptr<Ranker> MakeS3Fifo(const EntryTable&, VisitTable&) { return std::make_unique<S3FifoRanker>(); }
std::unique_ptr<Ranker> MakeCost(const EntryTable& entries, VisitTable& visits) {
  return std::make_unique<CostRanker>(entries, visits);
}

constexpr std::string_view kNames[] = {"cost", "lru", "lfu", "fifo", "s3fifo", "length"};
constexpr RankedPolicy::MakeRanker kMakers[] = {MakeCost,           MakeKeyed<LruKey>, MakeKeyed<LfuKey>,
                                                MakeKeyed<FifoKey>, MakeS3Fifo,        MakeKeyed<LengthKey>};
static_assert(std::size(kNames) == std::size(kMakers));

constexpr Rung kExpiredRung = 0;

}  // namespace

std::span<const std::string_view> EvictionPolicyNames() { return kNames; }

Result<std::unique_ptr<EvictionPolicy>> MakeEvictionPolicy(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) {
    return Invalid(fmt::format("unknown eviction policy \"{}\": expected one of {}", name, fmt::join(kNames, ", ")));
  }
  return std::unique_ptr<EvictionPolicy>(std::make_unique<RankedPolicy>(kMakers[found - kNames]));
}

RankedPolicy::RankedPolicy(MakeRanker make_ranker) : ranker_(make_ranker(entries_, visits_)) {}

void RankedPolicy::Note(Nanos now) { now_ = std::max(now_, now); }

Rung RankedPolicy::RungOf(const Entry& entry) const {
  for (size_t priority = entry.held_until.size(); priority > 0; --priority) {
    if (entry.held_until[priority - 1] <= now_) continue;
    return static_cast<Rung>(priority);
  }
  return kExpiredRung;
}

Nanos RankedPolicy::ChangeOf(const Entry& entry) const {
  const auto holds =
      std::find_if(entry.held_until.rbegin(), entry.held_until.rend(), [&](Nanos deadline) { return deadline > now_; });
  return holds == entry.held_until.rend() ? kNever : *holds;
}

template <class Change>
void RankedPolicy::Update(EntryId entry, Change change) {
  const bool candidate = entries_[entry].rung != kNoRung;
  if (candidate) NotCandidate(entry);
  change(entries_[entry]);
  if (candidate) BecomeCandidate(entry);
}

VisitId RankedPolicy::StartVisit(const Arrival& arrival) {
  Note(arrival.now);
  const bool known = arrival.deepest && *arrival.deepest < entries_.size() && entries_[*arrival.deepest].known;
  started_last_ = visits_.Start(arrival, known ? &entries_[*arrival.deepest] : nullptr);
  return started_last_;
}

void RankedPolicy::EndVisit(VisitId visit, Nanos now) {
  Note(now);
  if (started_last_ == visit) started_last_ = kNoVisit;
  visits_.End(visit, now);
}

void RankedPolicy::Retain(EntryId entry, const Retention& wish, Nanos now) {
  Note(now);
  const auto priority = static_cast<size_t>(wish.priority);
  if (entries_[entry].held_until[priority] >= wish.deadline) return;
  Update(entry, [&](Entry& e) {
    e.held_until[priority] = wish.deadline;
    Schedule(entry);
  });
}

void RankedPolicy::Schedule(EntryId entry) {
  Entry& e = entries_[entry];
  if (e.change != kNever) deadlines_.Erase(entry);
  e.change = ChangeOf(e);
  if (e.change != kNever) deadlines_.Push(entry, {static_cast<uint64_t>(e.change.count()), 0});
}

void RankedPolicy::Insert(EntryId entry, const EntryInfo& info, Nanos now) {
  Note(now);
  if (entry >= entries_.size()) entries_.resize(entry + size_t{1});
  Entry& e = entries_[entry];
  CACHALOT_CHECK(!e.resident);
  e.info = info;
  e.known = e.resident = true;
  e.touched_at = now;
  e.inserted = e.touched = ++calls_;
  e.touches = 1;
  e.held_until[static_cast<size_t>(info.retention.priority)] = info.retention.deadline;
  Schedule(entry);
  visits_.Insert(e, info.visit, now);
  ranker_->Inserted(entry);
}

void RankedPolicy::Touch(EntryId entry, Nanos now) {
  Note(now);
  Update(entry, [&](Entry& e) {
    e.touched_at = now;
    e.touched = ++calls_;
    ++e.touches;
    visits_.Touch(e, started_last_, now);
    ranker_->Touched(entry);
  });
}

void RankedPolicy::BecomeCandidate(EntryId entry) {
  Entry& e = entries_[entry];
  CACHALOT_CHECK(e.resident && e.rung == kNoRung);
  e.rung = RungOf(e);
  ++on_rung_[e.rung];
  ranker_->Add(entry, e.rung, now_);
}

void RankedPolicy::NotCandidate(EntryId entry) {
  const Rung rung = std::exchange(entries_[entry].rung, kNoRung);
  CACHALOT_CHECK(rung != kNoRung);
  --on_rung_[rung];
  ranker_->Remove(entry, rung);
}

void RankedPolicy::Evict(EntryId entry) {
  if (entries_[entry].rung != kNoRung) NotCandidate(entry);
  CACHALOT_CHECK(std::exchange(entries_[entry].resident, false));
  entries_[entry].held_until = {};
  Schedule(entry);
  ranker_->Evicted(entry);
}

void RankedPolicy::Remove(EntryId entry) {
  Entry& e = entries_[entry];
  CACHALOT_CHECK(std::exchange(e.known, false));
  if (e.resident) Evict(entry);
  visits_.Forget(e, now_);
  ranker_->Forgotten(entry);
}

// Candidates whose priority has had its time go down; the others will see it when they become candidates.
void RankedPolicy::MoveDue() {
  while (!deadlines_.empty() && entries_[deadlines_.Min()].change <= now_) {
    const EntryId entry = deadlines_.Min();
    Update(entry, [&](Entry&) { Schedule(entry); });
  }
}

std::optional<EntryId> RankedPolicy::Victim(Nanos now) {
  Note(now);
  MoveDue();
  for (Rung rung = 0; rung < kRungs; ++rung) {
    if (on_rung_[rung] > 0) return ranker_->Best(rung, now_);
  }
  return std::nullopt;
}

std::optional<EntryId> RankedPolicy::Expired(Nanos now) {
  Note(now);
  MoveDue();
  if (on_rung_[kExpiredRung] == 0) return std::nullopt;
  return ranker_->Best(kExpiredRung, now_);
}

std::optional<Nanos> RankedPolicy::NextExpiry() const {
  if (on_rung_[kExpiredRung] > 0) return now_;
  if (deadlines_.empty()) return std::nullopt;
  return entries_[deadlines_.Min()].change;
}

}  // namespace cachalot::kv
