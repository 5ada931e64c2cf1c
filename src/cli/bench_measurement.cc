#include "cli/bench_measurement.h"

#include <algorithm>
#include <utility>

namespace cachalot::cli {

Result<double> BenchMeasurement::Measure(const BenchRow& row) {
  Submit(RequestsOf(row));
  const Result<double> rate = Time(row);
  CancelAll();
  return rate;
}

Result<double> BenchMeasurement::Time(const BenchRow& row) {
  const uint64_t sequences = row.sequences;
  if (row.test == BenchTest::kPrefill) {
    CACHALOT_RETURN_IF_ERROR(StepUntil([&](const Progress& p) { return p.prompt_tokens >= row.depth; }));
  } else if (row.test == BenchTest::kDecode) {
    CACHALOT_RETURN_IF_ERROR(StepUntil([&](const Progress& p) { return p.answering == sequences; }));
  }
  const Progress before = progress_;
  const Nanos begin = model_.clock.Now();
  CACHALOT_RETURN_IF_ERROR(StepUntil([&](const Progress& p) {
    switch (row.test) {
      case BenchTest::kPrefill: return p.prompt_tokens == (uint64_t{row.depth} + row.prompt) * sequences;
      case BenchTest::kDecode: return p.output_tokens >= before.output_tokens + row.output * sequences;
      case BenchTest::kCombined: return p.output_tokens == row.output * sequences;
    }
    return true;
  }));
  const double seconds = ToSeconds(model_.clock.Now() - begin);
  // A prefill's first tokens come with its last step, and are not counted.
  const uint64_t tokens = row.test == BenchTest::kPrefill ? progress_.prompt_tokens - before.prompt_tokens
                                                          : progress_.tokens() - before.tokens();
  return static_cast<double>(tokens) / seconds;
}

void BenchMeasurement::Submit(const BenchRequests& asked) {
  progress_ = {};
  first_id_ = next_id_;
  choices_ = asked.choices;
  for (uint32_t i = 0; i < asked.requests; ++i) {
    engine::GenerateRequest request;
    request.id = RequestId(next_id_++);
    for (uint32_t t = 0; t < asked.prompt_tokens; ++t) {
      request.prompt.push_back(static_cast<TokenId>(random_.Below(model_.executor->vocabulary())));
    }
    request.max_tokens = static_cast<uint32_t>(asked.max_tokens);
    request.n = asked.choices;
    request.sampling.temperature = 0;
    pending_.arrivals.push_back(std::move(request));
  }
  answered_.assign(uint64_t{asked.requests} * asked.choices, false);
}

template <class Predicate>
Status BenchMeasurement::StepUntil(Predicate reached) {
  while (!reached(progress_)) {
    const engine::StepOutput output = model_.engine->Step(std::exchange(pending_, {}));
    if (!output.rejections.empty()) return Invalid(output.rejections.front().message);
    for (const engine::FinishEvent& finish : output.finishes) {
      if (!finish.error.ok()) return finish.error;
    }
    progress_.prompt_tokens += output.stats.prompt_tokens_computed - prompt_tokens_before_;
    prompt_tokens_before_ = output.stats.prompt_tokens_computed;
    progress_.output_tokens += output.tokens.size();
    for (const engine::TokenEvent& event : output.tokens) {
      answered_[(event.id.value - first_id_) * choices_ + event.choice] = true;
    }
    progress_.answering = static_cast<uint32_t>(std::ranges::count(answered_, true));
  }
  return OkStatus();
}

void BenchMeasurement::CancelAll() {
  pending_ = {};
  for (uint64_t id = first_id_; id < next_id_; ++id) pending_.cancels.push_back(RequestId(id));
  (void)model_.engine->Step(std::exchange(pending_, {}));
}

}  // namespace cachalot::cli
