// Engine is the deterministic heart: one Step takes arrivals, cancels and the time, runs the model once, and returns
// what every client must be told.
// Threads:   owned by the engine thread (EngineLoop).
// Ownership: owns requests, sequences and KV accounting; borrows executor, device memory and sampler.
// Invariant: equal inputs give equal outputs; an admitted request finishes; a failed step leaves committed KV as it
//            was; a cancelled request's blocks are free when the Step that saw the cancel returns.
// Cost:      one Run of the executor per Step, plus work linear in the running sequences.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/age_counts.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/hit_account.h"
#include "base/kv_ledger.h"
#include "base/kv_pressure.h"
#include "base/read_outcome.h"
#include "base/step_curve.h"
#include "base/tenant.h"
#include "base/tier_rate.h"
#include "base/transfer_meter.h"
#include "base/units.h"
#include "engine/inquiry.h"
#include "engine/request.h"
#include "engine/session.h"
#include "engine/session_options.h"

namespace cachalot::exec {
class DeviceMemory;
class Executor;
class Sampler;
}  // namespace cachalot::exec
namespace cachalot::tier {
class KvStore;
class DurableSessions;
class HostTier;
class SessionArchive;
}  // namespace cachalot::tier
namespace cachalot::kv {
class EvictionPolicy;
struct KvSnapshot;
}  // namespace cachalot::kv

