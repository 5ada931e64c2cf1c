#include "kv/eviction_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/random.h"

namespace cachalot::kv {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The ranker's order by looking at every candidate: each stands in a class of equal law, level and idle time, in the
// order in which it came there.
class NaiveCost {
 public:
  struct Item {
    EntryId entry;
    size_t law;
    int level;
    int bin;
    int64_t order;
  };
  NaiveCost(const EntryTable& entries, const VisitTable& visits) : entries_(entries), visits_(visits) {}

  double Idle(EntryId entry, Nanos now) const {
    return ToSeconds(now - std::max(entries_[entry].touched_at, visits_.LastUse(entries_[entry].visit)));
  }
  void Add(EntryId entry, Nanos now) {
    const VisitId visit = entries_[entry].visit;
    Place({entry, visits_.LawOf(visit), ReturnRates::LevelOf(visits_.ScoreOf(visit)), IdleBinOf(Idle(entry, now)), 0},
          now);
  }
  void Remove(EntryId entry) {
    std::erase_if(items_, [&](const Item& item) { return item.entry == entry; });
  }
  // Moves on the oldest of each class while it has been idle for too long, class by class, least worth first.
  void Review(Nanos now) {
    std::vector<Item> classes = items_;
    std::ranges::sort(classes, {}, [&](const Item& item) {
      return std::tuple(visits_.rates(item.law).Worth(item.level, item.bin), item.law, item.level, item.bin);
    });
    for (const Item& of : classes) {
      while (std::ranges::any_of(items_, [&](const Item& item) { return SameClass(item, of); })) {
        const auto front = std::ranges::find(items_, Front(of), &Item::entry);
        const int bin = IdleBinOf(Idle(front->entry, now));
        if (bin <= of.bin) break;
        const Item moved{front->entry, of.law, of.level, bin, 0};
        items_.erase(front);
        Place(moved, now);
      }
    }
  }
  double WorthOf(EntryId entry) const {
    const auto item = std::ranges::find(items_, entry, &Item::entry);
    return visits_.rates(item->law).Worth(item->level, item->bin);
  }
  double LeastWorth() const {
    double least = WorthOf(items_.front().entry);
    for (const Item& item : items_) least = std::min(least, WorthOf(item.entry));
    return least;
  }
  bool IsFront(EntryId entry) const { return Front(*std::ranges::find(items_, entry, &Item::entry)) == entry; }
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  EntryId Any(uint64_t n) const { return items_[n % items_.size()].entry; }

 private:
  static bool SameClass(const Item& a, const Item& b) { return a.law == b.law && a.level == b.level && a.bin == b.bin; }
  EntryId Front(const Item& of) const {
    const Item* front = nullptr;
    for (const Item& item : items_) {
      if (SameClass(item, of) && (front == nullptr || item.order < front->order)) front = &item;
    }
    return front->entry;
  }
  void Place(Item item, Nanos now) {
    const Item* back = nullptr;
    int64_t least = 0;
    for (const Item& other : items_) {
      if (!SameClass(item, other)) continue;
      if (back == nullptr || other.order > back->order) back = &other;
      least = std::min(least, other.order);
    }
    const bool late = back != nullptr && Idle(item.entry, now) > Idle(back->entry, now);
    item.order = back == nullptr ? 0 : late ? least - 1 : back->order + 1;
    items_.push_back(item);
  }

  const EntryTable& entries_;
  const VisitTable& visits_;
  std::vector<Item> items_;
};

TEST(CostRanker, HundredThousandRandomCallsGiveVictimsOfLeastWorth) {
  constexpr EntryId kEntries = 24;
  EntryTable entries(kEntries);
  VisitTable visits;
  CostRanker ranker(entries, visits);
  NaiveCost naive(entries, visits);
  SplitMix64 random(11);
  Nanos now{0};
  uint64_t victims = 0;
  const auto start = [&](EntryId entry) {
    const Entry& e = entries[entry];
    const uint64_t known = e.visit == kNoVisit ? 0 : e.info.position;
    const VisitId visit = visits.Start({.now = now,
                                        .known_tokens = known,
                                        .prompt_tokens = known + random.Below(5000),
                                        .whole_tokens = random.Below(3) == 0 ? known : 512},
                                       e.visit == kNoVisit ? nullptr : &e);
    e.visit == kNoVisit ? visits.Insert(entries[entry], visit, now) : visits.Touch(entries[entry], visit, now);
    entries[entry].touched_at = now;
    visits.End(visit, now);
  };
  for (EntryId entry = 0; entry < kEntries; ++entry) {
    entries[entry].info.position = 512;
    ranker.Inserted(entry);
    start(entry);
  }
  std::vector<bool> added(kEntries, false);
  for (int call = 0; call < 100'000; ++call) {
    now += milliseconds(random.Below(4) == 0 ? random.Below(60'000) : random.Below(300));
    const auto entry = static_cast<EntryId>(random.Below(kEntries));
    if (added[entry]) {
      ranker.Remove(entry, 1);
      naive.Remove(entry);
      start(entry);
    }
    visits.FitWhenDue(now);
    added[entry] = !added[entry] || random.Below(3) != 0;
    if (added[entry]) {
      ranker.Add(entry, 1, now);
      naive.Add(entry, now);
    }
    now += milliseconds(250);  // so that the ranker reviews ages
    if (naive.empty() || random.Below(2) == 0) continue;
    const EntryId victim = ranker.Best(1, now);
    naive.Review(now);
    ASSERT_EQ(naive.WorthOf(victim), naive.LeastWorth()) << "call " << call;
    ASSERT_TRUE(naive.IsFront(victim)) << "call " << call;
    ++victims;
  }
  EXPECT_GT(victims, 20'000u);
  EXPECT_GT(visits.fits(), 100u);
}

TEST(CostRanker, OfEqualChancesTheOneCheaperToRecomputePerSlotGoes) {
  EntryTable entries(3);
  VisitTable visits;
  CostRanker ranker(entries, visits);
  entries[0].info = {.slots = 1, .recompute_seconds = 4};
  entries[1].info = {.slots = 8, .recompute_seconds = 8};
  entries[2].info = {.slots = 2, .recompute_seconds = 16};
  for (EntryId entry = 0; entry < 3; ++entry) ranker.Inserted(entry);
  for (EntryId entry = 0; entry < 3; ++entry) ranker.Add(entry, 2, seconds(1));
  for (const EntryId expected : {1u, 0u, 2u}) {
    EXPECT_EQ(ranker.Best(2, seconds(1)), expected);
    ranker.Remove(expected, 2);
  }
}

}  // namespace
}  // namespace cachalot::kv
