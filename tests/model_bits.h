// ModelBits runs requests on a real model in this process, and keeps what each got, logprobs included.
// Threads:   one; the model has its own.
// Ownership: who loads a model owns it.
// Invariant: the same request gets the same tokens and logprobs, to the bit.
// Cost:      loading reads the whole file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cli/loaded_model.h"

namespace cachalot {

using Tokens = std::vector<TokenId>;
using Scored = std::vector<SampledToken>;

struct ModelCase {
  const char* model;
  uint32_t prompt_tokens;  // past the window, where layers slide
  uint32_t short_prompt;   // for the scalar kernels
  bool slides;             // most KV is of windows, which are promised whole: growth alone preempts nobody
};

inline engine::GenerateRequest Request(uint64_t id, Tokens prompt, uint32_t max_tokens) {
  engine::GenerateRequest request;
  request.id = RequestId(id);
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0.7f;
  request.sampling.top_p = 0.9f;
  request.sampling.seed = 42;
  request.sampling.logprobs = 5;
  return request;
}

class ModelBits : public testing::TestWithParam<ModelCase> {
 protected:
  static constexpr uint32_t kOutput = 8;

  // Without a prefix cache, so that all is computed each time.
  static std::unique_ptr<cli::LoadedModel> Load(cli::ModelOptions options = {},
                                                engine::EngineOptions engine = {.prefix_cache = false}) {
    options.model = GetParam().model;
    options.context = 2048;
    auto model = cli::LoadModel(options, engine);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  }

  static Tokens Prompt(uint32_t count, uint64_t seed = 1) {
    SplitMix64 random(seed);
    Tokens prompt(count);
    for (TokenId& t : prompt) t = static_cast<TokenId>(random.Below(40000));
    return prompt;
  }

  // With the time, and what the step before it took, as a server's loop gives them.
  static engine::StepOutput Step(cli::LoadedModel& model, engine::StepInput input, Nanos* last_duration) {
    input.now = model.clock.Now();
    input.last_duration = *last_duration;
    engine::StepOutput out = model.engine->Step(std::move(input));
    *last_duration = model.clock.Now() - input.now;
    return out;
  }

  // Runs all requests together; what choice `choice` of request 1 got, and how many of its tokens were cached.
  static Scored Run(cli::LoadedModel& model, std::vector<engine::GenerateRequest> requests, uint32_t choice = 0,
                    uint32_t* cached = nullptr) {
    Scored got;
    engine::StepInput input;
    input.arrivals = std::move(requests);
    Nanos last_duration{0};
    do {
      const engine::StepOutput out = Step(model, std::exchange(input, {}), &last_duration);
      EXPECT_TRUE(out.rejections.empty()) << out.rejections.front().message;
      for (const engine::TokenEvent& e : out.tokens) {
        if (e.id == RequestId(1) && e.choice == choice) got.push_back(e.token);
      }
      for (const engine::FinishEvent& e : out.finishes) {
        if (e.id == RequestId(1) && cached != nullptr) *cached = e.cached_tokens;
      }
    } while (!model.engine->idle());
    return got;
  }

  // The same for choice 0 of every request.
  static std::map<uint64_t, Scored> RunAll(cli::LoadedModel& model, std::vector<engine::GenerateRequest> requests) {
    std::map<uint64_t, Scored> got;
    engine::StepInput input;
    input.arrivals = std::move(requests);
    Nanos last_duration{0};
    do {
      const engine::StepOutput out = Step(model, std::exchange(input, {}), &last_duration);
      for (const engine::TokenEvent& e : out.tokens) got[e.id.value].push_back(e.token);
    } while (!model.engine->idle());
    return got;
  }

  static Scored RunAlone(cli::LoadedModel& model, uint32_t prompt_tokens) {
    return Run(model, {Request(1, Prompt(prompt_tokens), kOutput)});
  }
};

inline std::string NameOf(const testing::TestParamInfo<ModelCase>& info) {
  std::string name = info.param.model;
  std::erase(name, '-');
  return name;
}

#define CACHALOT_FOR_BOTH_MODELS(fixture)                                                                    \
  INSTANTIATE_TEST_SUITE_P(SmolLm2, fixture, testing::Values(ModelCase{"smollm2", 150, 40, false}), NameOf); \
  INSTANTIATE_TEST_SUITE_P(Gemma, fixture, testing::Values(ModelCase{"gemma3-270m", 600, 40, true}), NameOf)

}  // namespace cachalot