namespace cachalot::engine {

class DecisionLog;
class InputLog;

struct EngineOptions {
  uint32_t max_queue = 1024;      // requests that wait; one more is refused
  uint32_t max_sequences = 64;    // that run at once
  uint32_t step_rows = 512;       // most rows of one step: decode rows first, then prefill chunks
  uint32_t prefill_chunk = 512;   // most prefill rows of one sequence in one step
  bool prefix_cache = true;       // KV outlives its request, and equal prefixes are computed once
  bool shadow_index = true;       // tells what other caches would have had, and what was lost why
  std::string eviction = "cost";  // which cached blocks go first
  std::string admission = "guaranteed";
  double admission_reserve = 0.02;  // share of the pool that those without a guarantee leave free when they begin
  bool thrash_control = true;       // fewer conversations take part when they would evict one another
  double ttft_target = 0;           // seconds; 0: none
  double verify_hits = 0;           // share of hits that are computed again and compared
  double pin_budget = 0;            // share of the pool that pins may hold
  bool scrub_expired = false;       // as if every request with a TTL asked for its KV to be overwritten
  ByteSize disk_write_rate;
  SessionOptions sessions;
  TenantTerms terms;                 // of every request and tenant
  std::vector<TenantTerms> tenants;  // by id, in place of `terms`; several share the queue
  // Null: nobody looks on. They outlive the engine.
  DecisionLog* decision_log = nullptr;
  InputLog* input_log = nullptr;
  template <class F>
  void Visit(F&& f) {
    f("max-queue", max_queue, "Requests that may wait; one more is answered 429.");
    f("max-sequences", max_sequences, "Sequences that run at once.");
    f("step-rows", step_rows, "Most rows (tokens) computed in one step.");
    f("prefill-chunk", prefill_chunk, "Most prompt tokens of one sequence computed in one step.");
    f("admission", admission,
      "guaranteed: whoever runs has KV for all that it may generate; expected: for what it will likely generate, and "
      "may be preempted; optimistic: for its prompt, as elsewhere, to compare with.");
    f("admission-reserve", admission_reserve,
      "Share of the KV pool, 0 to 0.9, that must stay free beside what expected or optimistic admission charges.");
    f("eviction", eviction, "Which cached blocks go first: cost, lru, lfu, fifo, s3fifo or length.");
    f("thrash-control", thrash_control,
      "Let fewer conversations take part at a time while all of them would evict one another. Needs --shadow-index.");
    f("ttft-target", ttft_target,
      "Seconds from a request's arrival to its first token that loading KV from lower tiers, or computing it, should "
      "keep to; 0: whatever delays all least.");
    f("verify-hits", verify_hits,
      "Share of prefix hits, 0 to 1, whose KV is computed again and compared bit for bit; a difference stops all "
      "answers.");
    f("pin-budget", pin_budget,
      "Share of the KV pool, 0 to 0.9, that clients may pin for a while; no request may need it. 0: pins are refused.");
    f("scrub-expired", scrub_expired, "Overwrite the KV of requests that named a TTL before its memory is used again.");
    f("prefix-cache", prefix_cache, "Keep KV of finished requests, and compute equal prefixes once.");
    f("shadow-index", shadow_index,
      "Remember which blocks were computed, to tell why tokens were not found and what other pool sizes would find.");
    f("disk-write-rate", disk_write_rate, "Most KV that is written to disk in a second, e.g. 200MiB. 0: no limit.");
    sessions.Visit(f);
    terms.Visit(f);
  }
};

// Each names the option, its value and what is allowed. Empty: valid.
std::vector<std::string> Problems(const EngineOptions& options);

// What is known of the model behind the executor, and where its KV may go.
struct ModelFacts {
  Digest identity{};                               // see kv/identity.h
  std::optional<StepCurve> step_curve;             // as measured before; nothing: it is learnt from the first step on
  std::optional<TierRate> host_rate;               // likewise, of what comes up from host memory
  tier::KvStore* store = nullptr;                  // what lies below the hot pool, if anything; outlives the engine
  tier::HostTier* host = nullptr;                  // the nearer one, if there is; outlives the engine
  tier::DurableSessions* session_store = nullptr;  // where sessions last; outlives the engine
  tier::SessionArchive* archive = nullptr;         // where they are saved by name; outlives the engine
};

struct StepInput {
  Nanos now{0};
  Nanos last_duration{0};  // of the Step before this one, as it was measured; 0: not known
  Nanos last_stalled{0};   // of that, until copies had ended; never more
  Nanos waited{0};         // between the two, for something to do
  std::vector<GenerateRequest> arrivals;
  std::vector<RequestId> cancels;
  std::vector<Inquiry> inquiries;
  std::vector<SessionCommand> session_commands;
  uint64_t unix_seconds = 0;  // wall-clock time, which may jump
};

// Of the tiers below the hot pool; all zero where there is none.
struct TierStats {
  uint64_t loaded_tokens = 0;      // that came from the disk instead of being computed
  uint64_t prefetched_tokens = 0;  // of them: before a request asked for them
  uint64_t failed_loads = 0;       // of requests, which then computed
  uint64_t failed_stores = 0;      // runs of blocks that were not written
  uint64_t loaded_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t blocks = 0;  // there
  uint64_t live_bytes = 0;
  uint64_t occupied_bytes = 0;
  bool degraded = false;                                          // nothing is written for the time being
  std::array<uint64_t, kReadOutcomeNames.size()> disk_reads{};    // blocks, by ReadOutcome
  std::array<TransferMeter, kDirectionNames.size()> disk_link{};  // by Direction
  uint64_t refused_blocks = 0;  // not written, as that costs more than they are thought to save

