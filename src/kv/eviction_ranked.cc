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
  if (entry.retention.deadline <= now_) return kExpiredRung;
  const auto priority = static_cast<Rung>(entry.retention.priority);
  return static_cast<Rung>(1 + 2 * priority + (entry.info.has_lower_copy ? 0 : 1));
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

void RankedPolicy::Retain(EntryId entry, const Retention& wish) {
  Retention& held = entries_[entry].retention;
  const bool passed = held.deadline <= now_;
  held.priority = passed ? wish.priority : std::max(held.priority, wish.priority);
  held.deadline = passed ? wish.deadline : std::max(held.deadline, wish.deadline);
  Schedule(entry);
}

void RankedPolicy::Schedule(EntryId entry) {
  Entry& e = entries_[entry];
  if (e.scheduled) deadlines_.Erase(entry);
  e.scheduled = e.retention.deadline != kNever;
  if (e.scheduled) deadlines_.Push(entry, {static_cast<uint64_t>(std::max(Nanos(0), e.retention.deadline).count()), 0});
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
  e.retention = {.priority = Priority::kLow, .deadline = Nanos::min()};
  visits_.Insert(e, info.visit, now);
  Retain(entry, visits_.RetentionOf(info.visit));
  ranker_->Inserted(entry);
}

void RankedPolicy::Touch(EntryId entry, Nanos now) {
  Note(now);
  Update(entry, [&](Entry& e) {
    e.touched_at = now;
    e.touched = ++calls_;
    ++e.touches;
    visits_.Touch(e, started_last_, now);
    Retain(entry, visits_.RetentionOf(started_last_));
    ranker_->Touched(entry);
  });
}

void RankedPolicy::SetLowerCopy(EntryId entry, bool has_lower_copy, Nanos now) {
  Note(now);
  Update(entry, [&](Entry& e) { e.info.has_lower_copy = has_lower_copy; });
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
  ranker_->Evicted(entry);
}

void RankedPolicy::Remove(EntryId entry) {
  Entry& e = entries_[entry];
  CACHALOT_CHECK(std::exchange(e.known, false));
  if (e.resident) Evict(entry);
  e.retention = {};
  Schedule(entry);
  visits_.Forget(e, now_);
  ranker_->Forgotten(entry);
}

// Candidates whose deadline has passed go to the first rung; the others will see it when they become candidates.
void RankedPolicy::MoveExpired() {
  while (!deadlines_.empty()) {
    const EntryId entry = deadlines_.Min();
    Entry& e = entries_[entry];
    if (e.retention.deadline > now_) return;
    deadlines_.Erase(entry);
    e.scheduled = false;
    if (e.rung != kNoRung && e.rung != kExpiredRung) Update(entry, [](Entry&) {});
  }
}

std::optional<EntryId> RankedPolicy::Victim(Nanos now) {
  Note(now);
  MoveExpired();
  for (Rung rung = 0; rung < kRungs; ++rung) {
    if (on_rung_[rung] > 0) return ranker_->Best(rung, now_);
  }
  return std::nullopt;
}

std::optional<EntryId> RankedPolicy::Expired(Nanos now) {
  Note(now);
  MoveExpired();
  if (on_rung_[kExpiredRung] == 0) return std::nullopt;
  return ranker_->Best(kExpiredRung, now_);
}

}  // namespace cachalot::kv
