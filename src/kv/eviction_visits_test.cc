#include "kv/eviction_visits.h"

#include <gtest/gtest.h>

#include <vector>

namespace cachalot::kv {
namespace {

using std::chrono::seconds;

// A way through the index, one entry per 512 tokens, as a request sees it.
struct Way {
  std::vector<Entry> entries;
};

VisitId Go(VisitTable& visits, Way& way, size_t known, size_t blocks, Nanos now) {
  const VisitId visit = visits.Start(
      {.now = now, .known_tokens = known * 512, .prompt_tokens = blocks * 512, .whole_tokens = blocks * 512},
      known == 0 ? nullptr : &way.entries[known - 1]);
  way.entries.resize(std::max(way.entries.size(), blocks));
  for (size_t i = blocks; i-- > 0;) {
    Entry& entry = way.entries[i];
    entry.info.position = (i + 1) * 512;
    i < known ? visits.Touch(entry, visit, now) : visits.Insert(entry, visit, now);
  }
  visits.End(visit, now);
  return visit;
}

TEST(VisitTable, ARequestBeyondAnEarlierOnesTailTakesItOver) {
  VisitTable visits;
  Way way;
  const VisitId first = Go(visits, way, 0, 3, seconds(0));
  for (const Entry& entry : way.entries) EXPECT_EQ(entry.visit, first);
  const VisitId second = Go(visits, way, 3, 5, seconds(60));
  EXPECT_NE(second, first);
  for (const Entry& entry : way.entries) EXPECT_EQ(entry.visit, second);
  EXPECT_EQ(visits.live(), 1u);
  EXPECT_EQ(visits.LawOf(second), 0u);
}

TEST(VisitTable, WhatTwoRequestsShareReturnsByItsOwnLaw) {
  VisitTable visits;
  Way one;
  Go(visits, one, 0, 4, seconds(0));
  Way two{{one.entries[0], one.entries[1]}};
  // Both ways name the same two entries: lend them to the second and give them back.
  const VisitId other = visits.Start(
      {.now = seconds(5), .known_tokens = 1024, .prompt_tokens = 2048, .whole_tokens = 2048}, &one.entries[1]);
  for (size_t i = 2; i-- > 0;) visits.Touch(one.entries[i], other, seconds(5));
  visits.End(other, seconds(5));
  EXPECT_EQ(one.entries[0].visit, one.entries[1].visit);
  EXPECT_EQ(visits.LawOf(one.entries[1].visit), 1u);
  EXPECT_EQ(visits.LawOf(one.entries[2].visit), 0u);
  // The first conversation goes on: what is shared stays shared and counts as used.
  const VisitId shared = one.entries[0].visit;
  Go(visits, one, 4, 6, seconds(50));
  EXPECT_EQ(one.entries[0].visit, shared);
  EXPECT_EQ(visits.LastUse(shared), seconds(50));
  EXPECT_EQ(visits.LawOf(one.entries[5].visit), 0u);
}

TEST(VisitTable, NothingIsLeftOnceAllEntriesAreForgotten) {
  VisitTable visits;
  Way way;
  Go(visits, way, 0, 4, seconds(0));
  Go(visits, way, 2, 3, seconds(1));  // leaves the way after two blocks: they become shared
  Go(visits, way, 4, 8, seconds(2));
  EXPECT_GE(visits.live(), 2u);
  for (Entry& entry : way.entries) visits.Forget(entry, seconds(9));
  EXPECT_EQ(visits.live(), 0u);
}

TEST(VisitTable, LearnsThatLaterTurnsReturnMoreOften) {
  VisitTable visits;
  // Every second conversation ends after its first turn, the others go on to a tenth, a minute apart.
  for (int i = 0; i < 600; ++i) {
    Way way;
    const Nanos begin = seconds(i * 700);
    Go(visits, way, 0, 2, begin);
    for (size_t turn = 1; i % 2 == 0 && turn < 10; ++turn) {
      Go(visits, way, 2 * turn, 2 * turn + 2, begin + seconds(60 * turn));
    }
    for (Entry& entry : way.entries) visits.Forget(entry, begin + seconds(690));
  }
  visits.FitWhenDue(seconds(600 * 700));
  const ReturnRates& rates = visits.rates(0);
  const double first = rates.Score(TurnTraits(0, Nanos(0), 1024));
  const double fifth = rates.Score(TurnTraits(5, seconds(60), 1024));
  EXPECT_GT(fifth, 1.5 * first);
  EXPECT_EQ(visits.live(), 0u);
}

}  // namespace
}  // namespace cachalot::kv
