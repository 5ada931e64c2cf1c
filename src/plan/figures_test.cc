// The figures that the field works its examples with.
#include <gtest/gtest.h>

#include "plan/links.h"
#include "plan/testing/shapes.h"
#include "plan/waste.h"

namespace cachalot::plan {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

KvSizes Llama70B(const std::string& format = "f16") { return SizesOf(KnownModel("llama-3.1-70b"), format); }

TEST(Figures, ATokenOfA70BModelKeeps327680Bytes) {
  EXPECT_EQ(Llama70B().token_bytes, 327'680u);
  EXPECT_EQ(Llama70B().block_bytes(), 16u * 327'680);
}

TEST(Figures, AThousandTokensAre312AndAHalfMiB) { EXPECT_EQ(2 * LiveBytes(Llama70B(), 1000), 625 * kMiB); }

TEST(Figures, ALongSessionIsTenGiB) {
  EXPECT_EQ(LiveBytes(Llama70B(), 32'768), 10 * kGiB);
  EXPECT_EQ(ReservedBytes(Llama70B(), 32'768), 10 * kGiB);
}

TEST(Figures, OneByteAndFourBitsAreAHalfAndAQuarter) {
  EXPECT_EQ(LiveBytes(Llama70B("fp8"), 32'768), 5 * kGiB);
  EXPECT_EQ(2 * LiveBytes(Llama70B("int4-flat"), 32'768), 5 * kGiB);
}

TEST(Figures, HundredTwentyEightUsersAt4096Need160GiB) {
  EXPECT_EQ(PoolBytes(Llama70B(), 128, 4096).value(), 160 * kGiB);
}

TEST(Figures, WithoutGroupedQueriesItWouldBeEightTimes) {
  ModelShape model = KnownModel("llama-3.1-70b");
  for (LayerKvShape& layer : model.kv_layers) layer.kv_heads = model.query_heads;
  EXPECT_EQ(SizesOf(model).token_bytes, 8u * 327'680);
}

TEST(Figures, FragmentationMakesTwelveOfTen) { EXPECT_EQ(FragmentedBytes(10 * kGiB), 12 * kGiB); }

TEST(Figures, TenGiBTakeFourTenthsOfASecondAt25GBPerSecond) {
  const TierRate rate{.latency_seconds = 0, .bytes_per_second = 25e9};
  EXPECT_NEAR(TransferSeconds(rate, 10 * kGiB, 0), 0.4, 0.03);
}

TEST(Figures, PcieFourHas32GBPerSecondOfWhichFourFifthsAreUsable) {
  EXPECT_EQ(FindLink("pcie4")->bytes_per_second, 32e9);
  EXPECT_NEAR(UsableRate(*FindLink("pcie4"), 0.8).bytes_per_second, 25e9, 1e9);
}

TEST(Figures, SeventyBillionWeightsAre140GB) {
  const WeightCounts weights{.feed_forward = 70'000'000'000};
  EXPECT_EQ(WeightBytes(*FindWeightFormat("bf16"), weights), 140'000'000'000u);
  EXPECT_NEAR(static_cast<double>(WeightBytes(*FindWeightFormat("bf16"), KnownModel("llama-3.1-70b").weights)), 140e9,
              1.5e9);
}

TEST(Figures, DeepSeekKeeps576ValuesATokenAndLayer) {
  const ModelShape model = KnownModel("deepseek-v3");
  EXPECT_EQ(model.kv_layers.size(), 61u);
  EXPECT_EQ(SizesOf(model).token_bytes, 61u * 576 * 2);
}

TEST(Figures, Gemma3KeepsAFullContextInEverySixthLayer) {
  const ModelShape model = KnownModel("gemma-3-27b");
  const uint64_t per_layer = 16 * (128 + 128) * 2;
  EXPECT_EQ(SizesOf(model).token_bytes, 62 * per_layer);
  EXPECT_EQ(LiveBytes(SizesOf(model), 131'072), per_layer * (10 * 131'072 + 52 * 1024));
}

TEST(Figures, MixtralSharesAttentionBetweenItsExperts) {
  EXPECT_EQ(SizesOf(KnownModel("mixtral-8x7b")).token_bytes, 32u * 8 * 256 * 2);
}

TEST(Figures, GptOssSlidesOver128InEveryOtherLayer) {
  const ModelShape model = KnownModel("gpt-oss-120b");
  const uint64_t per_layer = 8 * (64 + 64) * 2;
  EXPECT_EQ(SizesOf(model).token_bytes, 36 * per_layer);
  EXPECT_EQ(LiveBytes(SizesOf(model), 131'072), per_layer * (18 * 131'072 + 18 * 128));
  // Its weights are published with experts in MXFP4: the checkpoint has 60.8 GiB.
  EXPECT_NEAR(static_cast<double>(WeightBytes(PublishedFormat(model), model.weights)) / kGiB, 60.8, 0.2);
}

// What llama.cpp (ggml 0.26) allocates at start for one sequence of f16 KV, as it logs it.
TEST(Figures, SmallModelsTakeWhatLlamaCppAllocates) {
  EXPECT_EQ(ReservedBytes(SizesOf(KnownModel("smollm2-135m"), "f16", 8192), 8192), 180 * kMiB);
  const KvSizes gemma = SizesOf(KnownModel("gemma-3-270m"), "f16", 8192);
  const uint64_t full = 24 * kMiB, sliding = 15 * kMiB;
  EXPECT_EQ(LiveBytes(gemma, 8192), full + sliding / 2);  // it keeps a step of 512 beside the window of 512
  EXPECT_NEAR(static_cast<double>(ReservedBytes(gemma, 8192)), full + sliding, 0.01 * (full + sliding));
}

// As users reported what it logs: 2,016 cells of 18 layers, 640 of 18 (a step of 512 beside the window) in
// github.com/intel/AI-Playground/issues/325; 32,768 tokens in q8_0, with a scale for 32 values, in
// github.com/ikawrakow/ik_llama.cpp/pull/259.
TEST(Figures, LargeModelsTakeWhatLlamaCppWasReportedToAllocate) {
  const double full = 70.88 * kMiB, sliding = 22.50 * kMiB;
  EXPECT_NEAR(static_cast<double>(LiveBytes(SizesOf(KnownModel("gpt-oss-120b")), 2016)), full + sliding * 128 / 640,
              0.01 * kMiB);
  EXPECT_NEAR(static_cast<double>(LiveBytes(SizesOf(KnownModel("deepseek-v3"), "int8"), 32'768)), 1166.62 * kMiB,
              0.01 * kMiB);
}

}  // namespace
}  // namespace cachalot::plan
