// Setting is one way to serve some traffic: a machine, a pool, a policy, limits. A simulation is told one, and gives an
// Outcome.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: none.
// Cost:      that of MakeGroup.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/kv_layout.h"
#include "base/status.h"
#include "base/step_curve.h"
#include "base/tier_rate.h"
#include "plan/plan.h"

namespace cachalot::plan {

struct Setting {
  KvShape kv;
  uint64_t context_tokens = 0;  // longer requests are refused
  uint64_t slots = 0;           // of the pool
  uint64_t slot_bytes = 0;
  StepCurve curve{};    // of computing
  StepCurve reading{};  // of reading weights and KV; a step takes the longer of both. Zeros: the curve holds all
  uint32_t max_sequences = 64;
  uint32_t step_rows = 512;
  uint32_t prefill_chunk = 512;
  bool prefix_cache = true;
  bool thrash_control = true;
  std::string eviction = "cost";
  std::string admission = "guaranteed";
  double admission_reserve = 0.02;    // of the pool, kept free for those without a guarantee
  uint32_t max_tokens = 0;            // that each request asks for; 0: as many as its answer has
  bool asks_exactly = false;          // it asks for what its answer has, whatever it or max_tokens say
  uint64_t output_limit = 0;          // most that is asked for, where answers are cut; 0: nowhere
  std::optional<TierRate> host_link;  // none: host memory is the pool's own, and copies take no time
  uint64_t host_slots = 0;            // of host memory
  uint64_t disk_slots = 0;
  TierRate disk_read{100e-6, 3e9};
  TierRate disk_write{100e-6, 1.5e9};
  bool reordered = false;  // prompts begin with what they have in common
  bool alone = false;      // each request is answered before the next comes
};

// What a simulation gave of one request.
struct ServedSpan {
  double arrival = 0;      // seconds
  double first_token = 0;  // from then on it holds KV for its whole prompt
  double finish = 0;
  uint64_t tokens = 0;    // of prompt and answer
  uint64_t promised = 0;  // of its prompt and what it asked for
  bool served = false;
};

struct Outcome {
  uint64_t requests = 0;
  uint64_t served = 0;
  std::string first_refusal;   // why the first was not served that was not; empty: all were
  uint64_t within_target = 0;  // of them, by time to first token; all of them without a target
  double duration_seconds = 0;
  double tokens_per_second = 0;  // of answers
  double ttft_p50_seconds = 0, ttft_p99_seconds = 0;
  double e2e_mean_seconds = 0;
  double itl_p99_seconds = 0;
  double hit_rate = 0;    // of prompt tokens, all tiers
  double in_use = 0;      // of the pool, by running requests; mean over time
  double waste = 0;       // of the bytes in blocks: that hold no token
  double pressure = 0;    // of the time: some requests waited for KV
  double recomputed = 0;  // of all tokens computed: that had been computed before
  double busy = 0;        // of the time: the machine computed
  double compute_seconds = 0;
  uint64_t preemptions = 0;
  std::vector<ServedSpan> spans;  // by request
};

// The pool is what a group of the request's devices has left beside weights and activations, or `kv_bytes` where that
// is not 0. kInvalid when nothing is left, or less than that on a machine that a sheet tells.
Result<Setting> SettingOf(const PlanRequest& request, uint64_t kv_bytes);

// "a disk that reads 3 GB/s (assumed)"
std::string DiskRateText(const Machine& machine, const Setting& setting);

// How many amounts there are at a time, over time: e.g. requests under way. Ends before begins count as nothing.
struct Level {
  double begin = 0, end = 0;
  uint64_t amount = 1;
};
struct LevelSpread {
  double mean = 0;
  uint64_t p50 = 0, p90 = 0, p99 = 0, peak = 0;
};
LevelSpread SpreadOf(const std::vector<Level>& levels);

}  // namespace cachalot::plan
