#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/random.h"
#include "kv/identity.h"
#include "kv/kv_manager.h"
#include "kv/kv_snapshot.h"
#include "kv/shadow_index.h"

namespace cachalot::kv {
namespace {

constexpr Digest kIdentity = {7};

std::vector<TokenId> Tokens(uint32_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& t : tokens) t = static_cast<TokenId>(random.Below(1000));
  return tokens;
}

struct Rig {
  explicit Rig(std::vector<uint32_t> windows, uint32_t slots)
      : manager({.block_tokens = 16, .windows = std::move(windows), .slots = slots},
                MakeEvictionPolicy("lru").value()) {
    manager.OnLeaving(kIdentity, [this](const LeavingBlock& block) {
      left.push_back(block.key);
      until.push_back(block.wanted_until);
      if (!copies) return;
      given_up.push_back({block.key, {block.slots.begin(), block.slots.end()}, block.wanted_until});
      for (const uint32_t slot : block.slots) {
        if (slot == kNoSlot) continue;
        manager.BeginCopyOut(SlotId(slot));
        copying.push_back(SlotId(slot));
      }
    });
  }

  void Run(const PrefixScope& scope, const std::vector<TokenId>& tokens, const RetentionHints& hints = {}) {
    const SequenceId id = manager.Create(scope, hints);
    const uint64_t there = manager.Attach(id, tokens, tokens.size() - 1).tokens;
    const auto count = static_cast<uint32_t>(tokens.size() - there);
    const Growth growth{id, count, std::span(tokens).subspan(there)};
    Result<StepReservation> step = manager.Reserve({&growth, 1});
    ASSERT_TRUE(step.ok()) << step.status().message();
    std::move(step).value().Commit();
    manager.Free(id);
    ExpectSound();
  }
  void EndOne() {
    const SlotId slot = copying.front();
    manager.EndCopyOut(slot);
    copying.pop_front();
    if (std::ranges::find(copying, slot) == copying.end()) {
      for (GivenUpBlock& block : given_up) std::ranges::replace(block.slots, slot.value, kNoSlot);
    }
    ExpectSound();
  }
  std::optional<GivenUpBlock> Find(const Digest& key) const {
    std::optional<GivenUpBlock> found;
    for (const GivenUpBlock& block : given_up) {
      if (block.key != key) continue;
      if (!found) found = block;
      for (size_t group = 0; group < block.slots.size(); ++group) {
        found->slots[group] = std::min(found->slots[group], block.slots[group]);
      }
    }
    return found;
  }
  size_t TakeBack(const std::vector<TokenId>& tokens) {
    const size_t taken =
        manager.TakeBack(kIdentity, {}, tokens, [this](const Digest& key) { return Find(key); }).size();
    ExpectSound();
    return taken;
  }
  void ExpectSound() const {
    for (const std::string& violation : Violations(manager.Snapshot())) ADD_FAILURE() << violation;
  }

