// Engine is the deterministic heart: one Step takes arrivals, cancels and the time, runs the model once, and returns
// what every client must be told.
// Threads:   owned by the engine thread (EngineLoop).
// Ownership: owns requests, sequences and KV accounting; borrows executor, device memory and sampler.
// Invariant: equal inputs give equal outputs; an admitted request finishes; a failed step leaves committed KV as it
//            was; a cancelled request's blocks are free when the Step that saw the cancel returns.
// Cost:      one Run of the executor per Step, plus work linear in the running sequences.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/inquiry.h"
#include "engine/request.h"

namespace cachalot::exec {
class DeviceMemory;
class Executor;
class Sampler;
}  // namespace cachalot::exec
namespace cachalot::kv {
struct KvSnapshot;
}

namespace cachalot::engine {

struct EngineOptions {
  uint32_t max_queue = 1024;      // requests that wait; one more is refused
  uint32_t max_sequences = 64;    // that run at once
  uint32_t step_rows = 512;       // most rows of one step: decode rows first, then prefill chunks
  uint32_t prefill_chunk = 512;   // most prefill rows of one sequence in one step
  bool prefix_cache = true;       // KV outlives its request, and equal prefixes are computed once
  std::string eviction = "cost";  // which cached blocks go first
  std::string admission = "guaranteed";
  double verify_hits = 0;  // share of hits that are computed again and compared
  template <class F>
  void Visit(F&& f) {
    f("max-queue", max_queue, "Requests that may wait; one more is answered 429.");
    f("max-sequences", max_sequences, "Sequences that run at once.");
    f("step-rows", step_rows, "Most rows (tokens) computed in one step.");
    f("prefill-chunk", prefill_chunk, "Most prompt tokens of one sequence computed in one step.");
    f("admission", admission,
      "guaranteed: whoever runs has KV for all that it may generate; expected: for what it will likely generate, and "
      "may be preempted.");
    f("eviction", eviction, "Which cached blocks go first: cost, lru, lfu, fifo, s3fifo or length.");
    f("verify-hits", verify_hits,
      "Share of prefix hits, 0 to 1, whose KV is computed again and compared bit for bit; a difference stops all "
      "answers.");
    f("prefix-cache", prefix_cache, "Keep KV of finished requests, and compute equal prefixes once.");
  }
};

// Each names the option, its value and what is allowed. Empty: valid.
std::vector<std::string> Problems(const EngineOptions& options);

struct StepInput {
  Nanos now{0};
  std::vector<GenerateRequest> arrivals;
  std::vector<RequestId> cancels;
  std::vector<Inquiry> inquiries;
};

// Levels and totals after the step, for metrics.
struct EngineStats {
  uint32_t running_sequences = 0;
  uint32_t waiting_requests = 0;
  uint32_t awaiting_requests = 0;  // of them: those that wait for a running one to compute what they share
  uint32_t total_slots = 0;
  uint32_t free_slots = 0;
  uint32_t idle_slots = 0;      // held for later requests only; free as soon as they are needed
  uint32_t promised_slots = 0;  // that running requests may still take
  uint64_t steps = 0;
  uint64_t prompt_tokens_computed = 0;
  uint64_t prompt_tokens_cached = 0;  // that were not computed, because their KV was there
  uint64_t slots_evicted = 0;
  uint64_t tokens_generated = 0;
  uint64_t requests_finished = 0;
  uint64_t requests_rejected = 0;
  uint64_t requests_cancelled = 0;
  uint64_t preemptions = 0;
  uint64_t tokens_recomputed = 0;  // rows of preempted requests that had run before
  uint64_t step_failures = 0;
  uint64_t hits_verified = 0;
  uint64_t hits_not_verified = 0;  // sampled, but there was no room, or not all of their blocks were there

  // That running requests hold.
  uint32_t in_use_slots() const { return total_slots - free_slots - idle_slots; }
};

struct StepOutput {
  std::vector<Rejection> rejections;
  std::vector<PromptEvent> prompts;
  std::vector<TokenEvent> tokens;
  std::vector<FinishEvent> finishes;  // after the tokens of the same choice
  std::vector<Answer> answers;
  EngineStats stats;
  Nanos duration{0};  // of the step, as EngineLoop measured it
};

class Engine {
 public:
  // All three must outlive the engine.
  Engine(const EngineOptions& options, exec::Executor& executor, exec::DeviceMemory& memory, exec::Sampler& sampler);
  ~Engine();

  StepOutput Step(StepInput input);

  // Nothing runs and nothing waits.
  bool idle() const;
  // From now on arrivals are refused with kShuttingDown; what was admitted or queued goes on.
  void Drain();

  kv::KvSnapshot Snapshot() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachalot::engine
