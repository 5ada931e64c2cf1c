#include <gtest/gtest.h>

#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {
namespace {

TieredRig::Options Options() { return {.engine = {.max_sequences = 8, .step_rows = 64, .prefill_chunk = 64}}; }

uint64_t SlotBytes() { return exec::FakeExecutor::LayoutFor({}).slot_bytes; }

TEST(WriteBehind, NoMoreIsWrittenThanTheRateAllows) {
  TieredRig::Options options = Options();
  options.slots = 600;
  const uint64_t rate = 100 * SlotBytes();
  options.engine.disk_write_rate = {rate};
  TieredRig tiered(options);
  for (uint64_t i = 1; i <= 10; ++i) Ask(tiered, Request(i, Tokens(800, i), 4));
  const uint64_t run = 50 * SlotBytes(), burst = rate;
  for (uint64_t second = 0; second <= 4; ++second) {
    for (int i = 0; i < 1000; ++i) {
      tiered.rig().Advance(std::chrono::milliseconds(1));
      tiered.rig().Step();
    }
    EXPECT_LE(tiered.store().stats().stored_bytes, burst + run + (second + 2) * rate) << second;
  }
  EXPECT_GT(tiered.store().stats().stored_bytes, 2 * rate);
  tiered.rig().Advance(std::chrono::seconds(60));
  while (tiered.rig().engine().writes_pending()) {
    tiered.rig().Advance(std::chrono::milliseconds(20));
    tiered.rig().Step();
  }
  EXPECT_EQ(tiered.store().stats().disk.live_blocks, 10 * 50u);
}

TEST(WriteBehind, OfASessionTheUnfilledBlockIsWrittenToo) {
  TieredRig tiered(Options());
  GenerateRequest request = Request(1, Tokens(100, 1), 4);
  Ask(tiered, request);
  tiered.rig().WriteAll();
  EXPECT_EQ(tiered.store().stats().disk.live_blocks, 6u) << "of 103 tokens";
  request = Request(2, Tokens(100, 2), 4);
  request.session = SessionName{"", "s"};
  Ask(tiered, request);
  tiered.rig().WriteAll();
  EXPECT_EQ(tiered.store().stats().disk.live_blocks, 6u + 7u);
}

TEST(WriteBehind, WhoeverWillNotReturnLeavesNothingBehind) {
  TieredRig tiered(Options());
  GenerateRequest request = Request(1, Tokens(100, 1), 4);
  request.returns.returns = false;
  Ask(tiered, request);
  tiered.rig().WriteAll();
  EXPECT_EQ(tiered.store().stats().stored_bytes, 0u);
}

// What left the hot pool before it was written is written from host memory.
TEST(WriteBehind, WhatIsInHostMemoryByThenIsWrittenFromThere) {
  TieredRig::Options options = Options();
  options.slots = 120;
  options.host_bytes = 1 << 20;
  options.engine.disk_write_rate = {100 * SlotBytes()};
  TieredRig tiered(options);
  for (uint64_t i = 1; i <= 10; ++i) Ask(tiered, Request(i, Tokens(800, i), 4));
  EXPECT_GT(tiered.rig().Step().stats.slots_evicted, 300u);
  while (tiered.rig().engine().writes_pending()) {
    tiered.rig().Advance(std::chrono::milliseconds(20));
    tiered.rig().Step();
  }
  EXPECT_EQ(tiered.store().stats().disk.live_blocks, 10 * 50u);
  EXPECT_EQ(tiered.host().Violations(), std::vector<std::string>());
}

}  // namespace
}  // namespace cachalot::engine
