// StoredSession is what outlives the process of a conversation: who owns it, its tokens, and how long it is kept.
// Threads:   plain data.
// Ownership: owns its tokens.
// Invariant: none.
// Cost:      none.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/prefix_scope.h"

namespace cachalot::tier {

struct SessionKey {
  std::string owner;  // name of the tenant
  std::string id;     // chosen by the client, unique for its owner
  auto operator<=>(const SessionKey&) const = default;
};

struct StoredSession {
  SessionKey key;
  Digest identity{};            // what its KV was computed with
  PrefixScope scope;            // who shares that
  std::vector<TokenId> tokens;  // its history
  uint64_t created = 0;         // wall time in seconds, as is last_used
  uint64_t last_used = 0;
  uint64_t ttl_seconds = 0;  // after last_used; 0: none
  bool pinned = false;
  bool suspended = false;  // and not used since
  // It is not forgotten for others.
  bool held() const { return pinned || suspended; }
  bool operator==(const StoredSession&) const = default;
};

}  // namespace cachalot::tier
