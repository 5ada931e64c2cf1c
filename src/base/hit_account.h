// HitAccount says of each token of a prompt whether it was found, and why not.
// Threads:   plain data.
// Ownership: none.
// Invariant: the classes add up to the prompt's tokens.
// Cost:      none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cachalot {

enum class TokenClass : uint8_t {
  kShared = 0,       // found; another request used it last
  kOwn = 1,          // found; an earlier turn of this conversation used it last
  kAsked = 2,        // not looked for: its logits are asked for, so its row runs
  kGranularity = 3,  // there, but cannot be gone on from: between resume points, or in a block that could not be copied
  kCapacity = 4,     // was there, until others needed the room
  kExpired = 5,      // was there, until its time was over
  kCleared = 6,      // was there, until the operator said so
  kOff = 7,          // was computed, and not kept: there is no cache
  kRendering = 8,    // an earlier answer stands here, but its text came back as other tokens
  kSalt = 9,         // only others have computed it. For sums over all tenants, never for the one who asked
  kNew = 10,         // nobody has computed it, as far as is remembered
};
inline constexpr std::array<std::string_view, 11> kTokenClassNames = {
    "shared", "own", "asked", "granularity", "capacity", "expired", "cleared", "off", "rendering", "salt", "new"};

// Caches that are compared with the pool: multiples of its slots, and one that keeps all that is remembered.
inline constexpr std::array<double, 4> kShadowSizes = {0.5, 1, 2, 4};
inline constexpr std::array<std::string_view, kShadowSizes.size() + 1> kShadowNames = {"0.5", "1", "2", "4", "inf"};

struct HitAccount {
  std::array<uint64_t, kTokenClassNames.size()> tokens{};
  std::array<uint64_t, kShadowNames.size()> shadow_tokens{};  // that other caches would have had, by cache
  uint64_t refault_tokens = 0;                                // computed once and lost, whatever the cause
  uint64_t refault_distance = 0;  // slots that an LRU cache must have to have them all; 0 without any

  uint64_t& operator[](TokenClass c) { return tokens[static_cast<size_t>(c)]; }
  uint64_t operator[](TokenClass c) const { return tokens[static_cast<size_t>(c)]; }
};

// Of many prompts.
struct HitTotals {
  std::array<uint64_t, kTokenClassNames.size()> tokens{};
  std::array<uint64_t, kShadowNames.size()> shadow_tokens{};

  uint64_t operator[](TokenClass c) const { return tokens[static_cast<size_t>(c)]; }
  void Add(const HitAccount& account) {
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] += account.tokens[i];
    for (size_t i = 0; i < shadow_tokens.size(); ++i) shadow_tokens[i] += account.shadow_tokens[i];
  }
};

}  // namespace cachalot
