#include "exec/sim/sim_executor.h"

#include <gtest/gtest.h>

namespace cachalot::exec {
namespace {

using std::chrono::milliseconds;

SimOptions Options() {
  SimOptions options;
  options.limits = {.rows = 100, .logit_rows = 4};
  options.kv.layers = {{.kv_heads = 1, .k_dim = 2}, {.kv_heads = 1, .k_dim = 2, .window = 10}};
  options.curve = {0.001, 0.002, 0.01, 0.1, 1};
  return options;
}

TEST(SimExecutor, AStepTakesWhatTheCurveSays) {
  ManualClock clock;
  SimExecutor executor(Options(), clock);
  const TokenId tokens[] = {1, 2, 3};
  const SequenceRows sequences[] = {{tokens, 0, {}, 1}, {tokens, 20, {}, 2}};
  ASSERT_TRUE(executor.Run({sequences}).ok());
  // 6 rows; full: 1 + 2 + 3 and 21 + 22 + 23; sliding: 1 + 2 + 3 and 10 + 10 + 10; 3 rows with logits
  EXPECT_EQ(clock.Now(), milliseconds(1 + 6 * 2 + 72 * 10 + 36 * 100 + 3 * 1000));
}

TEST(SimExecutor, TheNextTokenDependsOnTheLastOneAndItsPositionAlone) {
  ManualClock clock;
  SimExecutor executor(Options(), clock);
  Sampler sampler = SimSampler();
  const auto next = [&](std::span<const TokenId> tokens, uint64_t first, uint32_t row) {
    const SequenceRows sequences[] = {{tokens, first, {}, static_cast<uint32_t>(tokens.size())}};
    const Result<Logits> logits = executor.Run({sequences});
    SamplingParams greedy;
    greedy.temperature = 0;
    return sampler.Sample(greedy, {.logits = logits->row(row)}).token;
  };
  const TokenId a[] = {5, 6, 7}, b[] = {6}, c[] = {7};
  EXPECT_EQ(next(a, 10, 1), next(b, 11, 0));
  EXPECT_EQ(next(a, 10, 2), next(c, 12, 0));
  EXPECT_NE(next(b, 11, 0), next(b, 12, 0));
}

TEST(SimExecutor, ABatchBeyondTheLimitsIsRefusedAndTakesNoTime) {
  ManualClock clock;
  SimExecutor executor(Options(), clock);
  const std::vector<TokenId> many(101, 1);
  const SequenceRows rows[] = {{many, 0, {}, 1}};
  EXPECT_EQ(executor.Run({rows}).status().code(), Code::kInvalid);
  const SequenceRows logits[] = {{std::span(many).first(5), 0, {}, 5}};
  EXPECT_EQ(executor.Run({logits}).status().code(), Code::kInvalid);
  EXPECT_EQ(clock.Now(), Nanos(0));
}

}  // namespace
}  // namespace cachalot::exec
