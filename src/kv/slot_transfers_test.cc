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
  transfers.Compute(kSlot);
  EXPECT_EQ(transfers.slot(kSlot).state, SlotState::kComputing);
  transfers.Seal(kSlot);
  EXPECT_EQ(transfers.slot(kSlot).state, SlotState::kSealed);
  EXPECT_EQ(transfers.Release(kSlot), SlotFate::kFreed);
  EXPECT_EQ(transfers.slot(kSlot), SlotTransfers::Slot());
}

TEST(SlotTransfers, AReleasedSlotStaysUntilItsLastCopyOutEnds) {
  SlotTransfers transfers(4);
  transfers.Compute(kSlot);
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
  transfers.Load(kSlot);
  EXPECT_EQ(transfers.Release(kSlot), SlotFate::kStays);
  EXPECT_EQ(transfers.slot(kSlot).state, SlotState::kLoading);
  EXPECT_EQ(transfers.EndIn(kSlot, CopyInEnd::kLost), SlotFate::kFreed);
}

TEST(SlotTransfers, ALoadedSlotIsSealedAndALostOneIsToBeComputed) {
  SlotTransfers transfers(4);
  transfers.Load(SlotId(0));
  transfers.Load(SlotId(1));
  EXPECT_EQ(transfers.copying(), 2u);
  EXPECT_EQ(transfers.EndIn(SlotId(0), CopyInEnd::kArrived), SlotFate::kStays);
  EXPECT_EQ(transfers.EndIn(SlotId(1), CopyInEnd::kLost), SlotFate::kStays);
  EXPECT_EQ(transfers.slot(SlotId(0)).state, SlotState::kSealed);
  EXPECT_EQ(transfers.slot(SlotId(1)).state, SlotState::kComputing);
}

TEST(SlotTransfersDeathTest, WhatWouldMixBytesStopsTheProcess) {
  SlotTransfers transfers(4);
  EXPECT_DEATH(transfers.BeginOut(kSlot), "kSealed");
  transfers.Compute(kSlot);
  EXPECT_DEATH(transfers.BeginOut(kSlot), "kSealed");
  EXPECT_DEATH(transfers.Load(kSlot), "kFree");
  transfers.Seal(kSlot);
  transfers.BeginOut(kSlot);
  ASSERT_EQ(transfers.Release(kSlot), SlotFate::kStays);
  EXPECT_DEATH(transfers.BeginOut(kSlot), "released");
  EXPECT_DEATH((void)transfers.Release(kSlot), "released");
  EXPECT_DEATH(transfers.Compute(kSlot), "kFree");
}

TEST(SlotTransfers, ViolationsNameWhatThePoolSeesOtherwise) {
  SlotTransfers transfers(2);
  transfers.Load(SlotId(0));
  const std::vector<SlotId> free_list = {SlotId(1)};
  EXPECT_TRUE(Violations(transfers, free_list, std::vector<uint32_t>{1, 0}).empty());
  EXPECT_EQ(Violations(transfers, {}, std::vector<uint32_t>{1, 0}).size(), 1u);
  const std::vector<SlotId> both = {SlotId(0), SlotId(1)};
  EXPECT_EQ(Violations(transfers, both, std::vector<uint32_t>{0, 0}).size(), 1u);
  ASSERT_EQ(transfers.Release(SlotId(0)), SlotFate::kStays);
  EXPECT_EQ(Violations(transfers, free_list, std::vector<uint32_t>{1, 0}).size(), 1u);
}

// Against lists of copies by name: a slot is free exactly when no reference and no copy is left, whatever the order.
TEST(SlotTransfers, RandomLivesAgreeWithListsOfCopies) {
  constexpr uint32_t kSlots = 6;
  struct Life {
    bool referenced = false;
    bool sealed = false;
    bool loading = false;
    int out = 0;
    bool held() const { return referenced || loading || out > 0; }
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
      switch (random.Below(6)) {
        case 0:
          if (was_held) continue;
          transfers.Compute(slot);
          life = {.referenced = true};
          break;
        case 1:
          if (was_held) continue;
          transfers.Load(slot);
          life = {.referenced = true, .loading = true};
          break;
        case 2:
          if (!life.referenced || life.loading || life.sealed) continue;
          transfers.Seal(slot);
          life.sealed = true;
          break;
        case 3:
          if (!life.referenced || !life.sealed) continue;
          transfers.BeginOut(slot);
          ++life.out;
          break;
        case 4:
          if (life.loading) {
            life.sealed = random.Below(2) == 0;
            life.loading = false;
            fate = transfers.EndIn(slot, life.sealed ? CopyInEnd::kArrived : CopyInEnd::kLost);
          } else if (life.out > 0) {
            --life.out;
            fate = transfers.EndOut(slot);
          }
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
