// A real model gives the same tokens and logprobs, to the bit, whatever the engine does with it.
#include "model_bits.h"

#include <algorithm>

#include "kernels/kernel_table.h"

namespace cachalot {
namespace {

TEST_P(ModelBits, AreTheSameInBatchesOfTwoSevenAndThirtyTwo) {
  const auto model = Load();
  const Scored alone = RunAlone(*model, GetParam().prompt_tokens);
  ASSERT_EQ(alone.size(), kOutput);
  for (uint32_t batch : {2u, 7u, 32u}) {
    std::vector<engine::GenerateRequest> requests;
    for (uint32_t i = 1; i < batch; ++i) requests.push_back(Request(100 + i, Prompt(3 + i % 11, i), 4 + i % 9));
    requests.insert(requests.begin() + batch / 2, Request(1, Prompt(GetParam().prompt_tokens), kOutput));
    EXPECT_EQ(Run(*model, std::move(requests)), alone) << batch;
  }
  // The pool is in disorder now: blocks lie scattered.
  EXPECT_EQ(RunAlone(*model, GetParam().prompt_tokens), alone);
}

TEST_P(ModelBits, AreTheSameForEveryPrefillChunk) {
  const Scored expected = RunAlone(*Load(), GetParam().prompt_tokens);
  for (uint32_t chunk : {1u, 16u, 100u, 512u}) {
    EXPECT_EQ(RunAlone(*Load({}, {.prefill_chunk = chunk, .prefix_cache = false}), GetParam().prompt_tokens), expected)
        << chunk;
  }
}

TEST_P(ModelBits, AreTheSameForOneAndTwoThreadsOnCpuAndSimlink) {
  cli::ModelOptions one, two, link;
  one.threads = 1;
  two.threads = 2;
  link.device = "simlink";
  const Scored expected = RunAlone(*Load(one), GetParam().prompt_tokens);
  EXPECT_EQ(RunAlone(*Load(two), GetParam().prompt_tokens), expected);
  EXPECT_EQ(RunAlone(*Load(link), GetParam().prompt_tokens), expected);
}

TEST_P(ModelBits, AreTheSameForEveryInstructionSet) {
  const Scored expected = RunAlone(*Load(), GetParam().short_prompt);
  for (const kernels::KernelTable* table : kernels::RunnableTables()) {
    cli::ModelOptions options;
    options.isa = table->isa;
    EXPECT_EQ(RunAlone(*Load(options), GetParam().short_prompt), expected) << table->isa;
  }
}

TEST_P(ModelBits, OfDecodedTokensAreThoseOfAPromptThatHoldsThem) {
  const auto model = Load();
  Tokens all = Prompt(GetParam().prompt_tokens);
  const Scored decoded = RunAlone(*model, GetParam().prompt_tokens);
  for (const SampledToken& t : decoded) all.push_back(t.token);
  engine::GenerateRequest request = Request(1, all, 0);
  request.prompt_logprobs = 5;
  engine::StepInput input;
  input.arrivals.push_back(request);
  Scored scored;
  do {
    for (const engine::PromptEvent& e : model->engine->Step(std::exchange(input, {})).prompts) {
      scored.insert(scored.end(), e.tokens.begin(), e.tokens.end());
    }
  } while (!model->engine->idle());
  EXPECT_EQ(Scored(scored.end() - kOutput, scored.end()), decoded);
}

TEST_P(ModelBits, AreTheSameOnAForkAfterCopyOnWrite) {
  const auto model = Load();
  // Not a multiple of the block: the fork shares an unfilled block, which is copied when it is written.
  const uint32_t prompt_tokens = GetParam().prompt_tokens / 16 * 16 + 5;
  const auto forked = [&](const char* device) {
    cli::ModelOptions options;
    options.device = device;
    const auto own = Load(options);
    engine::GenerateRequest request = Request(1, Prompt(prompt_tokens), kOutput);
    request.n = 3;
    return Run(*own, {request}, 2);
  };
  // The third choice alone: its tokens, scored by the model one after the other.
  const Scored third = forked("cpu");
  EXPECT_EQ(forked("simlink"), third);
  Tokens all = Prompt(prompt_tokens);
  for (const SampledToken& t : third) {
    engine::GenerateRequest request = Request(1, all, 1);
    request.sampling.temperature = 0;
    const Scored next = Run(*model, {request});
    EXPECT_EQ(next.front().top, t.top);
    all.push_back(t.token);
  }
}

TEST_P(ModelBits, AreTheSameOfAHitOfEveryLength) {
  const auto cold = Load();
  const auto warm = Load({}, {});
  const uint32_t longest = GetParam().prompt_tokens;
  Run(*warm, {Request(7, Prompt(longest), 1)});
  for (const uint32_t tokens : {15u, 16u, 17u, 31u, 32u, 33u, longest - 1, longest}) {
    const Scored expected = RunAlone(*cold, tokens);
    uint32_t cached = 0;
    // The beginning of a longer prompt, which a sliding model must go back to find; then the same prompt again.
    EXPECT_EQ(Run(*warm, {Request(1, Prompt(tokens), kOutput)}, 0, &cached), expected) << tokens;
    EXPECT_EQ(Run(*warm, {Request(1, Prompt(tokens), kOutput)}, 0, &cached), expected) << tokens;
    EXPECT_EQ(cached, tokens - 1);
    // A prompt that leaves it in the middle of a block.
    Tokens other = Prompt(tokens);
    for (const TokenId t : Prompt(21, 5)) other.push_back(t);
    EXPECT_EQ(Run(*warm, {Request(1, other, kOutput)}, 0, &cached), Run(*cold, {Request(1, other, kOutput)})) << tokens;
    EXPECT_GE(cached, tokens);
  }
}

TEST_P(ModelBits, AreTheSameWhenManyShareGiveWayAndComeBack) {
  const auto cold = Load();
  cli::ModelOptions options;
  options.kv_memory.bytes = uint64_t{64} << 20;  // far less than what is asked for below
  const auto warm = Load(options, {.max_sequences = 12, .admission = "expected", .verify_hits = 1});
  // Short answers first, so that little is expected; then long ones.
  for (const uint32_t output : {2u, 150u}) {
    std::vector<engine::GenerateRequest> requests;
    const uint32_t half = GetParam().prompt_tokens / 2;
    for (uint64_t i = 0; i < 12; ++i) {
      Tokens prompt = Prompt(half, 1 + i / 6);
      for (const TokenId t : Prompt(half, 10 + i)) prompt.push_back(t);
      requests.push_back(Request(1 + i, prompt, output));
    }
    const std::map<uint64_t, Scored> got = RunAll(*warm, requests);
    for (const size_t i : {0, 5, 11}) {
      engine::GenerateRequest alone = requests[i];
      alone.id = RequestId(1);
      EXPECT_EQ(got.at(1 + i), Run(*cold, {alone})) << output << " " << i;
    }
  }
  const engine::EngineStats stats = warm->engine->Step({}).stats;
  EXPECT_EQ(stats.preemptions > 0, !GetParam().slides);
  EXPECT_GT(stats.slots_evicted, 0u);
  EXPECT_GT(stats.prompt_tokens_cached, 0u);
  EXPECT_GT(stats.hits_verified, 0u);
}

CACHALOT_FOR_BOTH_MODELS(ModelBits);

}  // namespace
}  // namespace cachalot
