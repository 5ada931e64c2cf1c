#include "kv/hit_account.h"

#include <algorithm>
#include <utility>

namespace cachalot::kv {
namespace {

// Gives out a prompt's tokens from the first to the last.
class Divider {
 public:
  Divider(uint64_t limit, HitAccount* account) : limit_(limit), account_(*account) {}
  // All up to `end` that were not given out yet, and says how many these are.
  uint64_t Give(uint64_t end, TokenClass c) {
    end = std::clamp(end, at_, limit_);
    const uint64_t tokens = end - std::exchange(at_, end);
    account_[c] += tokens;
    return tokens;
  }

 private:
  uint64_t at_ = 0;
  const uint64_t limit_;
  HitAccount& account_;
};

TokenClass ClassOf(Loss loss) {
  switch (loss) {
    case Loss::kExpired: return TokenClass::kExpired;
    case Loss::kCleared: return TokenClass::kCleared;
    case Loss::kCapacity:
    case Loss::kNone: break;
  }
  return TokenClass::kCapacity;
}

}  // namespace

HitAccount AccountOf(const HitFacts& facts, const ShadowSight& sight) {
  HitAccount account;
  account[TokenClass::kAsked] = facts.prompt_tokens - facts.limit;
  for (size_t cache = 0; cache < kShadowNames.size(); ++cache) {
    const uint64_t blocks = std::min(sight.hit_tokens[cache], facts.limit);
    // One that has all the blocks known has the unfilled one after them, if the pool does.
    account.shadow_tokens[cache] =
        sight.hit_tokens[cache] < sight.seen_tokens ? blocks : std::max(blocks, facts.hit_tokens);
  }
  Divider divider(facts.limit, &account);
  divider.Give(std::min(facts.hit_tokens, sight.own_from), TokenClass::kShared);
  divider.Give(facts.hit_tokens, sight.own_from < sight.seen_tokens ? TokenClass::kOwn : TokenClass::kShared);
  const TokenClass kept = facts.caching ? TokenClass::kGranularity : TokenClass::kOff;
  divider.Give(facts.full_tokens, kept);
  for (const ShadowSight::Lost& lost : sight.lost) {
    divider.Give(lost.begin, kept);
    const uint64_t tokens = divider.Give(lost.end, ClassOf(lost.loss));
    account.refault_tokens += tokens;
    if (tokens > 0) account.refault_distance = lost.distance;
  }
  divider.Give(sight.seen_tokens, kept);
  divider.Give(sight.rendered_differently_to, TokenClass::kRendering);
  divider.Give(sight.others_tokens, TokenClass::kSalt);
  divider.Give(facts.limit, TokenClass::kNew);
  return account;
}

}  // namespace cachalot::kv
