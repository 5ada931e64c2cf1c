#include "plan/decoding.h"

#include <gtest/gtest.h>

#include "plan/links.h"
#include "plan/testing/shapes.h"

namespace cachalot::plan {
namespace {

Machine MachineOf(const std::string& device) {
  Machine machine;
  machine.device = *FindDevice(device);
  machine.link_share = 1;
  return machine;
}

DecodedModel ModelOf(const std::string& name) {
  const ModelShape model = KnownModel(name);
  return {model, *FindWeightFormat("bf16"), SizesOf(model)};
}

TEST(Decoding, OneSequenceReadsAllWeightsAndItsKv) {
  const DecodedModel model = ModelOf("llama-3.1-8b");
  const Machine machine = MachineOf("h100");
  const DecodeStep step = PlanDecode(model, machine, MemoryRate(machine), 1, 8192);
  const double weights = 2.0 * static_cast<double>(model.shape.weights.used());
  EXPECT_NEAR(step.weight_seconds, weights / 3350e9, 1e-9);
  EXPECT_NEAR(step.kv_seconds, 8192.0 * 131'072 / 3350e9, 1e-9);
  EXPECT_GT(step.weight_seconds, step.compute_seconds);
}

TEST(Decoding, KvInASlowTierIsTheCeiling) {
  const DecodedModel model = ModelOf("llama-3.1-8b");
  const DecodeStep step = PlanDecode(model, MachineOf("h100"), 7e9, 1, 32'768);
  EXPECT_NEAR(step.kv_seconds, 32'768.0 * 131'072 / 7e9, 1e-6);
  EXPECT_GT(step.kv_seconds, 100 * step.weight_seconds);
}

TEST(Decoding, MoreRowsChooseMoreExpertsUpToAll) {
  const DecodedModel model = ModelOf("qwen3-30b-a3b");
  const WeightCounts& weights = model.shape.weights;
  EXPECT_NEAR(WeightBytesOfStep(model, 1), 2.0 * static_cast<double>(weights.used()),
              0.001 * static_cast<double>(weights.used()));
  EXPECT_LT(WeightBytesOfStep(model, 1), WeightBytesOfStep(model, 8));
  EXPECT_NEAR(WeightBytesOfStep(model, 10'000),
              2.0 * static_cast<double>(weights.output + weights.attention + weights.feed_forward + weights.experts),
              1e3);
}

TEST(AllReduce, ARingSendsTwiceAllButOnePart) {
  const ModelShape model = KnownModel("llama-3.1-70b");
  const TierRate slow{.latency_seconds = 0, .bytes_per_second = 1e9};
  const AllReduce reduce = PlanAllReduce(model, 8, slow, 1, 1.0);
  EXPECT_EQ(reduce.reductions, 160u);
  EXPECT_EQ(reduce.bytes_per_token, 160u * 8192 * 2 * 2 * 7 / 8);
  EXPECT_NEAR(reduce.seconds, 160 * 8192.0 * 2 * 2 * 7 / 8 / 1e9, 1e-9);
  EXPECT_NEAR(reduce.share, reduce.seconds / (1 + reduce.seconds), 1e-12);
}

TEST(AllReduce, SmallMessagesOverALongLineGoAllToAll) {
  const ModelShape model = KnownModel("llama-3.1-70b");
  const TierRate far{.latency_seconds = 0.02, .bytes_per_second = 1e9};
  const AllReduce reduce = PlanAllReduce(model, 4, far, 1, 0.01);
  EXPECT_NEAR(reduce.seconds, 160 * (0.02 + 3 * 8192.0 * 2 / 1e9), 1e-9);
  EXPECT_GT(reduce.share, 0.99);
}

TEST(AllReduce, OneDeviceSendsNothing) {
  const AllReduce reduce = PlanAllReduce(KnownModel("llama-3.1-8b"), 1, {}, 1, 1.0);
  EXPECT_EQ(reduce.bytes_per_token, 0u);
  EXPECT_EQ(reduce.seconds, 0);
}

}  // namespace
}  // namespace cachalot::plan
