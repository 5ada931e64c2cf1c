#include "kv/eviction_visits.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cachalot::kv {

VisitTable::VisitTable() : visits_(1) {}

VisitId VisitTable::Make(Kind kind, Nanos now) {
  VisitId id = static_cast<VisitId>(visits_.size());
  if (spare_.empty()) {
    visits_.emplace_back();
  } else {
    id = spare_.back();
    spare_.pop_back();
    visits_[id] = {};
  }
  visits_[id].kind = kind;
  visits_[id].last = now;
  now_ = std::max(now_, now);
  return id;
}

// The visit of what `arrival` shares with others, whose deepest entry belongs to `above`.
VisitId VisitTable::MakeShared(const Arrival& arrival, VisitId above) {
  if (visits_[above].kind == Kind::kShared && visits_[above].tail_tokens == arrival.known_tokens) {
    ++visits_[above].count;
    return above;
  }
  const Nanos gap = arrival.now - visits_[above].last;
  const VisitId id = Make(Kind::kShared, arrival.now);
  visits_[id].count = 1;
  visits_[id].tail_tokens = arrival.known_tokens;
  visits_[id].traits = SharedTraits(1, gap);
  Watch(id);
  return id;
}

VisitId VisitTable::Start(const Arrival& arrival, const Entry* deepest) {
  const VisitId before = deepest == nullptr ? kNoVisit : deepest->visit;
  const VisitId id = Make(Kind::kTurn, arrival.now);
  Visit& visit = visits_[id];
  visit.open = true;
  visit.fresh_tokens = arrival.prompt_tokens - std::min(arrival.known_tokens, arrival.prompt_tokens);
  visit.tail_tokens = arrival.whole_tokens;
  const Visit& old = visits_[before];
  const bool continues = old.kind == Kind::kTurn && old.tail_tokens > 0 && arrival.known_tokens >= old.tail_tokens;
  Nanos gap{0};
  if (continues) {
    visit.count = old.count + 1;
    gap = arrival.now - old.last;
  } else if (before != kNoVisit) {
    const VisitId shared = MakeShared(arrival, before);
    ++visits_[shared].references;
    Visit& self = visits_[id];  // MakeShared may have moved it
    self.shared = shared;
    self.shared_tokens = arrival.known_tokens;
    self.branches_off = true;
  }
  Visit& self = visits_[id];
  self.traits = TurnTraits(self.count, gap, self.fresh_tokens);
  if (self.tail_tokens > self.shared_tokens) Watch(id);
  return id;
}

void VisitTable::End(VisitId id, Nanos now) {
  if (id == kNoVisit) return;
  CACHALOT_CHECK(visits_[id].open);
  visits_[id].open = false;
  visits_[id].last = std::max(visits_[id].last, now);
  now_ = std::max(now_, now);
  if (visits_[id].references == 0) {
    ++visits_[id].references;
    Release(id);
  }
}

void VisitTable::Release(VisitId id) {
  Visit& visit = visits_[id];
  if (--visit.references > 0 || visit.open) return;
  Close(visit, now_, false);
  const VisitId shared = visit.shared;
  visit = {};
  spare_.push_back(id);
  if (shared != kNoVisit) Release(shared);
}

void VisitTable::Assign(Entry& entry, VisitId to) {
  if (entry.visit == to) return;
  const VisitId from = std::exchange(entry.visit, to);
  if (to != kNoVisit) ++visits_[to].references;
  if (from != kNoVisit) Release(from);
}

void VisitTable::Touch(Entry& entry, VisitId by, Nanos now) {
  now_ = std::max(now_, now);
  Visit& old = visits_[entry.visit];
  const bool is_tail = entry.visit != kNoVisit && old.tail_tokens == entry.info.position;
  const Visit& visit = visits_[by];
  const bool splits = visit.branches_off && old.tail_tokens > visit.shared_tokens;
  if (old.kind == Kind::kShared && !splits) {
    if (!is_tail) return;
    Close(old, now, true);
    old.traits = SharedTraits(old.count, now - old.last);
    old.last = now;
    Watch(entry.visit);
    return;
  }
  if (by == kNoVisit || by == entry.visit) return;
  if (is_tail) Close(old, now, true);
  Assign(entry, entry.info.position <= visit.shared_tokens ? visit.shared : by);
}

void VisitTable::Insert(Entry& entry, VisitId by, Nanos now) {
  now_ = std::max(now_, now);
  if (by != kNoVisit && entry.info.short_block) {
    const VisitId id = Make(Kind::kShortBlock, now);
    visits_[id].tail_tokens = entry.info.position;
    visits_[id].traits = ShortBlockTraits(visits_[by].traits);
    Watch(id);
    Assign(entry, id);
    return;
  }
  const bool is_ghost_of_shared = visits_[entry.visit].kind == Kind::kShared;
  if (is_ghost_of_shared || (by != kNoVisit && entry.visit != kNoVisit)) {
    Touch(entry, by, now);
  } else {
    Assign(entry, by);
  }
}

void VisitTable::Forget(Entry& entry, Nanos now) {
  now_ = std::max(now_, now);
  Visit& visit = visits_[entry.visit];
  if (entry.visit != kNoVisit && visit.tail_tokens == entry.info.position) Close(visit, now, false);
  Assign(entry, kNoVisit);
}

void VisitTable::Watch(VisitId id) {
  const uint64_t number = records_++;
  if (window_.size() < kWindow) window_.emplace_back();
  Watched& watched = window_[number % kWindow];
  if (watched.visit != kNoVisit) visits_[watched.visit].record = kNoRecord;
  watched = {{visits_[id].traits, 0, false}, id, LawOf(id)};
  visits_[id].record = number;
}

void VisitTable::Close(Visit& visit, Nanos now, bool returned) {
  if (visit.record == kNoRecord) return;
  Watched& watched = window_[std::exchange(visit.record, kNoRecord) % kWindow];
  watched.visit = kNoVisit;
  watched.record.idle_seconds = ToSeconds(std::max(Nanos(0), now - visit.last));
  watched.record.returned = returned;
}

void VisitTable::FitWhenDue(Nanos now) {
  if (records_ - fitted_ < kFitEvery) return;
  fitted_ = records_;
  ++fits_;
  for (size_t law = 0; law < kLaws; ++law) {
    sample_.clear();
    for (const Watched& watched : window_) {
      if (watched.law != law) continue;
      sample_.push_back(watched.record);
      if (watched.visit == kNoVisit) continue;
      sample_.back().idle_seconds = ToSeconds(std::max(Nanos(0), now - visits_[watched.visit].last));
    }
    rates_[law] = FitReturns(sample_, rates_[law]);
  }
}

}  // namespace cachalot::kv
