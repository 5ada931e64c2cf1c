// AccountOf divides a prompt's tokens among the classes of a HitAccount.
// Threads:   a pure function.
// Ownership: none.
// Invariant: the classes add up to the prompt's tokens; found ones are exactly `hit_tokens`.
// Cost:      O(runs of lost blocks).
#pragma once

#include <cstdint>

#include "base/hit_account.h"
#include "kv/shadow_index.h"

namespace cachalot::kv {

struct HitFacts {
  uint64_t prompt_tokens = 0;
  uint64_t limit = 0;        // that a hit may have
  uint64_t hit_tokens = 0;   // that it has; <= limit
  uint64_t full_tokens = 0;  // in whole blocks, that full attention has without a gap
  bool caching = true;
};

HitAccount AccountOf(const HitFacts& facts, const ShadowSight& sight);

}  // namespace cachalot::kv
