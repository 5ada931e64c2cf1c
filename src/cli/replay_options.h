// Settings of `cachalot replay`.
// Threads:   plain data.
// Ownership: none.
// Invariant: each setting is declared once (base/options.h).
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kv/eviction.h"
#include "sim/block_replay.h"
#include "sim/workload.h"

namespace cachalot::cli {

struct ReplayOptions {
  std::string trace;
  std::string policy{kv::EvictionPolicyNames().front()};
  uint64_t capacity_blocks = 0;
  uint32_t block_tokens = 512;
  uint64_t ghosts_per_block = sim::BlockReplayOptions{}.ghosts_per_block;
  uint64_t warm_up_requests = 0;
  double positions_per_row = 0;
  bool leaves_only = true;
  std::vector<uint32_t> curve;
  double sampled = 1;
  std::string workload;
  uint64_t seed = 1;
  uint32_t requests = 10'000;
  std::string sweep;
  uint32_t threads = 0;
  bool print_trace = false;
  bool json = false;
  template <class F>
  void Visit(F&& f) {
    f("policy", policy,
      fmt::format("Eviction policy: {}, or {}, which looks ahead.", fmt::join(kv::EvictionPolicyNames(), ", "),
                  sim::kOptimumPolicy));
    f("capacity-blocks", capacity_blocks, "Blocks that the cache holds.");
    f("block-tokens", block_tokens, "Tokens per block of the trace.");
    f("ghosts-per-block", ghosts_per_block, "Evicted blocks that are remembered, per block of capacity.");
    f("warm-up-requests", warm_up_requests, "Requests at the beginning that are not counted.");
    f("positions-per-row", positions_per_row,
      "Positions to which attention costs as much as the rest of a row; 0: all blocks cost alike.");
    f("leaves-only", leaves_only, "A block goes only when none that follows it is there, as in the server.");
    f("curve", curve,
      "Instead of one capacity, those listed (e.g. 1000,10000): hit rates of lru, from one pass, and of the optimum.");
    f("sampled", sampled, "Share of the blocks that --curve looks at for lru.");
    f("workload", workload,
      fmt::format("Instead of TRACE, generated requests: {}.", fmt::join(sim::WorkloadNames(), ", ")));
    f("seed", seed, "Of the generated requests.");
    f("requests", requests, "How many are generated.");
    f("sweep", sweep,
      "Replays once for each combination of these settings, e.g. \"policy=lru,cost; capacity-blocks=1000,10000\".");
    f("threads", threads, "Replays that run at once in a sweep; 0: as many as there are processors.");
    f("print-trace", print_trace, "Print the trace instead of replaying it.");
    f("json", json, "Print JSON.");
  }
};

// With the engine itself, in virtual time.
struct EngineReplayOptions {
  bool engine = false;
  std::string profile;
  std::string step_curve;
  uint32_t kv_blocks = 0;
  uint32_t kv_block_tokens = 16;
  uint64_t context = 131'072;
  uint32_t max_tokens = 0;
  double rate = 1;
  std::string request_log;
  std::string series;
  double series_every = 10;
  template <class F>
  void Visit(F&& f) {
    f("engine", engine,
      "Run the server's engine in virtual time; the settings that follow, and those of serve, count.");
    f("profile", profile, "What `cachalot calibrate` measured: how long steps take.");
    f("step-curve", step_curve,
      "Instead, seconds per step, row, visible position of full and of sliding attention, and row with logits, e.g. "
      "\"0.01,5e-5,4e-9,0,2e-5\".");
    f("kv-blocks", kv_blocks, "Blocks of the KV pool.");
    f("kv-block-tokens", kv_block_tokens, "Tokens per block of the KV pool.");
    f("context", context, "Most tokens of a sequence.");
    f("max-tokens", max_tokens, "Tokens that each request asks for; 0: as many as its answer has.");
    f("rate", rate, "Requests come so much faster than the trace says.");
    f("request-log", request_log, "File that gets a line of JSON per request.");
    f("series", series, "File that gets the engine's state over time, as CSV.");
    f("series-every", series_every, "Seconds between its lines.");
  }
};

}  // namespace cachalot::cli
