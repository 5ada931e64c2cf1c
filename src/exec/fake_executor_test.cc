#include "exec/testing/fake_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"

namespace cachalot::exec {
namespace {

constexpr uint32_t kSlots = 64;

std::vector<TokenId> Tokens(uint64_t seed, size_t count) {
  SplitMix64 random(seed);
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(random.Below(1000)));
  return tokens;
}

// One sequence with page tables of its own; no block ever leaves.
struct Paged {
  Paged(size_t groups, uint32_t first_slot, uint32_t blocks) : slots(groups) {
    for (std::vector<uint32_t>& group : slots) {
      group.resize(blocks);
      std::iota(group.begin(), group.end(), first_slot);
      first_slot += blocks;
      refs.push_back({group.data(), blocks, 0});
    }
  }
  SequenceRows Rows(std::span<const TokenId> all, uint64_t begin, uint64_t end, uint32_t logit_rows = 1) const {
    return {all.subspan(begin, end - begin), begin, refs, logit_rows};
  }
  std::vector<std::vector<uint32_t>> slots;
  std::vector<PageTableRef> refs;
};

class FakeExecutorTest : public testing::Test {
 protected:
  void Make(FakeOptions options) {
    Result<std::unique_ptr<DeviceMemory>> memory = MakeCpuMemory(FakeExecutor::LayoutFor(options).slot_bytes, kSlots);
    ASSERT_TRUE(memory.ok());
    memory_ = std::move(memory).value();
    fake_ = std::make_unique<FakeExecutor>(std::move(options), *memory_);
  }
  // The logits of the last row, or nothing.
  std::vector<float> Run(std::vector<SequenceRows> rows) {
    const Result<Logits> logits = fake_->Run({rows});
    status_ = logits.status();
    if (!logits.ok() || logits->rows == 0) return {};
    const std::span<const float> last = logits->row(logits->rows - 1);
    return {last.begin(), last.end()};
  }
  Code RunCode(std::vector<SequenceRows> rows) {
    (void)Run(std::move(rows));
    return status_.code();
  }

  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<FakeExecutor> fake_;
  Status status_;
};

TEST_F(FakeExecutorTest, LogitsAreThoseOfTheTokensHoweverTheyAreChunked) {
  const std::vector<TokenId> tokens = Tokens(1, 100);
  for (const uint64_t chunk : {1u, 7u, 16u, 100u}) {
    Make({.windows = {0, 20, 20, 0}});
    const Paged paged(fake_->layout().groups.size(), 0, 7);
    for (uint64_t begin = 0; begin < tokens.size(); begin += chunk) {
      const uint64_t end = std::min<uint64_t>(begin + chunk, tokens.size());
      const std::vector<float> logits = Run({paged.Rows(tokens, begin, end)});
      ASSERT_TRUE(status_.ok()) << status_.message();
      EXPECT_EQ(logits, fake_->ExpectedLogits({tokens.data(), end}));
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      EXPECT_EQ(static_cast<TokenId>(best), fake_->ExpectedNext({tokens.data(), end}));
    }
    EXPECT_EQ(fake_->rows(), tokens.size());
    EXPECT_EQ(fake_->runs(), (tokens.size() + chunk - 1) / chunk);
    EXPECT_TRUE(fake_->violations().empty());
  }
}

TEST_F(FakeExecutorTest, EveryTokenBeforeARowCountsAndSoDoesTheSeed) {
  Make({});
  std::vector<TokenId> tokens = Tokens(2, 40);
  const std::vector<float> logits = fake_->ExpectedLogits(tokens);
  for (const size_t changed : {0u, 20u, 39u}) {
    tokens[changed] ^= 1;
    EXPECT_NE(fake_->ExpectedLogits(tokens), logits);
    tokens[changed] ^= 1;
  }
  EXPECT_EQ(fake_->ExpectedLogits(tokens), logits);
  Make({.seed = 1});
  EXPECT_NE(fake_->ExpectedLogits(tokens), logits);
}

TEST_F(FakeExecutorTest, RowsOfManySequencesGiveTheirLogitsInBatchOrder) {
  Make({});
  const std::vector<TokenId> a = Tokens(3, 20);
  const std::vector<TokenId> b = Tokens(4, 5);
  const Paged pages_a(1, 0, 2);
  const Paged pages_b(1, 10, 1);
  const SequenceRows rows[] = {
      pages_a.Rows(a, 0, 20, 2),
      pages_b.Rows(b, 0, 5, 0),
  };
  const Result<Logits> logits = fake_->Run({rows});
  ASSERT_TRUE(logits.ok());
  ASSERT_EQ(logits->rows, 2u);
  const auto expect_row = [&](uint32_t row, std::span<const TokenId> tokens) {
    const std::vector<float> expected = fake_->ExpectedLogits(tokens);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), logits->row(row).begin()));
  };
  expect_row(0, {a.data(), 19});
  expect_row(1, a);
}

