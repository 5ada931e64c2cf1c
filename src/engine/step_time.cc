// How long steps take: learnt from those that ran, told of what is to be computed.
#include <algorithm>

#include "engine/engine_state.h"
#include "sched/backlog.h"

namespace cachalot::engine {

// Of the step before this one and of the wait after it. Requires that LearnStep was not called yet.
void Engine::State::CountTime(const StepInput& input) {
  (last_work ? totals.time.compute : totals.time.other) += input.last_duration - input.last_stalled;
  totals.time.transfers += input.last_stalled;
  (running.empty() && waiting.empty() ? totals.time.idle : totals.time.transfers) += input.waited;
}

// The step before this one computed so long.
void Engine::State::LearnStep(Nanos compute) {
  backlog_seconds.reset();
  if (last_work && compute > Nanos(0)) step_cost.Observe(*last_work, ToSeconds(compute));
  last_work.reset();
}

cost::StepWork Engine::State::WorkOf(const exec::Batch& batch) const {
  cost::StepWork work;
  for (const exec::SequenceRows& rows : batch.sequences) {
    work += work_shape.Rows(rows.first_position, rows.tokens.size(), rows.logit_rows);
  }
  return work;
}

// What it would take to have the request's KV again. Forks share the prompt, which the first of them has computed again
// for all.
double Engine::State::RecomputeSeconds(const Request& request) const {
  cost::StepWork work;
  uint64_t shared = 0;
  for (const Choice& choice : request.choices) {
    if (choice.sequence.value == 0) continue;
    const uint64_t length = kv.Length(choice.sequence), from = std::min(shared, length);
    work += work_shape.Rows(from, length - from);
    if (request.forked) shared = request.asked.prompt.size();
  }
  return step_cost.Added(work);
}

// Until all that runs and waits has been answered.
double Engine::State::BacklogSeconds() {
  if (backlog_seconds) return *backlog_seconds;
  const uint64_t computed = totals.prompt_tokens_computed, cached = totals.prompt_tokens_cached;
  const double found = computed == 0 ? 0 : static_cast<double>(cached) / static_cast<double>(computed + cached);
  std::vector<sched::BacklogView> views;
  const auto expected_answer = [&](const Request& request, uint64_t generated) {
    const uint64_t limit = request.asked.max_tokens - std::min<uint64_t>(generated, request.asked.max_tokens);
    const uint64_t usual = output_lengths.Mean().value_or(request.asked.max_tokens);
    return std::min(limit, usual > generated ? usual - generated : 1);
  };
  for (const Request& request : waiting) {
    const uint64_t prompt = request.history_tokens(request.choices.front());
    const auto done = static_cast<uint64_t>(found * static_cast<double>(prompt));
    views.push_back({done, prompt - done, expected_answer(request, 0), request.sequences()});
  }
  for (const Request& request : running) {
    for (const Choice& choice : request.choices) {
      if (choice.finished) continue;
      const bool parked = choice.sequence.value == 0;  // it will share the prompt
      const uint64_t done = parked ? request.asked.prompt.size() : kv.Length(choice.sequence);
      const uint64_t history = request.history_tokens(choice);
      views.push_back(
          {done, history - done, expected_answer(request, choice.output.size()), request.forked ? 1 : request.asked.n});
    }
  }
  const sched::BacklogPace pace{options.step_rows, std::max(RunningSequences(), 1u)};
  backlog_seconds = sched::BacklogSeconds(views, pace, work_shape, step_cost);
  return *backlog_seconds;
}

}  // namespace cachalot::engine
