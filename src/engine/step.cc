// The step as a transaction: plan, reserve, move, run, sample, commit.
#include <algorithm>

#include "engine/decision_log.h"
#include "engine/engine_state.h"

namespace cachalot::engine {

void Engine::State::RunStep(StepOutput* out) {
  SettleLoads();
  AttachParked();
  PlanRows();
  if (plan.empty()) return;
  ListRows();
  AwaitCopies(kv.SlotsToGrow(growth));
  PreemptForGrowth();

  Result<kv::StepReservation> reservation = kv.Reserve(growth);
  if (!reservation.ok()) return FailStep(reservation.status(), out);

  ScrubFreed();
  if (!reservation->copies().empty()) last_copy = memory.CopyWithin(reservation->copies());
  const Status copied = last_copy ? memory.Wait(*std::exchange(last_copy, std::nullopt)) : OkStatus();

  const exec::Batch batch = BuildBatch();
  const cost::StepWork work = WorkOf(batch);
  const Result<exec::Logits> logits = copied.ok() ? executor.Run(batch) : copied;
  if (!logits.ok()) {
    { const kv::StepReservation rolled_back = std::move(reservation).value(); }
    return FailStep(logits.status(), out);
  }
  EndCopies();
  const std::vector<uint32_t> lost = DropLost();
  for (size_t i = 0; i < plan.size(); ++i) {
    const uint32_t request = candidates[plan[i].index].request;
    if (!std::ranges::binary_search(lost, request)) NoteTaken(running[request], reservation->full_slots_taken()[i]);
  }
  std::move(reservation).value().Commit();
  ++totals.steps;
  EndJoined();
  NoteFronts();
  totals.tokens_computed += work.rows;
  CountRepeats();
  last_work = work;
  out->predicted_seconds = step_cost.Predict(work);
  ApplyLogits(*logits, out);
  RequeueLost(lost);
}

void Engine::State::PlanRows() {
  candidates.clear();
  runnable.clear();
  for (uint32_t r = 0; r < running.size(); ++r) {
    const Request& request = running[r];
    const Loading* const loading = request.loading.get();
    if (loading != nullptr && !loading->gate && !MayJoin(request)) {
      AddFront(r);
      continue;
    }
    for (uint32_t c = 0; c < request.choices.size(); ++c) {
      const Choice& choice = request.choices[c];
      if (choice.finished || choice.sequence.value == 0) continue;
      sched::RunnableView view;
      view.index = static_cast<uint32_t>(candidates.size());
      const uint64_t there = loading != nullptr ? loading->tokens.size() : kv.Length(choice.sequence);
      view.pending_rows = static_cast<uint32_t>(request.history_tokens(choice) - there);
      view.decoding = request.forked && view.pending_rows == 1;
      view.logits_everywhere = request.asked.prompt_logprobs >= 0 && !request.forked;
      runnable.push_back(view);
      candidates.push_back({r, c});
    }
  }
  const exec::StepLimits limits = executor.limits();
  plan =
      sched::PlanStep(runnable, {std::min(options.step_rows, limits.rows), options.prefill_chunk, limits.logit_rows});
  JoinLoads();
}

// The rows of a request that computes what is below its load.
void Engine::State::AddFront(uint32_t index) {
  const Request& request = running[index];
  const sched::Meeting& meeting = request.loading->meeting;
  const uint64_t rows = meeting.low_token() - meeting.front_token();
  if (rows == 0 || !FrontMayRun(*request.loading)) return;
  const auto choice = std::ranges::find(request.choices, request.loading->sequence, &Choice::sequence);
  runnable.push_back({.index = static_cast<uint32_t>(candidates.size()),
                      .pending_rows = static_cast<uint32_t>(rows),
                      .last_logits = false});
  candidates.push_back({index, static_cast<uint32_t>(choice - request.choices.begin())});
}

// Rows below loads were computed.
void Engine::State::NoteFronts() {
  for (const sched::PlannedRows& p : plan) {
    const Request& request = running[candidates[p.index].request];
    if (request.loading == nullptr) continue;
    request.loading->meeting.Computed(p.rows);
    fair_share.Charge(request.asked.tenant, p.rows);
  }
}

// The tokens of the planned rows, in step_tokens, and the growth that they are.
void Engine::State::ListRows() {
  step_tokens.clear();
  growth.clear();
  size_t rows = 0;
  for (const sched::PlannedRows& p : plan) rows += p.rows;
  step_tokens.reserve(rows);  // spans point into it
  for (const sched::PlannedRows& p : plan) {
    const Request& request = running[candidates[p.index].request];
    const Choice& choice = request.choices[candidates[p.index].choice];
    const std::vector<TokenId>& prompt = request.asked.prompt;
    const uint64_t first = kv.Length(choice.sequence);
    const size_t at = step_tokens.size();
    for (uint64_t i = first; i < first + p.rows; ++i) {
      step_tokens.push_back(i < prompt.size() ? prompt[i] : choice.output[i - prompt.size()]);
    }
    growth.push_back({choice.sequence, p.rows, {step_tokens.data() + at, p.rows}});
  }
}

exec::Batch Engine::State::BuildBatch() {
  const uint32_t groups = static_cast<uint32_t>(kv.geometry().windows.size());
  step_pages.clear();
  step_sequences.clear();
  step_pages.reserve(plan.size() * groups);  // spans point into it
  for (size_t i = 0; i < plan.size(); ++i) {
    const size_t first_page = step_pages.size();
    for (uint32_t g = 0; g < groups; ++g) step_pages.push_back(kv.Pages(growth[i].sequence, g));
    const Candidate& candidate = candidates[plan[i].index];
    Loading* const loading = running[candidate.request].loading.get();
    step_sequences.push_back({growth[i].ids,
                              kv.Length(growth[i].sequence),
                              {step_pages.data() + first_page, groups},
                              plan[i].logit_rows,
                              loading != nullptr && loading->gate ? &*loading->gate : nullptr});
    if (options.decision_log == nullptr) continue;
    options.decision_log->Planned(running[candidate.request].asked.id, candidate.choice, step_sequences.back(),
                                  kv.geometry().block_tokens);
  }
  return {step_sequences};
}

void Engine::State::ApplyLogits(const exec::Logits& logits, StepOutput* out) {
  uint32_t row = 0;
  for (const sched::PlannedRows& p : plan) {
    const Candidate& c = candidates[p.index];
    Request& request = running[c.request];
    const bool lost = request.choices[c.choice].sequence.value == 0;
    if (!lost) request.computed_tokens += p.rows;
    if (lost) {
      // Nothing came of its rows.
    } else if (!request.forked) {
      AdvancePrompt(request, p, logits, row, out);
    } else if (p.logit_rows > 0) {
      SampleNext(request, c.choice, logits.row(row), out);
    }
    row += p.logit_rows;
    if (!poison.ok()) return;
  }
}

void Engine::State::AdvancePrompt(Request& request, const sched::PlannedRows& planned, const exec::Logits& logits,
                                  uint32_t first_row, StepOutput* out) {
  const GenerateRequest& asked = request.asked;
  const SequenceId prompt = request.choices.front().sequence;
  if (request.is_check) {
    if (kv.Length(prompt) == asked.prompt.size()) FinishCheck(request, out);
    return;
  }
  if (asked.prompt_logprobs >= 0) ScorePrompt(request, planned, logits, first_row, out);
  totals.prompt_tokens_computed += planned.rows;
  if (kv.Length(prompt) < asked.prompt.size()) return;

  request.forked = true;
  for (uint32_t c = 1; c < asked.n; ++c) request.choices.push_back({kv.Fork(prompt), {}, nullptr, false});
  const std::span<const float> last = logits.row(first_row + planned.logit_rows - 1);
  for (uint32_t c = 0; c < asked.n; ++c) {
    if (asked.stop) request.choices[c].stop = asked.stop();
    if (asked.max_tokens == 0) {
      EndDecision(request, sched::ResumeEnd::kFirstToken);
      Finish(request, c, FinishReason::kLength, OkStatus(), out);
    } else {
      SampleNext(request, c, last, out);
    }
  }
}

void Engine::State::ScorePrompt(Request& request, const sched::PlannedRows& planned, const exec::Logits& logits,
                                uint32_t first_row, StepOutput* out) {
  const std::vector<TokenId>& prompt = request.asked.prompt;
  const auto begin = static_cast<uint32_t>(kv.Length(request.choices.front().sequence)) - planned.rows;
  PromptEvent event{request.asked.id, std::max(begin, request.scored) + 1, {}};
  for (uint32_t i = 0; i < planned.rows; ++i) {
    const uint32_t next = begin + i + 1;
    if (next == prompt.size()) break;
    if (next <= request.scored) continue;  // told before it was preempted
    event.tokens.push_back(
        sampler.Score(logits.row(first_row + i), prompt[next], static_cast<uint32_t>(request.asked.prompt_logprobs)));
  }
  request.scored += static_cast<uint32_t>(event.tokens.size());
  if (!event.tokens.empty()) out->prompts.push_back(std::move(event));
}

void Engine::State::SampleNext(Request& request, uint32_t choice_index, std::span<const float> logits,
                               StepOutput* out) {
  const GenerateRequest& asked = request.asked;
  Choice& choice = request.choices[choice_index];
  const uint64_t position = asked.prompt.size() + choice.output.size();
  SampledToken sampled = sampler.Sample(asked.sampling, {logits, asked.prompt, choice.output, choice_index, position});
  const TokenId token = sampled.token;
  choice.output.push_back(token);
  ++totals.tokens_generated;
  EndDecision(request, sched::ResumeEnd::kFirstToken);
  fair_share.Charge(asked.tenant, 1);
  out->tokens.push_back({asked.id, choice_index, std::move(sampled)});

  if (std::ranges::binary_search(asked.end_tokens, token) || (choice.stop && choice.stop->Push(token))) {
    Finish(request, choice_index, FinishReason::kStop, OkStatus(), out);
  } else if (choice.output.size() >= asked.max_tokens) {
    Finish(request, choice_index, FinishReason::kLength, OkStatus(), out);
  }
}

void Engine::State::FailStep(const Status& error, StepOutput* out) {
  ++totals.step_failures;
  for (const sched::PlannedRows& p : plan) {
    Request& request = running[candidates[p.index].request];
    for (uint32_t c = 0; c < request.asked.n; ++c) Finish(request, c, FinishReason::kError, error, out);
  }
  RequeueLost(DropLost());
}

}  // namespace cachalot::engine
