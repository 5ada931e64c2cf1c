#include "plan/plan.h"

#include <gtest/gtest.h>

#include "plan/testing/shapes.h"
#include "plan/waste.h"

namespace cachalot::plan {
namespace {

Plan Made(const PlanRequest& request) {
  const Result<Plan> plan = MakePlan(request);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *plan : Plan{};
}

TEST(Plan, HowManyDevicesFor128UsersAt4k) {
  PlanRequest request = RequestFor(KnownModel("llama-3.1-70b"), "h100", 4096);
  request.users = 128;
  const Plan plan = Made(request);
  ASSERT_TRUE(plan.smallest.has_value());
  const Fleet& fleet = plan.fleets[*plan.smallest];
  EXPECT_EQ(fleet.devices(), 8u);
  // By hand: what 8 x 80 GiB x 0.9 leave beside the weights, in sessions of 1.25 GiB.
  const double left = 8 * 80 * 0.9 - 2.0 * static_cast<double>(request.model.weights.stored()) / (1 << 30);
  EXPECT_NEAR(static_cast<double>(fleet.group.sequences), left / 1.25, 3);
  for (const Fleet& other : plan.fleets) EXPECT_GE(other.devices(), fleet.devices());
}

TEST(Plan, FewestDevicesHoldTheUsersAndOneFewerGroupDoesNot) {
  PlanRequest request = RequestFor(KnownModel("llama-3.1-8b"), "l4", 8192);
  for (const uint64_t users : {1u, 5u, 40u, 1000u}) {
    request.users = users;
    for (const Fleet& fleet : FleetsFor(request, users)) {
      EXPECT_GE(fleet.groups * fleet.group.sequences, users);
      EXPECT_LT((fleet.groups - 1) * fleet.group.sequences, users);
    }
  }
}

TEST(Plan, MemoryIsWeightsActivationsAndPool) {
  const Plan plan = Made(RequestFor(KnownModel("llama-3.1-8b"), "h100", 8192));
  const DeviceMemory& memory = plan.group.memory;
  EXPECT_TRUE(memory.weights_fit);
  EXPECT_EQ(memory.weight_bytes + memory.activation_bytes + memory.pool_bytes, memory.usable_bytes);
}

TEST(Plan, WeightsThatDoNotFitLeaveNothing) {
  PlanRequest request = RequestFor(KnownModel("llama-3.1-70b"), "l4", 4096);
  request.choose_shards = false;
  const Plan plan = Made(request);
  EXPECT_FALSE(plan.group.memory.weights_fit);
  EXPECT_EQ(plan.group.memory.pool_bytes, 0u);
  EXPECT_EQ(plan.group.sequences, 0u);
}

TEST(Plan, NothingHoldsWhatIsLargerThan64Devices) {
  const Plan plan = Made(RequestFor(KnownModel("kimi-k2"), "t4", 4096));
  EXPECT_FALSE(plan.smallest.has_value());
}

TEST(PlanErrors, NameWhatIsOutOfRange) {
  const PlanRequest good = RequestFor(KnownModel("llama-3.1-8b"), "h100", 4096);
  const auto error_of = [](const PlanRequest& request) {
    const Result<Plan> plan = MakePlan(request);
    return plan.ok() ? std::string() : plan.status().message();
  };
  PlanRequest request = good;
  request.context_tokens = 1'000'000'000'000'000'000;
  EXPECT_EQ(error_of(request),
            "context of 1000000000000000000 tokens, expected 1 to 131072, the context of llama-3.1-8b");
  request = good;
  request.context_tokens = 0;
  EXPECT_NE(error_of(request).find("context of 0 tokens"), std::string::npos);
  request = good;
  request.users = 1'000'000'000'000'000'000;
  EXPECT_NE(error_of(request).find("users, expected at most 1000000000"), std::string::npos);
  request = good;
  request.machine.memory_share = 1.5;
  EXPECT_EQ(error_of(request), "memory share is 1.5, expected above 0 and at most 1");
  request = good;
  request.machine.link_share = 0;
  EXPECT_NE(error_of(request).find("link share is 0"), std::string::npos);
  request = good;
  request.prices.device_hour = -1;
  EXPECT_NE(error_of(request).find("price of a device hour is -1"), std::string::npos);
  request = good;
  request.machine.device.memory_bytes = ~uint64_t{0};
  EXPECT_EQ(error_of(request), "memory of a device is 16 EiB, expected at most 256 TiB");
  request = good;
  request.kv.block_tokens = 7;
  EXPECT_NE(error_of(request).find("block_tokens = 7; expected a multiple of 16"), std::string::npos);
  request = good;
  request.kv.step_tokens = 0;
  EXPECT_EQ(error_of(request), "rows of a step are 0, expected at least 1");
  request.kv.step_tokens = UINT32_MAX;
  EXPECT_EQ(error_of(request), "rows of a step are 4294967295, expected at most 1048576");
}

TEST(Waste, PagesLoseLessThanABlockAndContiguousPiecesTheRest) {
  const KvSizes sizes = SizesOf(KnownModel("llama-3.1-8b"));
  const std::vector<Allocation> ways = CompareAllocations(sizes, 1001, 8192);
  ASSERT_EQ(ways.size(), 5u);
  EXPECT_NEAR(ways[0].waste, 1 - 1001.0 / 8192, 1e-9);
  EXPECT_NEAR(ways[1].waste, 1 - 1001.0 / 1024, 1e-9);
  EXPECT_EQ(ways[3].allocated_bytes, 1008u * sizes.token_bytes);
  EXPECT_EQ(ways[4].allocated_bytes - LiveBytes(sizes, 1001), 15 * sizes.token_bytes / 2);
  for (const Allocation& way : ways) EXPECT_GE(way.allocated_bytes, LiveBytes(sizes, 1001)) << way.way;
}

}  // namespace
}  // namespace cachalot::plan
