// The engine's private state, shared by engine.cc (arrivals, endings), admission.cc and step.cc (the transaction).
// Threads:   engine thread.
// Ownership: owns all requests; see engine.h.
// Invariant: `running` holds requests in the order of their admission; each has a promise for all that it may still
//            take. Whatever stands in `waiting` holds no KV.
// Cost:      none.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "exec/device_memory.h"
#include "exec/executor.h"
#include "exec/sampler.h"
#include "kv/kv_manager.h"
#include "kv/kv_snapshot.h"
#include "kv/slot_budget.h"
#include "sched/future_peak.h"
#include "sched/step_plan.h"

namespace cachalot::engine {

// One sequence of a request. Its history is the prompt, then `output`, whose last token is not in the KV yet.
struct Choice {
  SequenceId sequence{0};  // 0: holds no KV
  std::vector<TokenId> output;
  std::unique_ptr<StopCondition> stop;
  bool finished = false;
  uint64_t computed = 0;  // tokens of its history that were in the KV when it was preempted
};

// What a request would need of the pool.
struct SlotDemand {
  uint64_t peak = 0;     // in an empty pool
  uint64_t full = 0;     // of it: full attention
  uint64_t sliding = 0;  // of it: the rest
  uint64_t promise = 0;  // beyond what it would share
  uint64_t charge = 0;   // promise, and shared slots that nobody uses now
};

// A request that waits or runs. Until its prompt was computed to the end it has one choice, whose output is empty; then
// n, forked from the first.
struct Request {
  GenerateRequest asked;
  std::vector<Choice> choices;
  bool forked = false;
  uint32_t cached_tokens = 0;  // of the prompt, when it was first admitted
  uint32_t overtaken = 0;      // while it waited
  bool awaits = false;         // a running request computes more of its prompt
  uint64_t arrival = 0;        // counts arrivals
  uint32_t preemptions = 0;
  uint32_t scored = 0;  // prompt tokens whose logprobs were told
  bool guaranteed = true;
  SlotDemand demand;      // when it was last admitted
  bool is_check = false;  // nobody asked for it: it computes again what `checked` holds
  SequenceId checked{0};
  kv::SlotPromise promise;

  uint64_t history_tokens(const Choice& choice) const { return asked.prompt.size() + choice.output.size(); }
  uint32_t open_choices() const;
  // That it has, or will have once it is forked.
  uint32_t sequences() const { return forked ? open_choices() : asked.n; }
  Choice& first_open() { return *std::ranges::find(choices, false, &Choice::finished); }
};

// A sequence that could run in this step.
struct Candidate {
  uint32_t request = 0;  // index into running
  uint32_t choice = 0;
};

enum class Admission : uint8_t {
  kAdmitted,
  kAwaits,  // a running request is computing more of its prompt
  kNoRoom,
};

struct Engine::State {
  State(const EngineOptions& options_in, exec::Executor& executor_in, exec::DeviceMemory& memory_in,
        exec::Sampler& sampler_in);

  // engine.cc
  void TakeCancels(const std::vector<RequestId>& cancels, std::vector<GenerateRequest>* arrivals, StepOutput* out);
  void TakeArrivals(std::vector<GenerateRequest> arrivals, StepOutput* out);
  std::optional<Rejection> Refuse(const GenerateRequest& asked) const;
  void Finish(Request& request, uint32_t choice, FinishReason reason, Status error, StepOutput* out);
  void DropFinished();
  EngineStats Stats() const;

  // inquiry.cc
  Answer AnswerTo(const Inquiry& inquiry);
  PrefixProbe Probe(const GenerateRequest& asked) const;

  // admission.cc
  void AdmitWaiting();
  kv::PrefixView FindFor(Request& request);
  Admission TryAdmit(Request& request, const kv::PrefixView& found);
  bool FitsWithExpected(const Request& request) const;
  uint64_t ExpectedGrowth(const Request& request) const;
  sched::GrowthView GrowthOf(const Request& request) const;
  SlotDemand DemandOf(const Request& request, const kv::PrefixView& found) const;
  // The tokens that the first open choice has to have in the KV, and how many of them a hit may skip.
  std::span<const TokenId> HistoryOf(const Request& request, const Choice& choice);
  uint64_t SkippableOf(const Request& request, const Choice& choice) const;
  void Attach(Request& request, Choice& choice);
  void AttachParked();
  void NoteTaken(Request& request, uint64_t full_slots);
  void TrimPromise(Request& request);
  uint32_t RunningSequences() const;
  // Most rows of one sequence in a step.
  uint32_t step_tokens_limit() const { return std::min(options.step_rows, options.prefill_chunk); }

  // hit_check.cc
  void SampleHit(const Request& request, uint64_t hit_tokens);
  void FinishCheck(Request& check, StepOutput* out);
  bool SameBlocks(SequenceId a, SequenceId b);
  void Poison(const Status& error, StepOutput* out);

  // preemption.cc
  // Makes room for the planned growth.
  void PreemptForGrowth();
  void Preempt(uint32_t index);

  // step.cc
  void RunStep(StepOutput* out);
  void PlanRows();
  void ListRows();
  exec::Batch BuildBatch();
  void ApplyLogits(const exec::Logits& logits, StepOutput* out);
  void AdvancePrompt(Request& request, const sched::PlannedRows& planned, const exec::Logits& logits,
                     uint32_t first_row, StepOutput* out);
  void ScorePrompt(Request& request, const sched::PlannedRows& planned, const exec::Logits& logits, uint32_t first_row,
                   StepOutput* out);
  void SampleNext(Request& request, uint32_t choice, std::span<const float> logits, StepOutput* out);
  void FailStep(const Status& error, StepOutput* out);

  const EngineOptions options;
  exec::Executor& executor;
  exec::DeviceMemory& memory;
  exec::Sampler& sampler;
  kv::KvManager kv;
  const kv::KvGeometry full_part, sliding_part;  // of kv.geometry()
  kv::SlotBudget budget;
  std::deque<Request> waiting;  // by arrival
  std::deque<Request> running;
  sched::OutputLengths output_lengths;
  uint64_t last_arrival = 0;
  Status poison;               // kOk, unless a verified hit differed
  bool admission_due = false;  // something came, or gave room, since waiting requests were last tried
  bool draining = false;
  EngineStats totals;
  std::optional<exec::CopyTicket> last_copy;  // to be waited for before a step runs

  // Of the step in progress; kept to reuse their memory.
  std::vector<Candidate> candidates;
  std::vector<sched::PlannedRows> plan;  // index: into candidates
  std::vector<TokenId> step_tokens;      // rows of the plan, in its order
  std::vector<kv::Growth> growth;        // per planned sequence
  std::vector<PageTableRef> step_pages;
  std::vector<exec::SequenceRows> step_sequences;
  std::vector<TokenId> history;  // of HistoryOf
};

}  // namespace cachalot::engine
