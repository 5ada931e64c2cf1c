#include "sim/scripted_sampler.h"

#include <utility>

#include "exec/sim/sim_executor.h"

namespace cachalot::sim {

ScriptedSampler::ScriptedSampler() : exec::Sampler(exec::SimSampler()) {}

void ScriptedSampler::SetScript(uint64_t seed, std::vector<TokenId> answer) { scripts_[seed] = std::move(answer); }

SampledToken ScriptedSampler::Sample(const SamplingParams& params, const exec::SampleInput& input) {
  const auto script = scripts_.find(params.seed);
  if (script == scripts_.end() || input.output.size() >= script->second.size()) return Sampler::Sample(params, input);
  return {.token = script->second[input.output.size()], .logprob = 0, .top = {}};
}

}  // namespace cachalot::sim
