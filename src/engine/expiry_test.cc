// KV that is wished for a time only, in the tiers below the hot pool.
#include <gtest/gtest.h>

#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr uint64_t kBlocks = 12;           // whole ones of 200 tokens
constexpr StepCurve kSlow = {1e-2, 1e-3};  // so that loading is worth it

GenerateRequest For(uint64_t id, Nanos ttl, uint64_t text = 1) {
  GenerateRequest request = Request(id, Tokens(200, text), 4);
  request.retention.ttl = ttl;
  return request;
}

class Expiry : public testing::TestWithParam<TieredCase> {
 protected:
  TieredRig::Options With() const {
    return {.engine = {.max_sequences = 8, .step_rows = 64, .prefill_chunk = 64},
            .model = GetParam().model,
            .device = GetParam().device,
            .curve = kSlow};
  }
  // So long, in steps.
  static void Pass(TieredRig& tiered, Nanos time) {
    for (int i = 0; i < 10; ++i) {
      tiered.rig().Advance(time / 10);
      tiered.rig().Step();
    }
    for (int i = 0; i < 50; ++i) {  // for what is to be done then
      tiered.rig().Advance(std::chrono::milliseconds(1));
      tiered.rig().Step();
    }
  }
  static uint64_t OnDisk(TieredRig& tiered) { return tiered.store().stats().disk.live_blocks; }
};

TEST_P(Expiry, ItIsOnDiskUntilItsTimeHasCome) {
  TieredRig tiered(With());
  EXPECT_EQ(Ask(tiered, For(1, hours(24))), 0u);
  tiered.Restart();
  Pass(tiered, hours(23));
  EXPECT_EQ(Ask(tiered, For(2, hours(24))), 192u);
  EXPECT_EQ(tiered.rig().Step().stats.tiers.loaded_tokens, 192u);
  tiered.Restart();
  Pass(tiered, hours(25));
  EXPECT_EQ(OnDisk(tiered), 0u) << "its use made it last another day, which is over";
  EXPECT_EQ(Ask(tiered, For(3, hours(24))), 0u);
}

TEST_P(Expiry, ARestartLeavesItWhatIsLeft) {
  TieredRig tiered(With());
  Ask(tiered, For(1, hours(2)));
  Pass(tiered, hours(1));
  tiered.Restart();
  EXPECT_EQ(OnDisk(tiered), kBlocks);
  Pass(tiered, minutes(61));
  EXPECT_EQ(OnDisk(tiered), 0u);
  tiered.Crash(Unsynced::kKept);
  EXPECT_EQ(Ask(tiered, For(2, hours(2))), 0u);
}

TEST_P(Expiry, WhatSomebodyElseWishesForGoodStays) {
  TieredRig tiered(With());
  Ask(tiered, For(1, minutes(1)));
  Ask(tiered, Request(2, Tokens(200, 1), 4));
  tiered.Restart();
  Pass(tiered, hours(1));
  EXPECT_EQ(Ask(tiered, For(3, minutes(1))), 192u);
  Pass(tiered, hours(1));
  EXPECT_EQ(OnDisk(tiered), kBlocks);
}

TEST_P(Expiry, WhatIsFetchedAheadEndsWhenItWouldHave) {
  TieredRig tiered(With());
  GenerateRequest request = For(1, hours(2));
  request.session = SessionName{"", "s"};
  Ask(tiered, request);
  tiered.Restart();
  Pass(tiered, hours(1));
  tiered.rig().Command({.id = SessionCommandId(1), .verb = SessionVerb::kPrefetch, .prompt = Tokens(200, 1)});
  Pass(tiered, minutes(1));
  EXPECT_EQ(tiered.rig().Step().stats.tiers.prefetched_tokens, 192u);
  Pass(tiered, minutes(60));
  EXPECT_EQ(OnDisk(tiered), 0u);
  EXPECT_EQ(Ask(tiered, For(2, hours(2))), 0u);
}

TEST_P(Expiry, HostMemoryGivesItUpInTime) {
  TieredRig::Options options = With();
  options.device = Device::kCpu;
  options.slots = 40;
  options.host_bytes = 256 << 10;
  options.disk_bytes = 0;
  TieredRig tiered(options);
  for (uint64_t i = 1; i <= 6; ++i) Ask(tiered, For(i, hours(1), i));
  EXPECT_GT(tiered.rig().Step().stats.tiers.host_cached_bytes, 0u);
  EXPECT_GT(Ask(tiered, For(10, hours(1), 1)), 0u);
  Pass(tiered, minutes(61));
  EXPECT_EQ(tiered.rig().Step().stats.tiers.host_cached_bytes, 0u);
  EXPECT_EQ(tiered.host().Violations(), std::vector<std::string>());
  for (uint64_t i = 1; i <= 6; ++i) EXPECT_EQ(Ask(tiered, For(20 + i, hours(1), i)), 0u);
}

TEST_P(Expiry, WhatIsSoonGoneIsNotWritten) {
  TieredRig tiered(With());
  Ask(tiered, For(1, std::chrono::seconds(5)));
  tiered.rig().WriteAll();
  EXPECT_EQ(tiered.store().stats().stored_bytes, 0u);
}

INSTANTIATE_TEST_SUITE_P(Devices, Expiry,
                         testing::Values(TieredCase{"Cpu", Device::kCpu, {}},
                                         TieredCase{"SimLink", Device::kSimLink, {}}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace cachalot::engine
