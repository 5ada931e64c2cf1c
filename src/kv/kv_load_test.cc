// Loads whose slots are filled by copies that go on after the sequence has joined them, or was given up.
#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "kv/kv_manager.h"
#include "kv/kv_snapshot.h"

namespace cachalot::kv {
namespace {

constexpr uint32_t kSlots = 40;

std::vector<TokenId> Tokens(uint32_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& t : tokens) t = static_cast<TokenId>(random.Below(1000));
  return tokens;
}

class KvLoad : public testing::TestWithParam<std::vector<uint32_t>> {
 protected:
  // A sequence whose first 80 of 90 tokens are being copied to its slots.
  void Begin() {
    id_ = kv_.Create();
    kv_.Attach(id_, tokens_, tokens_.size() - 1);
    kv_.BeginLoad(id_, 80);
    cells_ = kv_.ClaimLoad(id_, 0).value();
    for (const LoadCell& cell : cells_) kv_.BeginCopyIn(cell.slot);
    ExpectSound();
  }
  void EndCopies() {
    for (const LoadCell& cell : cells_) kv_.EndCopyIn(cell.slot);
    ExpectSound();
  }
  void ExpectSound() const {
    for (const std::string& violation : Violations(kv_.Snapshot())) ADD_FAILURE() << violation;
  }
  uint64_t Found() const { return kv_.Find({}, tokens_, tokens_.size()).tokens; }
  StepReservation Reserve(SequenceId id, const std::vector<TokenId>& all, uint64_t from) {
    growth_.push_back({id, static_cast<uint32_t>(all.size() - from), std::span(all).subspan(from)});
    return kv_.Reserve(growth_).value();
  }

  KvManager kv_{{.block_tokens = 16, .windows = GetParam(), .slots = kSlots}, MakeEvictionPolicy("lru").value()};
  const std::vector<TokenId> tokens_ = Tokens(90, 1), others_ = Tokens(30, 2);
  SequenceId id_{0};
  std::vector<LoadCell> cells_;
  std::vector<Growth> growth_;
};

TEST_P(KvLoad, WhatHasJoinedIsFoundOnceItsStepCommits) {
  Begin();
  kv_.JoinLoad(id_, std::span(tokens_).first(80));
  EXPECT_EQ(kv_.Length(id_), 80u);
  StepReservation step = Reserve(id_, tokens_, 80);
  EXPECT_EQ(Found(), 0u);
  EndCopies();
  std::move(step).Commit();
  EXPECT_EQ(kv_.Length(id_), 90u);
  EXPECT_EQ(Found(), 90u);
  kv_.Free(id_);
  ExpectSound();
  EXPECT_EQ(kv_.available_slots(), kSlots);
}

TEST_P(KvLoad, WhatIsDiscardedInAStepLeavesTheOthersAndIsNotFound) {
  Begin();
  const SequenceId other = kv_.Create();
  kv_.Attach(other, others_, others_.size() - 1);
  kv_.JoinLoad(id_, std::span(tokens_).first(80));
  growth_.push_back({other, 30, others_});
  StepReservation step = Reserve(id_, tokens_, 80);
  kv_.Discard(id_, 0);
  std::move(step).Commit();
  ExpectSound();
  EXPECT_EQ(kv_.Length(other), 30u);
  EXPECT_EQ(kv_.Find({}, others_, 30).tokens, 30u);
  EXPECT_EQ(Found(), 0u);
  EXPECT_EQ(kv_.deferred_slots(), cells_.size());
  EndCopies();
  kv_.Free(other);
  EXPECT_EQ(kv_.deferred_slots(), 0u);
  EXPECT_EQ(kv_.available_slots(), kSlots);
}

TEST_P(KvLoad, SlotsThatAreGivenUpComeFreeWhenTheirCopiesEnd) {
  Begin();
  kv_.Free(id_);
  ExpectSound();
  EXPECT_EQ(kv_.deferred_slots(), cells_.size());
  EXPECT_EQ(kv_.free_slots(), kSlots - cells_.size());
  EXPECT_EQ(kv_.leaving_slots(), 0u);
  EndCopies();
  EXPECT_EQ(kv_.free_slots(), kSlots);
}

TEST_P(KvLoad, WhoTakesItOverGoesOnWithItsSlotsAndIsAwaitedInstead) {
  Begin();
  const uint32_t free = kv_.free_slots(), in_use = kv_.full_slots_in_use();
  const SequenceId to = kv_.Create();
  kv_.MoveLoad(id_, to);
  EXPECT_EQ(kv_.Find({}, tokens_, 89).awaited, 0u) << "nobody is going to write it";
  kv_.Attach(to, tokens_, 89, /*whole=*/true);
  ExpectSound();
  EXPECT_EQ(kv_.free_slots(), free);
  EXPECT_EQ(kv_.full_slots_in_use(), in_use);
  EXPECT_EQ(kv_.Snapshot().sequences.size(), 1u) << "the other has ended";
  EXPECT_EQ(kv_.Find({}, tokens_, 89).pending.writer, to);
  EndCopies();
  kv_.EndLoad(to, std::span(tokens_).first(80));
  EXPECT_EQ(kv_.Length(to), 80u);
  for (const LoadCell& cell : cells_) {
    const PageTableRef pages = kv_.Pages(to, cell.group);
    if (cell.block < pages.first_block) continue;  // it left its window
    EXPECT_EQ(pages.slots[cell.block - pages.first_block], cell.slot.value);
  }
  EXPECT_EQ(Found(), 80u);
  kv_.Free(to);
  ExpectSound();
  EXPECT_EQ(kv_.available_slots(), kSlots);
}

// From the block that the other had come down to.
TEST_P(KvLoad, WhoTakesItOverClaimsWhatIsStillToComeAndGivesUpWhatItComputes) {
  id_ = kv_.Create();
  kv_.Attach(id_, tokens_, 89);
  kv_.BeginLoad(id_, 80);
  std::vector<LoadCell> above = kv_.ClaimLoad(id_, 3).value();
  const SequenceId to = kv_.Create();
  kv_.MoveLoad(id_, to);
  kv_.Attach(to, tokens_, 89, /*whole=*/true);
  const std::vector<LoadCell> below = kv_.ClaimLoad(to, 1).value();
  ExpectSound();
  for (const LoadCell& cell : below) EXPECT_TRUE(cell.block == 1 || cell.block == 2) << cell.block;
  kv_.DropLoad(to, 2);
  StepReservation step = Reserve(to, std::vector(tokens_.begin(), tokens_.begin() + 32), 0);
  std::move(step).Commit();
  kv_.EndLoad(to, std::span(tokens_).subspan(32, 48));
  ExpectSound();
  EXPECT_EQ(kv_.Length(to), 80u);
  EXPECT_EQ(Found(), 80u);
}

TEST_P(KvLoad, WhatComesIsOverwrittenAfterwardsIfWhoTakesItOverWishesThat) {
  Begin();
  const SequenceId to = kv_.Create({}, {.scrub = true});
  kv_.MoveLoad(id_, to);
  kv_.Attach(to, tokens_, 89, /*whole=*/true);
  EXPECT_TRUE(kv_.TakeToScrub().empty());
  kv_.Free(to);
  EndCopies();
  EXPECT_EQ(kv_.TakeToScrub().size(), cells_.size());
}

INSTANTIATE_TEST_SUITE_P(Windows, KvLoad, testing::Values(std::vector<uint32_t>{0}, std::vector<uint32_t>{0, 24, 40}));

}  // namespace
}  // namespace cachalot::kv
