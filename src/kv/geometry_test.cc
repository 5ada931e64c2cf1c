#include "kv/geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/kv_layout.h"
#include "base/random.h"
#include "kv/kv_manager.h"

namespace cachalot::kv {
namespace {

constexpr uint32_t kPlenty = 700;

struct Case {
  uint32_t block_tokens;
  std::vector<uint32_t> windows;
};

const Case kCases[] = {
    {16, {0}},   {16, {0, 0, 0}},    {16, {0, 32}}, {16, {20}}, {16, {0, 1, 16, 17}},
    {4, {6, 9}}, {5, {0, 7, 7, 12}}, {1, {0, 3}},
};

KvGeometry GeometryFor(const Case& c, uint32_t slots = kPlenty) {
  return {.block_tokens = c.block_tokens, .windows = c.windows, .slots = slots};
}

uint64_t Used(const KvManager& manager) { return manager.geometry().slots - manager.free_slots(); }

// Slots in use while all of `sequences` grow by `tokens` in one step; the step is then committed or forgotten.
uint64_t UsedInStep(KvManager& manager, const std::vector<SequenceId>& sequences, uint32_t tokens, bool commit) {
  std::vector<Growth> growth;
  for (const SequenceId id : sequences) growth.push_back({id, tokens});
  Result<StepReservation> step = manager.Reserve(growth);
  EXPECT_TRUE(step.ok());
  const uint64_t used = Used(manager);
  if (commit) std::move(*step).Commit();
  return used;
}

// The costliest step of `tokens` at most, tried at every length from the sequences' own to `total`, all in lockstep.
uint64_t CostliestStep(KvManager& manager, const std::vector<SequenceId>& sequences, uint64_t total, uint32_t step) {
  uint64_t most = Used(manager);
  for (uint64_t length = manager.Length(sequences[0]); length < total; ++length) {
    const auto tokens = static_cast<uint32_t>(std::min<uint64_t>(step, total - length));
    most = std::max(most, UsedInStep(manager, sequences, tokens, false));
    most = std::max(most, UsedInStep(manager, sequences, 1, true));
  }
  return most;
}

TEST(Geometry, ComesFromTheLayout) {
  KvShape shape;
  for (uint32_t i = 0; i < 18; ++i) shape.layers.push_back({1, 256, 256, i % 6 == 5 ? 0u : 512u});
  const Result<KvLayout> layout = PlanKvLayout(shape, 32'768);
  ASSERT_TRUE(layout.ok());
  const KvGeometry geometry = GeometryOf(*layout, 77);
  EXPECT_EQ(geometry.block_tokens, 16u);
  EXPECT_EQ(geometry.slots, 77u);
  EXPECT_EQ(geometry.windows, (std::vector<uint32_t>{0, 512, 512, 512, 512, 512}));
}

TEST(Geometry, SlotsHeldIsWhatAManagerHoldsAtEveryLength) {
  for (const Case& c : kCases) {
    KvManager manager(GeometryFor(c));
    const SequenceId id = manager.Create();
    for (uint64_t length = 0; length <= 130; ++length) {
      EXPECT_EQ(SlotsHeld(manager.geometry(), length), Used(manager)) << "at " << length;
      UsedInStep(manager, {id}, 1, true);
    }
  }
}

TEST(Geometry, PeakSlotsIsTheMostThatAnyGrowthTakes) {
  for (const Case& c : kCases) {
    for (const uint32_t step : {1u, 2u, 7u, 16u, 17u, 40u, 100u, 1000u}) {
      for (const uint64_t total : {0u, 1u, 2u, 15u, 16u, 17u, 31u, 32u, 33u, 36u, 48u, 49u, 64u, 65u, 79u, 90u}) {
        KvManager manager(GeometryFor(c));
        const SequenceId id = manager.Create();
        ASSERT_EQ(PeakSlots(manager.geometry(), total, step), CostliestStep(manager, {id}, total, step))
            << "block " << c.block_tokens << ", " << c.windows.size() << " groups, step " << step << ", total "
            << total;
      }
    }
  }
}

TEST(Geometry, AnyChunkingAndThenDecodingStaysWithinPeakSlots) {
  SplitMix64 random(7);
  for (const Case& c : kCases) {
    for (int round = 0; round < 60; ++round) {
      const auto step = static_cast<uint32_t>(1 + random.Below(50));
      const uint64_t prompt = 1 + random.Below(150);
      const uint64_t total = prompt + random.Below(100);
      KvManager manager(GeometryFor(c));
      const SequenceId id = manager.Create();
      const uint64_t peak = PeakSlots(manager.geometry(), total, step);
      uint64_t length = random.Below(std::min<uint64_t>(step, prompt)) + 1;  // any alignment
      EXPECT_LE(UsedInStep(manager, {id}, static_cast<uint32_t>(length), true), peak);
      while (length < prompt) {
        const auto tokens = static_cast<uint32_t>(std::min<uint64_t>(step, prompt - length));
        EXPECT_LE(UsedInStep(manager, {id}, tokens, true), peak);
        length += tokens;
      }
      for (; length < total; ++length) EXPECT_LE(UsedInStep(manager, {id}, 1, true), peak);
    }
  }
}

std::vector<SequenceId> ForkedAt(KvManager& manager, uint64_t prompt, uint32_t sequences) {
  std::vector<SequenceId> ids{manager.Create()};
  for (uint64_t i = 0; i < prompt; ++i) UsedInStep(manager, ids, 1, true);
  while (ids.size() < sequences) ids.push_back(manager.Fork(ids[0]));
  return ids;
}

TEST(Geometry, PeakSlotsForkedIsReachedByForksInLockstep) {
  for (const Case& c : kCases) {
    for (const uint32_t sequences : {1u, 2u, 5u}) {
      for (const uint32_t step : {1u, 16u, 33u}) {
        for (const uint64_t prompt : {0u, 1u, 15u, 16u, 17u, 50u}) {
          for (const uint64_t growth : {0u, 1u, 14u, 16u, 60u}) {
            KvManager prefill(GeometryFor(c));
            const uint64_t before = CostliestStep(prefill, {prefill.Create()}, prompt, step);
            KvManager manager(GeometryFor(c));
            const std::vector<SequenceId> ids = ForkedAt(manager, prompt, sequences);
            const uint64_t after = CostliestStep(manager, ids, prompt + growth, step);
            ASSERT_EQ(PeakSlotsForked(manager.geometry(), prompt, prompt + growth, sequences, step),
                      std::max(before, after))
                << "block " << c.block_tokens << ", " << c.windows.size() << " groups, n " << sequences << ", step "
                << step << ", prompt " << prompt << ", growth " << growth;
          }
        }
      }
    }
  }
}

TEST(Geometry, ForksThatGrowAtTheirOwnPaceStayWithinPeakSlotsForked) {
  SplitMix64 random(11);
  for (const Case& c : kCases) {
    for (int round = 0; round < 60; ++round) {
      const auto step = static_cast<uint32_t>(1 + random.Below(20));
      const uint64_t prompt = random.Below(80);
      const uint64_t total = prompt + random.Below(80);
      const auto sequences = static_cast<uint32_t>(1 + random.Below(6));
      KvManager manager(GeometryFor(c));
      std::vector<SequenceId> ids = ForkedAt(manager, prompt, sequences);
      const uint64_t peak = PeakSlotsForked(manager.geometry(), prompt, total, sequences, step);
      for (int turn = 0; turn < 200 && !ids.empty(); ++turn) {
        std::vector<Growth> growth;
        for (const SequenceId id : ids) {
          const uint64_t left = total - manager.Length(id);
          const uint64_t tokens = random.Below(3) == 0 ? random.Below(step + 1) : random.Below(2);
          if (random.Below(2) == 0) growth.push_back({id, static_cast<uint32_t>(std::min(tokens, left))});
        }
        {
          Result<StepReservation> reserved = manager.Reserve(growth);
          ASSERT_TRUE(reserved.ok());
          ASSERT_LE(Used(manager), peak);
          if (random.Below(5) != 0) std::move(*reserved).Commit();
        }
        if (random.Below(60) == 0) {
          const size_t victim = random.Below(ids.size());
          manager.Free(ids[victim]);
          ids.erase(ids.begin() + static_cast<ptrdiff_t>(victim));
        }
      }
    }
  }
}

TEST(Geometry, LargestSequenceIsTheLastOneThatFits) {
  for (const Case& c : kCases) {
    for (const uint32_t step : {1u, 16u, 50u}) {
      for (uint32_t slots = 0; slots < 40; ++slots) {
        const KvGeometry geometry = GeometryFor(c, slots);
        const uint64_t largest = LargestSequence(geometry, step);
        EXPECT_LE(PeakSlots(geometry, largest, step), slots);
        if (largest < kMaxSequenceBlocks * c.block_tokens) {
          EXPECT_GT(PeakSlots(geometry, largest + 1, step), slots);
        } else {
          EXPECT_EQ(std::count(c.windows.begin(), c.windows.end(), 0u), 0);
        }
      }
    }
  }
}

TEST(Geometry, HugeLengthsDoNotWrapAround) {
  const KvGeometry geometry{.block_tokens = 16, .windows = {0, 512}, .slots = 100};
  EXPECT_GT(PeakSlots(geometry, UINT64_MAX, 512), uint64_t{1} << 59);
  EXPECT_GT(PeakSlotsForked(geometry, 5, UINT64_MAX, 2, UINT32_MAX), uint64_t{1} << 59);
  EXPECT_GT(SlotsHeld(geometry, UINT64_MAX), uint64_t{1} << 59);
}

}  // namespace
}  // namespace cachalot::kv
