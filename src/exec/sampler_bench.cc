// Time to sample one token from a vocabulary of 262,144 (Gemma) and 49,152 (SmolLM2).
#include <benchmark/benchmark.h>

#include <vector>

#include "base/random.h"
#include "exec/sampler.h"
#include "kernels/kernel_table.h"

namespace cachalot::exec {
namespace {

// Bell-shaped; a peaked row has some tokens far above the rest, as a language model mostly gives.
enum class Row { kFlat, kPeaked };

std::vector<float> Logits(size_t count, Row row) {
  SplitMix64 random(1);
  std::vector<float> logits;
  for (size_t i = 0; i < count; ++i) {
    double sum = -6;
    for (int k = 0; k < 12; ++k) sum += random.Uniform();
    logits.push_back(static_cast<float>(3 * sum));
  }
  if (row == Row::kPeaked) {
    for (size_t i = 0; i < 50; ++i) logits[random.Below(count)] += static_cast<float>(12 + 4 * random.Uniform());
  }
  return logits;
}

void Run(benchmark::State& state, const SamplingParams& params, Row row = Row::kPeaked) {
  const std::vector<float> logits = Logits(static_cast<size_t>(state.range(0)), row);
  Sampler sampler(*kernels::RunnableTables().front());
  const std::vector<TokenId> output(500, 7);
  SampleInput input{.logits = logits, .output = output};
  for (auto _ : state) {
    ++input.position;
    benchmark::DoNotOptimize(sampler.Sample(params, input));
  }
}

BENCHMARK_CAPTURE(Run, Greedy, {.temperature = 0})->Arg(49'152)->Arg(262'144);
BENCHMARK_CAPTURE(Run, Temperature, {.temperature = 0.8f})->Arg(49'152)->Arg(262'144);
BENCHMARK_CAPTURE(Run, TopK40, {.top_k = 40})->Arg(49'152)->Arg(262'144);
BENCHMARK_CAPTURE(Run, TopP95, {.top_p = 0.95f})->Arg(49'152)->Arg(262'144);
BENCHMARK_CAPTURE(Run, TopP95Flat, {.top_p = 0.95f}, Row::kFlat)->Arg(49'152)->Arg(262'144);
BENCHMARK_CAPTURE(Run, AllCuts, {.temperature = 0.7f, .top_k = 64, .top_p = 0.95f, .min_p = 0.05f})->Arg(262'144);
BENCHMARK_CAPTURE(Run, Penalties, {.temperature = 0.8f, .repetition_penalty = 1.1f})->Arg(262'144);
BENCHMARK_CAPTURE(Run, Logprobs20, {.temperature = 0, .logprobs = 20})->Arg(262'144);

}  // namespace
}  // namespace cachalot::exec
