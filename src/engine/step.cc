// The step as a transaction: plan, reserve, move, run, sample, commit.
#include <algorithm>

#include "engine/engine_state.h"

namespace cachalot::engine {

void Engine::State::RunStep(StepOutput* out) {
  PlanRows();
  if (plan.empty()) return;

  std::vector<kv::Growth> growth;
  for (const sched::PlannedRows& p : plan) {
    const Candidate& c = candidates[p.index];
    growth.push_back({running[c.request].choices[c.choice].sequence, p.rows});
  }
  Result<kv::StepReservation> reservation = kv.Reserve(growth);
  if (!reservation.ok()) return FailStep(reservation.status(), out);

  if (!reservation->copies().empty()) memory.Wait(memory.CopyWithin(reservation->copies()));

  const Result<exec::Logits> logits = executor.Run(BuildBatch());
  if (!logits.ok()) {
    { const kv::StepReservation rolled_back = std::move(reservation).value(); }
    return FailStep(logits.status(), out);
  }
  std::move(reservation).value().Commit();
  ++totals.steps;
  ApplyLogits(*logits, out);
}

void Engine::State::PlanRows() {
  candidates.clear();
  std::vector<sched::RunnableView> views;
  for (uint32_t r = 0; r < running.size(); ++r) {
    const Running& request = running[r];
    for (uint32_t c = 0; c < request.choices.size(); ++c) {
      if (request.choices[c].finished) continue;
      sched::RunnableView view;
      view.index = static_cast<uint32_t>(candidates.size());
      view.decoding = !request.in_prefill();
      view.pending_rows = static_cast<uint32_t>(request.request.prompt.size()) - request.prompt_computed;
      view.logits_everywhere = request.request.prompt_logprobs >= 0;
      views.push_back(view);
      candidates.push_back({r, c});
    }
  }
  const exec::StepLimits limits = executor.limits();
  plan = sched::PlanStep(views, {std::min(options.step_rows, limits.rows), options.prefill_chunk, limits.logit_rows});
}

exec::Batch Engine::State::BuildBatch() {
  const uint32_t groups = static_cast<uint32_t>(kv.geometry().windows.size());
  step_tokens.clear();
  step_pages.clear();
  step_sequences.clear();
  size_t rows = 0;
  for (const sched::PlannedRows& p : plan) rows += p.rows;
  step_tokens.reserve(rows);  // the spans below point into both
  step_pages.reserve(plan.size() * groups);
  for (const sched::PlannedRows& p : plan) {
    const Running& request = running[candidates[p.index].request];
    const Choice& choice = request.choices[candidates[p.index].choice];
    const size_t first_token = step_tokens.size(), first_page = step_pages.size();
    if (request.in_prefill()) {
      const auto begin = request.request.prompt.begin() + request.prompt_computed;
      step_tokens.insert(step_tokens.end(), begin, begin + p.rows);
    } else {
      step_tokens.push_back(choice.output.back());
    }
    for (uint32_t g = 0; g < groups; ++g) step_pages.push_back(kv.Pages(choice.sequence, g));
    step_sequences.push_back({{step_tokens.data() + first_token, p.rows},
                              kv.Length(choice.sequence),
                              {step_pages.data() + first_page, groups},
                              p.logit_rows});
  }
  return {step_sequences};
}

void Engine::State::ApplyLogits(const exec::Logits& logits, StepOutput* out) {
  uint32_t row = 0;
  for (const sched::PlannedRows& p : plan) {
    const Candidate& c = candidates[p.index];
    Running& request = running[c.request];
    if (request.in_prefill()) {
      AdvancePrompt(request, p, logits, row, out);
    } else {
      SampleNext(request, c.choice, logits.row(row), out);
    }
    row += p.logit_rows;
  }
}

void Engine::State::AdvancePrompt(Running& request, const sched::PlannedRows& planned, const exec::Logits& logits,
                                  uint32_t first_row, StepOutput* out) {
  if (request.request.prompt_logprobs >= 0) ScorePrompt(request, planned, logits, first_row, out);
  request.prompt_computed += planned.rows;
  totals.prompt_tokens_computed += planned.rows;
  if (request.in_prefill()) return;

  const SequenceId prompt = request.choices.front().sequence;
  for (uint32_t c = 1; c < request.request.n; ++c) request.choices.push_back({kv.Fork(prompt), {}, nullptr, false});
  const std::span<const float> last = logits.row(first_row + planned.logit_rows - 1);
  for (uint32_t c = 0; c < request.request.n; ++c) {
    if (request.request.stop) request.choices[c].stop = request.request.stop();
    if (request.request.max_tokens == 0) {
      Finish(request, c, FinishReason::kLength, OkStatus(), out);
    } else {
      SampleNext(request, c, last, out);
    }
  }
}

void Engine::State::ScorePrompt(const Running& request, const sched::PlannedRows& planned, const exec::Logits& logits,
                                uint32_t first_row, StepOutput* out) {
  const std::vector<TokenId>& prompt = request.request.prompt;
  PromptEvent event{request.request.id, request.prompt_computed + 1, {}};
  for (uint32_t i = 0; i < planned.rows; ++i) {
    const uint32_t next = request.prompt_computed + i + 1;
    if (next == prompt.size()) break;
    event.tokens.push_back(
        sampler.Score(logits.row(first_row + i), prompt[next], static_cast<uint32_t>(request.request.prompt_logprobs)));
  }
  if (!event.tokens.empty()) out->prompts.push_back(std::move(event));
}

void Engine::State::SampleNext(Running& request, uint32_t choice_index, std::span<const float> logits,
                               StepOutput* out) {
  const GenerateRequest& asked = request.request;
  Choice& choice = request.choices[choice_index];
  const uint64_t position = asked.prompt.size() + choice.output.size();
  SampledToken sampled = sampler.Sample(asked.sampling, {logits, asked.prompt, choice.output, choice_index, position});
  const TokenId token = sampled.token;
  choice.output.push_back(token);
  ++totals.tokens_generated;
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
    Running& request = running[candidates[p.index].request];
    for (uint32_t c = 0; c < request.request.n; ++c) Finish(request, c, FinishReason::kError, error, out);
  }
}

}  // namespace cachalot::engine
