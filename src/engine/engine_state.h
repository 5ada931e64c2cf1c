// The engine's private state, shared by engine.cc (arrivals, admission, endings) and step.cc (the transaction).
// Threads:   engine thread.
// Ownership: owns all requests; see engine.h.
// Invariant: `running` holds requests in the order of their admission; each has a promise for its peak.
// Cost:      none.
#pragma once

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
#include "sched/step_plan.h"

namespace cachalot::engine {

// One sequence of a request. The last token of `output` is not in the KV yet: it is the next step's row.
struct Choice {
  SequenceId sequence;
  std::vector<TokenId> output;
  std::unique_ptr<StopCondition> stop;
  bool finished = false;
};

// An admitted request. While its prompt is computed it has one choice, whose output is empty; then n.
struct Running {
  GenerateRequest request;
  kv::SlotPromise promise;
  uint32_t prompt_computed = 0;
  std::vector<Choice> choices;

  bool in_prefill() const { return prompt_computed < request.prompt.size(); }
};

// A sequence that could run in this step.
struct Candidate {
  uint32_t request = 0;  // index into running
  uint32_t choice = 0;
};

struct Engine::State {
  State(const EngineOptions& options_in, exec::Executor& executor_in, exec::DeviceMemory& memory_in,
        exec::Sampler& sampler_in)
      : options(options_in),
        executor(executor_in),
        memory(memory_in),
        sampler(sampler_in),
        kv(kv::GeometryOf(executor_in.layout(), memory_in.slots())),
        budget(memory_in.slots()) {}

  // engine.cc
  void TakeCancels(const std::vector<RequestId>& cancels, std::vector<GenerateRequest>* arrivals, StepOutput* out);
  void TakeArrivals(std::vector<GenerateRequest> arrivals, StepOutput* out);
  std::optional<Rejection> Refuse(const GenerateRequest& request) const;
  void AdmitWaiting();
  uint64_t PeakSlotsOf(const GenerateRequest& request) const;
  uint32_t RunningSequences() const;
  void Finish(Running& running, uint32_t choice, FinishReason reason, Status error, StepOutput* out);
  void DropFinished();
  EngineStats Stats() const;

  // step.cc
  void RunStep(StepOutput* out);
  void PlanRows();
  exec::Batch BuildBatch();
  void ApplyLogits(const exec::Logits& logits, StepOutput* out);
  void AdvancePrompt(Running& running, const sched::PlannedRows& planned, const exec::Logits& logits,
                     uint32_t first_row, StepOutput* out);
  void ScorePrompt(const Running& running, const sched::PlannedRows& planned, const exec::Logits& logits,
                   uint32_t first_row, StepOutput* out);
  void SampleNext(Running& running, uint32_t choice, std::span<const float> logits, StepOutput* out);
  void FailStep(const Status& error, StepOutput* out);

  const EngineOptions options;
  exec::Executor& executor;
  exec::DeviceMemory& memory;
  exec::Sampler& sampler;
  kv::KvManager kv;
  kv::SlotBudget budget;
  std::deque<GenerateRequest> waiting;
  std::vector<Running> running;
  bool draining = false;
  EngineStats totals;

  // Of the step in progress; kept to reuse their memory.
  std::vector<Candidate> candidates;
  std::vector<sched::PlannedRows> plan;  // index: into candidates
  std::vector<TokenId> step_tokens;
  std::vector<PageTableRef> step_pages;
  std::vector<exec::SequenceRows> step_sequences;
};

}  // namespace cachalot::engine
