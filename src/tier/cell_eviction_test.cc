#include "tier/cell_eviction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"

namespace cachalot::tier {
namespace {

// A policy with its memory.
class Policy {
 public:
  Policy(std::string_view name, uint32_t cells) : memory_(CellEvictionBytes(name, cells) + Carver::kAlignment) {
    void* begin = memory_.data();
    size_t room = memory_.size();
    std::align(Carver::kAlignment, CellEvictionBytes(name, cells), begin, room);
    Carver carver({static_cast<std::byte*>(begin), room});
    policy_ = MakeCellEviction(name, cells, carver);
  }
  CellEviction* operator->() { return policy_.get(); }
  std::optional<CellId> Evict(const std::set<uint32_t>& pinned = {}) {
    return policy_->Evict([&](CellId cell) { return !pinned.contains(cell.value); });
  }

 private:
  std::vector<std::byte> memory_;
  std::unique_ptr<CellEviction> policy_;
};

uint64_t HashOf(uint64_t content) { return SplitMix64(content)(); }

TEST(CellEviction, UnknownNamesAreRefusedWithTheKnownOnes) {
  for (const std::string_view name : CellEvictionNames()) EXPECT_TRUE(CheckCellEviction(name).ok());
  const Status status = CheckCellEviction("mru");
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("lru, s3fifo"), std::string::npos) << status.message();
}

TEST(CellEviction, LruEvictsWhatWasUsedLongestAgo) {
  Policy policy("lru", 3);
  for (uint32_t i = 0; i < 3; ++i) policy->Insert(CellId(i), HashOf(i));
  policy->Touch(CellId(0));
  EXPECT_EQ(policy.Evict(), CellId(1));
  policy->Remove(CellId(2));
  EXPECT_EQ(policy.Evict(), CellId(0));
  EXPECT_EQ(policy.Evict(), std::nullopt);
}

TEST(CellEviction, S3FifoLetsAScanPassWithoutLosingWhatIsUsed) {
  Policy policy("s3fifo", 10);
  for (uint32_t i = 0; i < 10; ++i) policy->Insert(CellId(i), HashOf(i));
  for (int use = 0; use < 2; ++use) {
    for (uint32_t i = 0; i < 5; ++i) policy->Touch(CellId(i));
  }
  for (uint64_t content = 100; content < 200; ++content) {
    const std::optional<CellId> cell = policy.Evict();
    ASSERT_TRUE(cell);
    ASSERT_GE(cell->value, 5u);
    policy->Insert(*cell, HashOf(content));
  }
}

TEST(CellEviction, S3FifoKeepsWhatComesBackSoonAfterItLeft) {
  Policy policy("s3fifo", 10);
  for (uint32_t i = 0; i < 10; ++i) policy->Insert(CellId(i), HashOf(i));
  ASSERT_EQ(policy.Evict(), CellId(0));
  policy->Insert(CellId(0), HashOf(0));  // a ghost: into the main queue
  for (uint32_t i = 1; i < 10; ++i) EXPECT_EQ(policy.Evict(), CellId(i));
  EXPECT_EQ(policy.Evict(), CellId(0));
}

TEST(CellEviction, S3FifoCountsWhatWasTakenUpAsUsed) {
  Policy policy("s3fifo", 10);
  for (uint32_t i = 0; i < 10; ++i) policy->Insert(CellId(i), HashOf(i));
  policy->Touch(CellId(7));
  policy->Remove(CellId(7));
  policy->Remove(CellId(8));
  policy->Insert(CellId(7), HashOf(7));
  policy->Insert(CellId(8), HashOf(8));
  std::vector<uint32_t> order;
  while (const auto cell = policy.Evict()) order.push_back(cell->value);
  EXPECT_EQ(order.back(), 7u);
}

class EveryPolicy : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryPolicy, PinnedCellsStayInTheirPlace) {
  Policy policy(GetParam(), 4);
  for (uint32_t i = 0; i < 4; ++i) policy->Insert(CellId(i), HashOf(i));
  EXPECT_EQ(policy.Evict({0, 1}), CellId(2));
  EXPECT_EQ(policy.Evict({0, 1, 3}), std::nullopt);
  EXPECT_EQ(policy.Evict(), CellId(0));
  EXPECT_EQ(policy.Evict(), CellId(1));
}

TEST_P(EveryPolicy, RandomCallsEvictExactlyWhatIsThereAndMayGo) {
  constexpr uint32_t kCells = 50;
  std::vector<std::optional<CellId>> answers[2];
  for (auto& answer : answers) {
    Policy policy(GetParam(), kCells);
    SplitMix64 random(9);
    std::set<uint32_t> there, pinned;
    for (int op = 0; op < 20000; ++op) {
      const auto cell = static_cast<uint32_t>(random.Below(kCells));
      switch (random.Below(5)) {
        case 0:
          if (there.insert(cell).second) policy->Insert(CellId(cell), HashOf(random.Below(200)));
          break;
        case 1:
          if (there.contains(cell)) policy->Touch(CellId(cell));
          break;
        case 2:
          if (random.Below(4) == 0 && there.erase(cell) > 0) policy->Remove(CellId(cell));
          break;
        case 3:
          if (!pinned.erase(cell)) pinned.insert(cell);
          break;
        default: {
          const std::optional<CellId> victim = policy.Evict(pinned);
          answer.push_back(victim);
          const bool any = std::ranges::any_of(there, [&](uint32_t c) { return !pinned.contains(c); });
          ASSERT_EQ(victim.has_value(), any);
          if (!victim) break;
          ASSERT_FALSE(pinned.contains(victim->value));
          ASSERT_EQ(there.erase(victim->value), 1u);
        }
      }
    }
  }
  EXPECT_EQ(answers[0], answers[1]);
}

INSTANTIATE_TEST_SUITE_P(Cells, EveryPolicy, testing::ValuesIn(CellEvictionNames().begin(), CellEvictionNames().end()),
                         [](const auto& info) { return std::string(info.param); });

// Hits of a cache of 100 cells where a fifth of the contents gets most of the uses, and scans pass now and then.
uint64_t HitsOf(std::string_view name) {
  constexpr uint32_t kCells = 100;
  Policy policy(name, kCells);
  std::map<uint64_t, uint32_t> cells;
  std::vector<uint64_t> contents(kCells);
  SplitMix64 random(4);
  uint64_t hits = 0, scanned = 1 << 20;
  for (int use = 0; use < 50000; ++use) {
    const bool scan = use / 500 % 2 == 1;
    const uint64_t content = scan ? ++scanned : random.Below(random.Below(4) == 0 ? 500 : 80);
    if (const auto found = cells.find(content); found != cells.end()) {
      ++hits;
      policy->Touch(CellId(found->second));
      continue;
    }
    uint32_t cell = static_cast<uint32_t>(cells.size());
    if (cell == kCells) {
      cell = policy.Evict()->value;
      cells.erase(contents[cell]);
    }
    contents[cell] = content;
    cells[content] = cell;
    policy->Insert(CellId(cell), HashOf(content));
  }
  return hits;
}

TEST(CellEviction, S3FifoHitsMoreThanLruWhereScansPass) { EXPECT_GT(HitsOf("s3fifo"), HitsOf("lru") * 11 / 10); }

}  // namespace
}  // namespace cachalot::tier
