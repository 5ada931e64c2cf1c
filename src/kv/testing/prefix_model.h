// RunPrefixModel drives a KvManager with a prefix index by random operations over prompts that often begin alike. A
// fake arena holds, per position, a hash of all tokens up to it: any wrong reuse shows as a wrong word.
// Threads:   one.
// Ownership: none.
// Invariant: equal runs give equal reports.
// Cost:      O(sequences * tokens) per operation: small geometries only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kv/geometry.h"

namespace cachalot::kv {

struct PrefixModelRun {
  KvGeometry geometry;
  uint64_t seed = 0;
  uint64_t operations = 0;
  uint32_t alphabet = 2;  // different tokens
  uint32_t salts = 1;
  uint32_t max_sequences = 6;
  uint64_t max_tokens = 60;  // per sequence
  std::string policy;        // empty: any candidate may go
  bool loads = false;        // some blocks come from a lower tier
  bool hints = false;        // runs have retention hints, prefixes are held, all that is idle is let go now and then
};

struct PrefixModelReport {
  std::vector<std::string> problems;  // the run ends at the first operation that has any
  uint64_t attached_tokens = 0;
  uint64_t partial_copies = 0;
  uint64_t whole_hits = 0;    // all but the last token were there
  uint64_t exact_checks = 0;  // of how much is found, while nothing was evicted
  uint64_t awaited = 0;       // prompts of which a running sequence is computing more
  uint64_t evicted_slots = 0;
  uint64_t expired_slots = 0;
  uint64_t scrubbed_slots = 0;
  uint64_t held_tokens = 0;
  uint64_t loaded_tokens = 0;
  uint64_t met = 0;  // loads that ended above what was computed
  uint64_t refusals = 0;
  uint64_t rollbacks = 0;
  uint64_t watched_hits = 0;  // looks at a watch that had something
};

PrefixModelReport RunPrefixModel(const PrefixModelRun& run);

}  // namespace cachalot::kv
