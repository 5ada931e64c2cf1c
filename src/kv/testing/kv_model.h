// RunKvModel drives a KvManager with random operations beside a naive model of what every sequence must hold, bytes
// included: a fake arena holds one word per position, and each sequence's visible words are compared with its own.
// Threads:   one.
// Ownership: none.
// Invariant: equal runs give equal reports.
// Cost:      O(sequences * groups * blocks) per operation: small geometries only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kv/geometry.h"

namespace cachalot::kv {

struct KvModelRun {
  KvGeometry geometry;
  uint64_t seed = 0;
  uint64_t operations = 0;
  uint32_t max_sequences = 6;
  uint64_t max_tokens = 200;  // per sequence
  uint32_t max_step = 40;     // per sequence and step
};

struct KvModelReport {
  std::vector<std::string> problems;  // the run ends at the first operation that has any
  uint64_t commits = 0;
  uint64_t rollbacks = 0;
  uint64_t refusals = 0;
  uint64_t forks = 0;
  uint64_t copies = 0;
  uint64_t dropped_blocks = 0;  // that left their window
};

KvModelReport RunKvModel(const KvModelRun& run);

}  // namespace cachalot::kv
