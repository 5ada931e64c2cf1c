#include "sim/scripted_sampler.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/read_trace.h"
#include "sim/trace_serving.h"
#include "sim/workload.h"

namespace cachalot::sim {
namespace {

TEST(ScriptedSampler, GivesTheScriptAndThenSamples) {
  ScriptedSampler sampler;
  sampler.SetScript(7, {3, 1});
  const std::vector<float> logits = {0, 0, 9, 0};
  SamplingParams params{.temperature = 0, .seed = 7};
  std::vector<TokenId> output;
  for (int i = 0; i < 3; ++i) {
    output.push_back(sampler.Sample(params, {.logits = logits, .prompt = {}, .output = output}).token);
  }
  EXPECT_EQ(output, (std::vector<TokenId>{3, 1, 2}));
  params.seed = 8;
  EXPECT_EQ(sampler.Sample(params, {.logits = logits, .prompt = {}, .output = {}}).token, 2u);
  sampler.Forget(7);
  params.seed = 7;
  EXPECT_EQ(sampler.Sample(params, {.logits = logits, .prompt = {}, .output = {}}).token, 2u);
}

std::vector<uint64_t> CachedTokens(const Trace& trace) {
  TraceServingOptions options;
  options.model.vocabulary = 4096;
  options.model.curve = {0.01, 5e-5, 0, 0, 0};
  options.slots = 100'000;
  std::vector<uint64_t> cached(trace.requests.size());
  options.on_request = [&](const ReplayedRequest& request) { cached[request.index] = request.cached_tokens; };
  const auto report = ServeTrace(trace, options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return cached;
}

TEST(RecordReplay, FindsWhatIsTheSameToTheTokenAndAnswersThatComeBack) {
  const auto file = ReadTraceFile(std::string(CACHALOT_SOURCE_DIR) + "/tests/data/traces/record.jsonl", {});
  ASSERT_TRUE(file.ok()) << file.status().message();
  // A system prompt of 40 tokens; all of it but the row whose logits are asked for; then a prompt that goes on where
  // the first answer ended, whose last token was never computed.
  EXPECT_EQ(CachedTokens(file->trace), (std::vector<uint64_t>{0, 40, 39, 99}));
}

TEST(WorkloadReplay, ConversationsFindTheirAnswers) {
  Trace trace = MakeWorkload("agent", {.requests = 60, .block_tokens = 64}).value();
  uint64_t with_answers = 0, without = 0;
  for (const uint64_t tokens : CachedTokens(trace)) with_answers += tokens;
  for (TraceRequest& request : trace.requests) request.text.clear();  // only blocks are known
  for (const uint64_t tokens : CachedTokens(trace)) without += tokens;
  EXPECT_GT(with_answers, without + 2000);
}

}  // namespace
}  // namespace cachalot::sim