  KvManager manager;
  bool copies = false;
  std::vector<Nanos> until;
  std::vector<Digest> left;
  std::deque<SlotId> copying;
  std::vector<GivenUpBlock> given_up;
};

TEST(KvLeave, BlocksLeaveUnderTheirKeysTheLastFirst) {
  Rig rig({0}, 10);
  const PrefixScope scope{.salt = {1, 2}, .public_tokens = 20};
  const std::vector<TokenId> tokens = Tokens(70, 1);
  rig.Run(scope, tokens);
  rig.manager.EvictAhead(10);
  std::vector<Digest> keys = BlockKeys(kIdentity, scope, 16, tokens, Tail::kShortToo);
  std::ranges::reverse(keys);
  EXPECT_EQ(rig.left, keys);
}

TEST(KvLeave, WhatNobodyWillWantLeavesUnheard) {
  Rig rig({0}, 20);
  rig.Run({}, Tokens(40, 1), {.priority = RetentionPriority::kLow});
  rig.Run({}, Tokens(40, 3), {.scrub = true});
  rig.manager.EvictAhead(20);
  EXPECT_EQ(rig.manager.free_slots(), 20u);
  EXPECT_TRUE(rig.left.empty());
  rig.Run({}, Tokens(40, 4));
  rig.manager.EvictIdle({}, Tokens(40, 4), 0, Loss::kCleared);
  EXPECT_EQ(rig.manager.free_slots(), 20u);
  EXPECT_TRUE(rig.left.empty());
}

TEST(KvLeave, WhoHearsOfItHearsUntilWhenItIsWanted) {
  Rig rig({0}, 20);
  rig.manager.SetNow(Nanos(5));
  rig.Run({}, Tokens(16, 1), {.ttl = std::chrono::hours(1)});
  rig.Run({}, Tokens(16, 2));
  rig.Run({}, Tokens(16, 3), {.ttl = std::chrono::hours(1)});
  rig.Run({}, Tokens(16, 3));
  const Nanos hour = Nanos(5) + std::chrono::hours(1);
  for (const auto& [text, until] : {std::pair(1, hour), std::pair(2, kNever), std::pair(3, kNever)}) {
    const ListedBlocks listed = rig.manager.Listed({}, Tokens(16, static_cast<uint64_t>(text)));
    EXPECT_EQ(listed.wanted_until, std::vector{until}) << text;
    EXPECT_EQ(listed.slots.size(), 1u);
  }
  rig.Run({}, Tokens(16, 4), {.scrub = true});
  EXPECT_EQ(rig.manager.Listed({}, Tokens(16, 4)).wanted_until, std::vector{Nanos(0)});
  rig.manager.EvictAhead(20);
  EXPECT_EQ(rig.until, (std::vector{hour, kNever, kNever}));
}

TEST(KvLeave, ASlotIsFreeOnceItsCopyHasEnded) {
  Rig rig({0}, 10);
  rig.copies = true;
  rig.Run({}, Tokens(64, 1));
  rig.manager.EvictAhead(4);
  EXPECT_EQ(rig.manager.free_slots(), 6u);
  EXPECT_EQ(rig.manager.deferred_slots(), 4u);
  for (uint32_t ended = 1; ended <= 4; ++ended) {
    rig.EndOne();
    EXPECT_EQ(rig.manager.free_slots(), 6u + ended);
  }
  EXPECT_EQ(rig.manager.deferred_slots(), 0u);
}

TEST(KvLeave, OnlyTheIdleEndOfAHistoryIsEvicted) {
  Rig rig({0}, 20);
  const std::vector<TokenId> trunk = Tokens(64, 1);
  std::vector<TokenId> a = trunk, b = trunk;
  a.insert(a.end(), 20, 1);
  b.insert(b.end(), 20, 2);
  rig.Run({}, a);
  rig.Run({}, b);
  EXPECT_EQ(rig.manager.EvictIdle({}, a, 48, Loss::kCapacity), 2u) << "what only it has after the trunk";
  EXPECT_EQ(rig.manager.Find({}, b, b.size()).tokens, b.size());
  EXPECT_EQ(rig.manager.EvictIdle({}, b, 48, Loss::kCapacity), 3u) << "the trunk's last block, too";
  EXPECT_EQ(rig.manager.Find({}, b, b.size()).tokens, 48u);
}

TEST(KvLeave, TheWindowBeforeAResumePointLeavesWithIt) {
  Rig rig({0, 24}, 40);
  rig.copies = true;
  const std::vector<TokenId> tokens = Tokens(96, 1);
  rig.Run({}, tokens);
  rig.manager.EvictAhead(40);
  std::map<Digest, int> heard;
  for (const Digest& key : rig.left) ++heard[key];
  const std::vector<Digest> keys = BlockKeys(kIdentity, {}, 16, tokens);
  for (const Digest& key : keys) EXPECT_GE(heard[key], 1);
  EXPECT_GE(rig.copying.size(), keys.size() + 2) << "all blocks of full attention, and the window's";
  while (!rig.copying.empty()) rig.EndOne();
  EXPECT_EQ(rig.manager.free_slots(), 40u);
}

TEST(KvLeave, WhatIsOnItsWayIsTakenBackAsIfItHadNeverLeft) {
  for (const bool sliding : {false, true}) {
    Rig rig(sliding ? std::vector<uint32_t>{0, 24} : std::vector<uint32_t>{0}, 20);
    rig.copies = true;
    const std::vector<TokenId> tokens = Tokens(96, 1);
    rig.Run({}, tokens);
    const uint32_t held = rig.manager.available_slots() - rig.manager.free_slots();
    rig.manager.EvictAhead(20);
    EXPECT_EQ(rig.manager.Find({}, tokens, 96).tokens, 0u);
    EXPECT_EQ(rig.TakeBack(tokens), 6u);
    EXPECT_EQ(rig.manager.Find({}, tokens, 96).tokens, 96u) << sliding;
    EXPECT_EQ(rig.manager.deferred_slots(), 0u);
    EXPECT_EQ(rig.TakeBack(tokens), 0u) << "it is there";
    while (!rig.copying.empty()) rig.EndOne();
    EXPECT_EQ(rig.manager.available_slots(), 20u);
    const uint32_t loose = sliding ? 4 : 0;  // blocks before the window, of which nobody heard
    EXPECT_EQ(rig.manager.available_slots() - rig.manager.free_slots(), held - loose);
    rig.copies = false;
    rig.manager.EvictAhead(20);
    EXPECT_EQ(rig.manager.free_slots(), 20u);
  }
}

TEST(KvLeave, OnlyWhatGoesOnFromWhatIsThereIsTakenBack) {
  Rig rig({0}, 20);
  rig.copies = true;
  const std::vector<TokenId> tokens = Tokens(96, 1);
  rig.Run({}, tokens);
  rig.manager.EvictAhead(6);
  std::vector<TokenId> other = Tokens(96, 1);
  other[50] ^= 1;
  EXPECT_EQ(rig.TakeBack(other), 3u) << "up to where it differs";
  rig.EndOne();
  EXPECT_EQ(rig.TakeBack(tokens), 2u) << "the last block has gone";
  EXPECT_EQ(rig.manager.Find({}, tokens, 96).tokens, 80u);
  EXPECT_EQ(rig.manager.Find({.salt = {1, 1}}, tokens, 96).tokens, 0u);
}

// Copies that end in any order hold exactly their slots, whatever else happens.
TEST(KvLeave, RandomCopiesNeverUnsettleTheAccounts) {
  size_t taken = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SplitMix64 random(seed);
    Rig rig(seed % 2 == 0 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{0, 24, 40}, 60);
    rig.copies = true;
    for (int op = 0; op < 300; ++op) {
      const std::vector<TokenId> tokens = Tokens(static_cast<uint32_t>(20 + random.Below(60)), random.Below(6));
      switch (random.Below(5)) {
        case 4: {
          // Without windows: whole blocks as far as each is there or on its way.
          uint64_t expected = rig.manager.FindWhole({}, tokens, tokens.size()) / 16;
          const std::vector<Digest> keys = BlockKeys(kIdentity, {}, 16, tokens);
          for (const Digest& key : std::span(keys).subspan(expected)) {
            const std::optional<GivenUpBlock> found = rig.Find(key);
            if (!found || found->slots[0] == kNoSlot) break;
            ++expected;
          }
          taken += rig.TakeBack(tokens);
          if (seed % 2 == 0) {
            ASSERT_EQ(rig.manager.FindWhole({}, tokens, tokens.size()) / 16, expected);
          }
          break;
        }
        case 0:
          while (!rig.copying.empty()) rig.EndOne();
          rig.copies = false;  // slots are needed at once
          rig.Run({}, tokens);
          rig.copies = true;
          break;
        case 1: rig.manager.EvictAhead(static_cast<uint32_t>(random.Below(10))); break;
        case 2: rig.manager.EvictIdle({}, tokens, random.Below(80), Loss::kCapacity); break;
        default:
          if (!rig.copying.empty()) rig.EndOne();
      }
      rig.ExpectSound();
    }
    while (!rig.copying.empty()) rig.EndOne();
    EXPECT_EQ(rig.manager.leaving_slots(), 0u);
    EXPECT_EQ(rig.manager.available_slots(), 60u);
  }
  EXPECT_GT(taken, 50u);
}

}  // namespace
}  // namespace cachalot::kv
