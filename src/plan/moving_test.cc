#include "plan/moving.h"

#include <gtest/gtest.h>

#include "plan/links.h"
#include "plan/testing/shapes.h"

namespace cachalot::plan {
namespace {

MovedSession SessionFor(const std::string& model_name, const std::string& device) {
  const ModelShape model = KnownModel(model_name);
  Machine machine;
  machine.device = *FindDevice(device);
  return SessionOf(model, PublishedFormat(model), SizesOf(model), machine);
}

TEST(Moving, RecomputingTakesTheArithmeticOfEveryRow) {
  const ModelShape model = KnownModel("llama-3.1-8b");
  const MovedSession session = SessionFor("llama-3.1-8b", "h100");
  const double rate = 989e12 * 0.5;
  const uint64_t tokens = 4096;
  double operations = 2.0 * static_cast<double>(model.weights.used() - model.weights.output) * tokens;
  operations += 2.0 * static_cast<double>(model.weights.output);
  for (uint64_t row = 1; row <= tokens; ++row) operations += 2.0 * 32 * 32 * (128 + 128) * static_cast<double>(row);
  EXPECT_NEAR(RecomputeSeconds(session, tokens) / (operations / rate), 1, 1e-9);
}

TEST(Moving, AWindowBoundsWhatALayerSees) {
  const MovedSession sliding = SessionFor("mistral-7b-v0.1", "h100"), full = SessionFor("mistral-7b-v0.3", "h100");
  EXPECT_LT(RecomputeSeconds(sliding, 32'768), 0.95 * RecomputeSeconds(full, 32'768));
  EXPECT_NEAR(RecomputeSeconds(sliding, 4096), RecomputeSeconds(full, 4096), 0.01 * RecomputeSeconds(full, 4096));
}

TEST(Moving, BreakEvenIsTheLengthFromWhichLoadingIsSooner) {
  const MovedSession session = SessionFor("llama-3.1-8b", "h100");
  const TierRate rate{.latency_seconds = 1e-3, .bytes_per_second = 3e9};
  const Move move = PlanMove(session, rate, 4096, 131'072);
  ASSERT_TRUE(move.break_even_tokens.has_value());
  const uint64_t even = *move.break_even_tokens;
  const auto load = [&](uint64_t tokens) { return TransferSeconds(rate, PagedBytes(session.sizes, tokens), 0); };
  EXPECT_LT(load(even), RecomputeSeconds(session, even));
  EXPECT_GE(load(even - 1), RecomputeSeconds(session, even - 1));
  for (uint64_t tokens = even; tokens < 131'072; tokens = tokens * 3 / 2 + 1) {
    EXPECT_LT(load(tokens), RecomputeSeconds(session, tokens)) << tokens;
  }
}

TEST(Moving, ALinkThatIsTooSlowIsNeverSooner) {
  const Move move =
      PlanMove(SessionFor("llama-3.1-8b", "h100"), {.latency_seconds = 0, .bytes_per_second = 1e6}, 4096, 131'072);
  EXPECT_FALSE(move.break_even_tokens.has_value());
  EXPECT_NE(move.choice, "load");
}

TEST(Moving, AFastLinkIsLoadedOver) {
  const Move move = PlanMove(SessionFor("llama-3.1-8b", "a100"), UsableRate(*FindLink("pcie4"), 0.8), 8192, 131'072);
  EXPECT_EQ(move.choice, "load");
  EXPECT_LT(move.load_seconds, move.recompute_seconds);
}

TEST(Moving, BothAtOnceIsSoonerThanEitherWhereLoadingIsNotAwaited) {
  const Move move =
      PlanMove(SessionFor("llama-3.1-8b", "h100"), {.latency_seconds = 1e-3, .bytes_per_second = 2e9}, 8192, 131'072);
  ASSERT_TRUE(move.both_seconds.has_value());
  EXPECT_LT(*move.both_seconds, move.load_seconds);
  EXPECT_LT(*move.both_seconds, move.recompute_seconds);
}

TEST(Moving, ASlidingModelMovesOnlyItsWindows) {
  const ModelShape model = KnownModel("gpt-oss-20b");
  const Move move = PlanMove(SessionFor("gpt-oss-20b", "h100"), UsableRate(*FindLink("pcie5"), 0.8), 65'536, 0);
  const uint64_t per_layer = 8 * (64 + 64) * 2;
  EXPECT_EQ(move.bytes, per_layer * 12 * (65'536 + 128));
  EXPECT_EQ(model.kv_layers.size(), 24u);
}

}  // namespace
}  // namespace cachalot::plan