  // Host memory; the bytes add up to its limit.
  uint64_t host_limit_bytes = 0;
  uint64_t host_cached_bytes = 0;
  uint64_t host_moving_bytes = 0;  // being written, or given up and still read
  uint64_t host_free_bytes = 0;
  uint64_t host_overhead_bytes = 0;
  uint64_t host_loaded_tokens = 0;  // that came from there instead of being computed
  uint64_t host_loaded_bytes = 0;   // that were copied to the hot pool
  uint64_t host_stored_bytes = 0;   // that came from the hot pool
  uint64_t host_found_cells = 0;    // by requests
  uint64_t host_evicted_cells = 0;
  uint64_t taken_back_blocks = 0;    // that were on their way there, and asked for
  uint64_t host_dropped_blocks = 0;  // that left the hot pool and did not go there, though there is host memory
};

// Where time went: steps that ran the model and other steps, without what they waited for copies; waits for copies, and
// for transfers while requests ran; waits for requests.
struct TimeTotals {
  Nanos compute{0};
  Nanos other{0};
  Nanos transfers{0};
  Nanos idle{0};
};

// Levels and totals after the step, for metrics.
struct EngineStats {
  uint32_t running_sequences = 0;
  uint32_t waiting_requests = 0;
  uint32_t awaiting_requests = 0;  // of them: those that wait for a running one to compute what they share
  uint32_t capped_requests = 0;    // of them: those whose tenant runs all that it may
  uint32_t waiting_tenants = 0;
  uint32_t outside_requests = 0;   // of them: those whose conversation has no place
  uint64_t taken_slots = 0;        // that the KV of the conversations with a place takes
  uint64_t taken_slots_limit = 0;  // 0: none
  uint32_t total_slots = 0;
  uint32_t free_slots = 0;
  uint32_t idle_slots = 0;      // held for later requests only; free as soon as they are needed
  uint32_t promised_slots = 0;  // that running requests may still take
  uint64_t steps = 0;
  uint64_t prompt_tokens_computed = 0;
  uint64_t prompt_tokens_cached = 0;  // that were not computed, because their KV was there
  HitTotals hits;                     // of prompts when they were first admitted; zero without a shadow index
  ResidencyCounts residency;
  KvLedger ledger;  // at most a second older than the last step, and exact while nothing runs
  uint64_t slots_evicted = 0;
  uint64_t slots_expired = 0;   // of them: past their deadline
  uint64_t slots_scrubbed = 0;  // overwritten once they were free
  uint32_t pinned_slots = 0;    // now
  uint64_t pins_whole = 0;      // pins that there was room for
  uint64_t pins_shortened = 0;
  uint64_t pins_refused = 0;
  uint64_t tokens_generated = 0;
  uint64_t requests_finished = 0;
  uint64_t requests_rejected = 0;
  uint64_t requests_cancelled = 0;
  uint64_t preemptions = 0;
  uint64_t tokens_recomputed = 0;  // rows of preempted requests that had run before
  uint64_t tokens_computed = 0;    // rows of all steps
  uint64_t refault_tokens = 0;     // of them: computed before, and lost not long ago
  double refault_share = 0;        // of those computed in the last minute
  uint64_t limit_decreases = 0;
  KvPressure pressure;
  uint64_t step_failures = 0;
  TierStats tiers;
  TimeTotals time;  // up to the step before
  SessionStats sessions;
  uint64_t hits_verified = 0;
  StepCurve step_curve{};          // as learnt so far
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
  std::vector<SessionAnswer> session_answers;
  EngineStats stats;
  Nanos duration{0};             // of the step, as EngineLoop measured it
  Nanos stalled{0};              // of that, until copies had ended
  double predicted_seconds = 0;  // what it was thought to take; 0: it did not run the model
};

class Engine {
 public:
  // Executor, memory and sampler must outlive the engine.
  Engine(const EngineOptions& options, exec::Executor& executor, exec::DeviceMemory& memory, exec::Sampler& sampler,
         const ModelFacts& facts = {});
  // With this policy in place of the one that the options name.
  Engine(const EngineOptions& options, exec::Executor& executor, exec::DeviceMemory& memory, exec::Sampler& sampler,
         const ModelFacts& facts, std::unique_ptr<kv::EvictionPolicy> policy);
  ~Engine();

  StepOutput Step(StepInput input);

  // Nothing runs and nothing waits.
  bool idle() const;
  // Calls `wake`, from any thread, when a transfer has ended; not after it was called with another.
  void OnTransferEnd(std::function<void()> wake);
  // Nothing runs until a transfer ends: a Step is due when the store says so, or something arrives.
  bool awaits_transfers() const;
  // So long have Steps waited for copies since the start.
  Nanos stalled() const;
  // Something is still to be written to lower tiers, or on its way there.
  bool writes_pending() const;
  // When a Step should come at the latest, though nothing arrives: KV that was kept for a while has had its
  // time, or is to be written.
  std::optional<Nanos> next_due() const;
  // From now on arrivals are refused with kShuttingDown; what was admitted or queued goes on.
  void Drain();

  kv::KvSnapshot Snapshot() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachalot::engine
