// ScriptedSampler gives requests the answers that a trace says they got; all others are sampled.
// Threads:   one.
// Ownership: owns the answers.
// Invariant: a request whose SamplingParams::seed has a script gets its tokens in order, whatever the logits are; one
//            that goes on for longer is sampled from there on.
// Cost:      a look-up per token; the script's tokens until it is forgotten.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "exec/sampler.h"

namespace cachalot::sim {

class ScriptedSampler final : public exec::Sampler {
 public:
  ScriptedSampler();

  void SetScript(uint64_t seed, std::vector<TokenId> answer);
  void Forget(uint64_t seed) { scripts_.erase(seed); }

  SampledToken Sample(const SamplingParams& params, const exec::SampleInput& input) override;

 private:
  std::unordered_map<uint64_t, std::vector<TokenId>> scripts_;
};

}  // namespace cachalot::sim
