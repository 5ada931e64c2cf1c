#include "kv/slot_transfers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"

namespace cachalot::kv {
namespace {

constexpr SlotId kSlot{2};

TEST(SlotTransfers, AComputedSlotIsFreedAtOnceWhenNothingCopies) {
  SlotTransfers transfers(4);
  transfers.Take(kSlot);
  EXPECT_EQ(transfers.slot(kSlot).state, SlotState::kComputing);
  transfers.Seal(kSlot);
  EXPECT_EQ(transfers.slot(kSlot).state, SlotState::kSealed);
  EXPECT_EQ(transfers.Release(kSlot), SlotFate::kFreed);
  EXPECT_EQ(transfers.slot(kSlot), SlotTransfers::Slot());
}

TEST(SlotTransfers, AReleasedSlotStaysUntilItsLastCopyOutEnds) {
  SlotTransfers transfers(4);
  transfers.Take(kSlot);
  transfers.Seal(kSlot);
  transfers.BeginOut(kSlot);
  transfers.BeginOut(kSlot);
  EXPECT_EQ(transfers.Release(kSlot), SlotFate::kStays);
  EXPECT_EQ(transfers.deferred(), 1u);
  EXPECT_EQ(transfers.EndOut(kSlot), SlotFate::kStays);
  EXPECT_EQ(transfers.slot(kSlot).state, SlotState::kSealed);
  EXPECT_EQ(transfers.EndOut(kSlot), SlotFate::kFreed);
  EXPECT_EQ(transfers.deferred(), 0u);
  EXPECT_EQ(transfers.copying(), 0u);
}

TEST(SlotTransfers, ACancelledLoadHoldsItsSlotUntilItTouchesNothing) {
  SlotTransfers transfers(4);
  transfers.Take(kSlot);
  transfers.BeginIn(kSlot);
  EXPECT_EQ(transfers.Release(kSlot), SlotFate::kStays);
  EXPECT_EQ(transfers.slot(kSlot).state, SlotState::kLoading);
  EXPECT_EQ(transfers.EndIn(kSlot), SlotFate::kFreed);
}

TEST(SlotTransfers, ASlotIsLoadedInPartsAndThenSealed) {
  SlotTransfers transfers(4);
  transfers.Take(kSlot);
  transfers.BeginIn(kSlot);
  transfers.BeginIn(kSlot);
  EXPECT_EQ(transfers.copying(), 1u);
  EXPECT_EQ(transfers.EndIn(kSlot), SlotFate::kStays);
  EXPECT_EQ(transfers.slot(kSlot).state, SlotState::kLoading);
  EXPECT_EQ(transfers.EndIn(kSlot), SlotFate::kStays);
  transfers.Seal(kSlot);
  EXPECT_EQ(transfers.slot(kSlot).state, SlotState::kSealed);
  EXPECT_EQ(transfers.copying(), 0u);
}

TEST(SlotTransfersDeathTest, WhatWouldMixBytesStopsTheProcess) {
  SlotTransfers transfers(4);
  EXPECT_DEATH(transfers.BeginOut(kSlot), "kSealed");
  transfers.Take(kSlot);
  EXPECT_DEATH(transfers.BeginOut(kSlot), "kSealed");
  transfers.BeginIn(kSlot);
  EXPECT_DEATH(transfers.Seal(kSlot), "kComputing");
  ASSERT_EQ(transfers.EndIn(kSlot), SlotFate::kStays);
  transfers.Seal(kSlot);
  EXPECT_DEATH(transfers.BeginIn(kSlot), "kComputing");
  transfers.BeginOut(kSlot);
  ASSERT_EQ(transfers.Release(kSlot), SlotFate::kStays);
  EXPECT_DEATH(transfers.BeginOut(kSlot), "released");
  EXPECT_DEATH((void)transfers.Release(kSlot), "released");
  EXPECT_DEATH(transfers.TakeBack(SlotId(3)), "released");
  EXPECT_DEATH(transfers.Take(kSlot), "kFree");
}

TEST(SlotTransfers, ViolationsNameWhatThePoolSeesOtherwise) {
  SlotTransfers transfers(2);
  transfers.Take(SlotId(0));
  transfers.BeginIn(SlotId(0));
  const std::vector<SlotId> free_list = {SlotId(1)};
  EXPECT_TRUE(Violations(transfers, free_list, std::vector<uint32_t>{1, 0}).empty());
  EXPECT_EQ(Violations(transfers, {}, std::vector<uint32_t>{1, 0}).size(), 1u);
  const std::vector<SlotId> both = {SlotId(0), SlotId(1)};
  EXPECT_EQ(Violations(transfers, both, std::vector<uint32_t>{0, 0}).size(), 1u);
  ASSERT_EQ(transfers.Release(SlotId(0)), SlotFate::kStays);
  EXPECT_EQ(Violations(transfers, free_list, std::vector<uint32_t>{1, 0}).size(), 1u);
}

// Against counts of copies: a slot is free exactly when no reference and no copy is left, whatever the order.
TEST(SlotTransfers, RandomLivesAgreeWithCountsOfCopies) {
  constexpr uint32_t kSlots = 6;
  struct Life {
    bool referenced = false;
    bool sealed = false;
    int in = 0;
    int out = 0;
    bool held() const { return referenced || in > 0 || out > 0; }
  };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SplitMix64 random(seed);
    SlotTransfers transfers(kSlots);
    std::vector<Life> lives(kSlots);
    for (int op = 0; op < 5000; ++op) {
      const SlotId slot(static_cast<uint32_t>(random.Below(kSlots)));
      Life& life = lives[slot.value];
      SlotFate fate = SlotFate::kStays;
      const bool was_held = life.held();
      switch (random.Below(7)) {
        case 0:
          if (was_held) continue;
          transfers.Take(slot);
          life = {.referenced = true};
          break;
        case 1:
          if (!life.referenced || life.sealed) continue;
          transfers.BeginIn(slot);
          ++life.in;
          break;
        case 2:
          if (!life.referenced || life.in > 0 || life.sealed) continue;
          transfers.Seal(slot);
          life.sealed = true;
          break;
        case 3:
          if (!life.referenced || !life.sealed) continue;
          transfers.BeginOut(slot);
          ++life.out;
          break;
        case 4:
          if (life.in > 0) {
            --life.in;
            fate = transfers.EndIn(slot);
          } else if (life.out > 0) {
            --life.out;
            fate = transfers.EndOut(slot);
          }
          break;
        case 5:
          if (life.referenced || !life.sealed || life.out == 0) continue;
          transfers.TakeBack(slot);
          life.referenced = true;
          break;
        default:
          if (!life.referenced) continue;
          life.referenced = false;
          fate = transfers.Release(slot);
      }
      ASSERT_EQ(fate == SlotFate::kFreed, was_held && !life.held());
      if (!life.held()) life = {};
      std::vector<SlotId> free_list;
      std::vector<uint32_t> references;
      uint32_t deferred = 0;
      for (uint32_t i = 0; i < kSlots; ++i) {
        if (!lives[i].held()) free_list.push_back(SlotId(i));
        references.push_back(lives[i].referenced);
        deferred += lives[i].held() && !lives[i].referenced;
      }
      ASSERT_EQ(Violations(transfers, free_list, references), std::vector<std::string>());
      ASSERT_EQ(transfers.deferred(), deferred);
    }
  }
}

}  // namespace
}  // namespace cachalot::kv