TEST_F(FakeExecutorTest, FindsBlocksOfOtherTokens) {
  Make({.windows = {0, 40}});
  const std::vector<TokenId> a = Tokens(5, 64);
  const std::vector<TokenId> b = Tokens(6, 64);
  const Paged pages_a(2, 0, 5);
  Paged pages_b(2, 20, 5);
  ASSERT_EQ(RunCode({pages_a.Rows(a, 0, 60), pages_b.Rows(b, 0, 60)}), Code::kOk);
  ASSERT_EQ(RunCode({pages_b.Rows(b, 60, 61)}), Code::kOk);
  std::swap(pages_b.slots[0][1], pages_b.slots[0][2]);  // its own blocks in another order
  EXPECT_EQ(RunCode({pages_b.Rows(b, 61, 62)}), Code::kInternal);
  std::swap(pages_b.slots[0][1], pages_b.slots[0][2]);
  for (size_t group = 0; group < 2; ++group) {
    const uint32_t right = std::exchange(pages_b.slots[group][2], pages_a.slots[group][2]);  // another's
    EXPECT_EQ(RunCode({pages_b.Rows(b, 61, 62)}), Code::kInternal);
    pages_b.slots[group][2] = pages_b.slots[1 - group][2];  // the right tokens of the wrong group
    EXPECT_EQ(RunCode({pages_b.Rows(b, 61, 62)}), Code::kInternal);
    pages_b.slots[group][2] = right;
  }
  EXPECT_EQ(fake_->violations().size(), 5u);
  EXPECT_EQ(RunCode({pages_b.Rows(b, 61, 62)}), Code::kOk);
}

TEST_F(FakeExecutorTest, FindsStaleBytesMissingBlocksAndTwoWritersOfOneBlock) {
  Make({.windows = {0, 32}});
  const std::vector<TokenId> tokens = Tokens(7, 64);
  Paged paged(2, 0, 4);
  ASSERT_EQ(RunCode({paged.Rows(tokens, 0, 40)}), Code::kOk);
  EXPECT_EQ(RunCode({paged.Rows(tokens, 41, 42)}), Code::kInternal);  // nobody wrote 40
  EXPECT_EQ(RunCode({paged.Rows(tokens, 40, 41), paged.Rows(tokens, 40, 41)}), Code::kInternal);
  paged.refs[1].slots += 1;
  paged.refs[1].slot_count -= 1;
  paged.refs[1].first_block = 1;
  EXPECT_EQ(RunCode({paged.Rows(tokens, 40, 41)}), Code::kInternal);  // the row at 40 sees 9 to 40
  ASSERT_EQ(fake_->violations().size(), 3u);
  EXPECT_NE(fake_->violations()[2].find("group 1 has no block for position 9"), std::string::npos);
}

TEST_F(FakeExecutorTest, WhatLeftTheWindowIsNotMissed) {
  Make({.windows = {32}});
  const std::vector<TokenId> tokens = Tokens(8, 80);
  Paged paged(1, 0, 5);
  ASSERT_EQ(RunCode({paged.Rows(tokens, 0, 64)}), Code::kOk);
  paged.refs[0] = {paged.slots[0].data() + 2, 3, 2};
  EXPECT_EQ(Run({paged.Rows(tokens, 64, 70)}), fake_->ExpectedLogits({tokens.data(), 70}));
}

