#include "text/pair_merger.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace cachalot::text {
namespace {

std::vector<Symbol> Merged(const MergeTable& table, std::vector<Symbol> symbols) {
  MergeScratch scratch;
  scratch.symbols = std::move(symbols);
  MergePairs(table, &scratch);
  return scratch.symbols;
}

// One merge after another, by the definition.
std::vector<Symbol> NaivelyMerged(const MergeTable& table, std::vector<Symbol> symbols) {
  for (;;) {
    size_t best = symbols.size();
    PairMerge best_merge;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const PairMerge merge = table.Find(symbols[i], symbols[i + 1]);
      if (merge.rank < best_merge.rank) {
        best = i;
        best_merge = merge;
      }
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = best_merge.result;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

MergeTable RandomTable(SplitMix64* random) {
  MergeTable table(0);
  for (int i = 0; i < 40; ++i) {
    // Few ranks, so that ties are common.
    table.Set(static_cast<Symbol>(random->Below(12)), static_cast<Symbol>(random->Below(12)),
              {static_cast<uint32_t>(random->Below(8)), static_cast<Symbol>(random->Below(12))});
  }
  return table;
}

TEST(PairMerger, EqualsTheDefinitionBelowAndAboveTheSwitchToTheHeap) {
  SplitMix64 random(3);
  for (int round = 0; round < 400; ++round) {
    const MergeTable table = RandomTable(&random);
    std::vector<Symbol> symbols(random.Below(3 * kScanSymbols));
    for (Symbol& symbol : symbols) symbol = random.Below(20) == 0 ? kNoSymbol : static_cast<Symbol>(random.Below(12));
    ASSERT_EQ(Merged(table, symbols), NaivelyMerged(table, symbols)) << "round " << round;
  }
}

TEST(PairMerger, OfEqualRanksTheLeftmostMergesFirst) {
  MergeTable table(1);
  table.Set(0, 0, {0, 1});
  EXPECT_EQ(Merged(table, {0, 0, 0}), (std::vector<Symbol>{1, 0}));
}

TEST(PairMerger, AScratchCanBeUsedAgain) {
  MergeTable table(1);
  table.Set(0, 0, {0, 1});
  MergeScratch scratch;
  for (size_t count : {100u, 3u, 200u, 1u, 0u}) {
    scratch.symbols.assign(count, 0);
    MergePairs(table, &scratch);
    EXPECT_EQ(scratch.symbols.size(), (count + 1) / 2);
  }
}

uint64_t StepsFor(const MergeTable& table, size_t count) {
  MergeScratch scratch;
  scratch.symbols.assign(count, 0);
  MergePairs(table, &scratch);
  return scratch.steps;
}

TEST(PairMerger, StepsGrowLinearlyWithALongRun) {
  MergeTable table(20);
  for (Symbol level = 0; level < 20; ++level) table.Set(level, level, {level, level + 1});
  const uint64_t small = StepsFor(table, 1 << 15);
  const uint64_t large = StepsFor(table, 1 << 18);
  EXPECT_LE(large, 9 * small);
  EXPECT_LE(large, uint64_t{4} << 18);
}

}  // namespace
}  // namespace cachalot::text
