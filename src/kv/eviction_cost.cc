#include "kv/eviction_cost.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"

namespace cachalot::kv {
namespace {

double SavingOf(const EntryInfo& info) { return info.recompute_seconds / std::max<uint32_t>(info.slots, 1); }

// Lists of one law and level follow each other by idle time.
int BinOfList(uint32_t list) { return static_cast<int>(list % kIdleBins); }
int LevelOfList(uint32_t list) { return static_cast<int>(list / kIdleBins % kLevels); }
size_t LawOfList(uint32_t list) { return list / (kIdleBins * kLevels); }

}  // namespace

CostRanker::CostRanker(const EntryTable& entries, VisitTable& visits)
    : entries_(entries), visits_(visits), shelves_(kRungs) {
  std::iota(order_.begin(), order_.end(), 0);
  OrderLists(Nanos(0));
}

void CostRanker::Inserted(EntryId entry) {
  if (entry >= links_.size()) links_.resize(entry + size_t{1});
  mean_saving_ += (SavingOf(entries_[entry].info) - mean_saving_) / static_cast<double>(++insertions_);
}

double CostRanker::IdleSeconds(EntryId entry, Nanos now) const {
  const Entry& e = entries_[entry];
  return ToSeconds(std::max(Nanos(0), now - std::max(e.touched_at, visits_.LastUse(e.visit))));
}

// Worth is proportional to the saving, so the saving moves the level as the rate does.
int CostRanker::LevelOf(EntryId entry) const {
  const Entry& e = entries_[entry];
  const double relative = mean_saving_ > 0 ? SavingOf(e.info) / mean_saving_ : 1;
  return ReturnRates::LevelOf(visits_.ScoreOf(e.visit) * relative);
}

uint32_t CostRanker::ListOf(EntryId entry, Nanos now) const {
  const auto law = static_cast<uint32_t>(visits_.LawOf(entries_[entry].visit));
  const auto level = static_cast<uint32_t>(LevelOf(entry));
  return (law * kLevels + level) * kIdleBins + static_cast<uint32_t>(IdleBinOf(IdleSeconds(entry, now)));
}

void CostRanker::Mark(Shelf& shelf, uint32_t list) {
  const uint32_t place = place_[list];
  const uint64_t bit = uint64_t{1} << (place % 64);
  uint64_t& word = shelf.filled[place / 64];
  word = shelf.lists[list].front == kNone ? word & ~bit : word | bit;
}

// Behind all that have been idle for longer; one that comes late, because what stood in its way is gone, in front.
void CostRanker::PutIn(Shelf& shelf, EntryId entry, uint32_t list, Nanos now) {
  ++steps_;
  List& l = shelf.lists[list];
  Link& link = links_[entry];
  const bool late = l.back != kNone && IdleSeconds(entry, now) > IdleSeconds(l.back, now);
  link.list = list;
  link.previous = late ? kNone : l.back;
  link.next = late ? l.front : kNone;
  (link.previous == kNone ? l.front : links_[link.previous].next) = entry;
  (link.next == kNone ? l.back : links_[link.next].previous) = entry;
  Mark(shelf, list);
}

void CostRanker::Unlink(Shelf& shelf, EntryId entry) {
  ++steps_;
  const Link link = links_[entry];
  List& l = shelf.lists[link.list];
  (link.previous == kNone ? l.front : links_[link.previous].next) = link.next;
  (link.next == kNone ? l.back : links_[link.next].previous) = link.previous;
  Mark(shelf, link.list);
}

void CostRanker::Add(EntryId entry, Rung rung, Nanos now) {
  OrderLists(now);
  PutIn(shelves_[rung], entry, ListOf(entry, now), now);
}

void CostRanker::Remove(EntryId entry, Rung rung) { Unlink(shelves_[rung], entry); }

EntryId CostRanker::Best(Rung rung, Nanos now) {
  OrderLists(now);
  Shelf& shelf = shelves_[rung];
  if (now - shelf.reviewed >= kReviewEvery) Review(shelf, now);
  for (uint32_t word = 0; word < kWords; ++word) {
    ++steps_;
    if (shelf.filled[word] == 0) continue;
    const auto place = word * 64 + static_cast<uint32_t>(std::countr_zero(shelf.filled[word]));
    return shelf.lists[order_[place]].front;
  }
  CACHALOT_CHECK(false);
  return kNone;
}

void CostRanker::ReviewList(Shelf& shelf, uint32_t list, Nanos now) {
  for (EntryId front = shelf.lists[list].front; front != kNone; front = shelf.lists[list].front) {
    ++steps_;
    const int bin = IdleBinOf(IdleSeconds(front, now));
    if (bin <= BinOfList(list)) return;
    Unlink(shelf, front);
    PutIn(shelf, front, list + static_cast<uint32_t>(bin - BinOfList(list)), now);
  }
}

void CostRanker::Review(Shelf& shelf, Nanos now) {
  shelf.reviewed = now;
  const std::array<uint64_t, kWords> filled = shelf.filled;
  for (uint32_t word = 0; word < kWords; ++word) {
    for (uint64_t bits = filled[word]; bits != 0; bits &= bits - 1) {
      ReviewList(shelf, order_[word * 64 + static_cast<uint32_t>(std::countr_zero(bits))], now);
    }
  }
}

// After each fit the lists are put in order again; what they hold stays where it is.
void CostRanker::OrderLists(Nanos now) {
  visits_.FitWhenDue(now);
  if (ordered_for_fit_ == visits_.fits() + 1) return;
  ordered_for_fit_ = visits_.fits() + 1;
  std::array<double, kLists> worth;
  for (uint32_t list = 0; list < kLists; ++list) {
    worth[list] = visits_.rates(LawOfList(list)).Worth(LevelOfList(list), BinOfList(list));
  }
  std::ranges::sort(order_, [&](uint32_t a, uint32_t b) { return worth[a] != worth[b] ? worth[a] < worth[b] : a < b; });
  for (uint32_t place = 0; place < kLists; ++place) place_[order_[place]] = place;
  for (Shelf& shelf : shelves_) {
    shelf.filled.fill(0);
    for (uint32_t list = 0; list < kLists; ++list) Mark(shelf, list);
  }
}

}  // namespace cachalot::kv