TEST_F(FakeExecutorTest, AFailedRunDirtiesItsOwnRowsOnly) {
  Make({.windows = {0, 16}});
  const std::vector<TokenId> tokens = Tokens(9, 40);
  const Paged paged(2, 0, 3);
  ASSERT_EQ(RunCode({paged.Rows(tokens, 0, 20)}), Code::kOk);
  fake_->FailRun(2, Unavailable("the device is gone"));
  ASSERT_EQ(RunCode({paged.Rows(tokens, 20, 25)}), Code::kOk);
  ASSERT_EQ(RunCode({paged.Rows(tokens, 25, 30)}), Code::kUnavailable);
  EXPECT_EQ(status_.message(), "the device is gone");
  EXPECT_EQ(RunCode({paged.Rows(tokens, 30, 31)}), Code::kInternal);  // as if the failed rows had been committed
  EXPECT_EQ(Run({paged.Rows(tokens, 25, 30)}), fake_->ExpectedLogits({tokens.data(), 30}));
  EXPECT_EQ(fake_->runs(), 5u);
  EXPECT_EQ(fake_->rows(), 30u);
}

TEST_F(FakeExecutorTest, BatchesBeyondTheLimitsAreInvalidAndWriteNothing) {
  Make({.vocabulary = 1000, .context_tokens = 48, .limits = {.rows = 20, .logit_rows = 2}});
  std::vector<TokenId> tokens = Tokens(10, 60);
  const Paged paged(1, 0, 4);
  const std::vector<std::byte> before(memory_->arena(), memory_->arena() + kSlots * memory_->slot_bytes());
  EXPECT_EQ(RunCode({paged.Rows(tokens, 0, 21)}), Code::kInvalid);
  EXPECT_EQ(RunCode({paged.Rows(tokens, 0, 10, 3)}), Code::kInvalid);
  EXPECT_EQ(RunCode({paged.Rows(tokens, 0, 1, 2)}), Code::kInvalid);
  EXPECT_EQ(RunCode({paged.Rows(tokens, 0, 0, 0)}), Code::kInvalid);
  EXPECT_EQ(RunCode({paged.Rows(tokens, 40, 49)}), Code::kInvalid);
  EXPECT_EQ(RunCode({Paged(2, 0, 1).Rows(tokens, 0, 1)}), Code::kInvalid);
  tokens[3] = 1000;
  EXPECT_EQ(RunCode({paged.Rows(tokens, 0, 5)}), Code::kInvalid);
  EXPECT_EQ(std::memcmp(before.data(), memory_->arena(), before.size()), 0);
  EXPECT_EQ(fake_->rows(), 0u);
}

TEST_F(FakeExecutorTest, ReadingASlotBeforeItsCopyIsDoneIsFound) {
  ManualClock clock;
  const FakeOptions options;
  Result<std::unique_ptr<DeviceMemory>> memory =
      MakeSimLinkMemory(FakeExecutor::LayoutFor(options).slot_bytes, kSlots, {}, clock);
  ASSERT_TRUE(memory.ok());
  memory_ = std::move(memory).value();
  fake_ = std::make_unique<FakeExecutor>(options, *memory_);
  const std::vector<TokenId> tokens = Tokens(11, 30);
  Paged paged(1, 0, 2);
  ASSERT_EQ(RunCode({paged.Rows(tokens, 0, 20)}), Code::kOk);
  const BlockCopy copy[] = {{SlotId(1), SlotId(5)}};
  const CopyTicket ticket = memory_->CopyWithin(copy);
  paged.slots[0][1] = 5;
  EXPECT_EQ(RunCode({paged.Rows(tokens, 20, 21)}), Code::kInternal);
  EXPECT_TRUE(memory_->Wait(ticket).ok());
  EXPECT_EQ(Run({paged.Rows(tokens, 20, 21)}), fake_->ExpectedLogits({tokens.data(), 21}));
}

}  // namespace
}  // namespace cachalot::exec
