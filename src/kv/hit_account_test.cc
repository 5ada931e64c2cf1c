#include "kv/hit_account.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"

namespace cachalot::kv {
namespace {

uint64_t SumOf(const HitAccount& account) {
  return std::accumulate(account.tokens.begin(), account.tokens.end(), 0ull);
}

TEST(HitAccount, EachTokenIsInTheClassOfItsPlace) {
  const ShadowSight::Lost lost[] = {{64, 96, Loss::kExpired, 100}, {112, 128, Loss::kCapacity, 300}};
  ShadowSight sight;
  sight.hit_tokens = {16, 48, 96, 128, 144};
  sight.seen_tokens = 144;
  sight.others_tokens = 176;
  sight.own_from = 32;
  sight.rendered_differently_to = 150;
  sight.lost = lost;
  HitAccount account = AccountOf({.prompt_tokens = 200, .limit = 199, .hit_tokens = 50, .full_tokens = 48}, sight);
  EXPECT_EQ(account[TokenClass::kShared], 32u);
  EXPECT_EQ(account[TokenClass::kOwn], 18u);
  EXPECT_EQ(account[TokenClass::kExpired], 32u);
  EXPECT_EQ(account[TokenClass::kCapacity], 16u);
  EXPECT_EQ(account[TokenClass::kGranularity], 14u + 16 + 16);
  EXPECT_EQ(account[TokenClass::kRendering], 6u);
  EXPECT_EQ(account[TokenClass::kSalt], 26u);
  EXPECT_EQ(account[TokenClass::kNew], 23u);
  EXPECT_EQ(account[TokenClass::kAsked], 1u);
  EXPECT_EQ(account.shadow_tokens, sight.hit_tokens);
  EXPECT_EQ(account.refault_tokens, 48u);
  EXPECT_EQ(account.refault_distance, 300u);

  // What was found was not lost.
  account = AccountOf({.prompt_tokens = 200, .limit = 199, .hit_tokens = 100, .full_tokens = 96}, sight);
  EXPECT_EQ(account[TokenClass::kExpired], 0u);
  EXPECT_EQ(account.refault_tokens, 16u);

  account = AccountOf({.prompt_tokens = 200, .limit = 199, .hit_tokens = 150, .full_tokens = 144}, sight);
  EXPECT_EQ(account.shadow_tokens, (std::array<uint64_t, kShadowNames.size()>{16, 48, 96, 128, 150}));

  account = AccountOf({.prompt_tokens = 200, .limit = 0, .hit_tokens = 0, .full_tokens = 48}, sight);
  EXPECT_EQ(account[TokenClass::kAsked], 200u);
  EXPECT_EQ(account.shadow_tokens.back(), 0u);

  sight.lost = {};
  account = AccountOf({.prompt_tokens = 200, .limit = 199, .caching = false}, sight);
  EXPECT_EQ(account[TokenClass::kOff], 144u);
  EXPECT_EQ(account.refault_tokens, 0u);
}

TEST(HitAccount, TheClassesAddUpWhateverTheFacts) {
  SplitMix64 random(1);
  for (int i = 0; i < 20000; ++i) {
    HitFacts facts{.prompt_tokens = 1 + random.Below(100)};
    facts.limit = random.Below(facts.prompt_tokens + 1);
    facts.hit_tokens = random.Below(facts.limit + 1);
    facts.full_tokens = random.Below(facts.prompt_tokens + 1);
    facts.caching = random.Below(8) > 0;
    ShadowSight sight;
    sight.seen_tokens = random.Below(facts.prompt_tokens + 1);
    sight.own_from = random.Below(sight.seen_tokens + 1);
    sight.others_tokens = sight.seen_tokens + random.Below(20);
    sight.rendered_differently_to = random.Below(facts.prompt_tokens + 1);
    std::vector<ShadowSight::Lost> lost;
    for (uint64_t at = random.Below(20); at < sight.seen_tokens; at += random.Below(20)) {
      const uint64_t end = std::min(sight.seen_tokens, at + random.Below(20));
      lost.push_back({at, end, static_cast<Loss>(1 + random.Below(3)), at});
      at = end;
    }
    sight.lost = lost;
    const HitAccount account = AccountOf(facts, sight);
    ASSERT_EQ(SumOf(account), facts.prompt_tokens);
    ASSERT_EQ(account[TokenClass::kShared] + account[TokenClass::kOwn], facts.hit_tokens);
    ASSERT_LE(account.refault_tokens, facts.limit - facts.hit_tokens);
  }
}

}  // namespace
}  // namespace cachalot::kv
