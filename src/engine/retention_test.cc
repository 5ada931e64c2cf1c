// What becomes of KV whose request has ended.
#include <chrono>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/engine_rig.h"

namespace cachalot::engine {
namespace {

using std::chrono::seconds;

// Runs the request to its end; how many tokens of its prompt it found.
uint32_t Ask(Rig& rig, GenerateRequest request) {
  const RequestId id = request.id;
  const std::vector<TokenId> expected = Expected(rig.executor(), request, 0);
  rig.Arrive(std::move(request));
  rig.RunToEnd();
  EXPECT_EQ((rig.outputs[{id, 0}]), expected);
  return rig.finishes.at({id, 0}).cached_tokens;
}

GenerateRequest Hinted(uint64_t id, std::vector<TokenId> prompt, const RetentionHints& hints) {
  GenerateRequest request = Request(id, std::move(prompt), 4);
  request.retention = hints;
  return request;
}

// Slots that hold anything but zeros.
uint32_t WrittenSlots(Rig& rig) {
  exec::DeviceMemory& memory = rig.memory();
  std::vector<std::byte> bytes(memory.slot_bytes());
  const std::vector<std::byte> zeros(memory.slot_bytes());
  uint32_t written = 0;
  for (uint32_t slot = 0; slot < memory.slots(); ++slot) {
    EXPECT_TRUE(memory.Wait(memory.CopyOut(SlotId(slot), bytes)).ok());
    written += std::memcmp(bytes.data(), zeros.data(), bytes.size()) != 0;
  }
  return written;
}

// Of those that are free.
uint32_t WrittenFreeSlots(Rig& rig) {
  exec::DeviceMemory& memory = rig.memory();
  std::vector<std::byte> bytes(memory.slot_bytes());
  const std::vector<std::byte> zeros(memory.slot_bytes());
  uint32_t written = 0;
  for (const SlotId slot : rig.engine().Snapshot().free) {
    EXPECT_TRUE(memory.Wait(memory.CopyOut(slot, bytes)).ok());
    written += std::memcmp(bytes.data(), zeros.data(), bytes.size()) != 0;
  }
  return written;
}

class RetentionTest : public testing::TestWithParam<std::vector<uint32_t>> {
 protected:
  exec::FakeOptions Model() const { return {.windows = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Windows, RetentionTest,
                         testing::Values(std::vector<uint32_t>{0}, std::vector<uint32_t>{0, 24, 24}));

TEST_P(RetentionTest, PastItsTtlABlockIsGoneThoughThereIsRoom) {
  Rig rig({}, Model());
  const std::vector<TokenId> prompt = Tokens(100, 1);
  Ask(rig, Hinted(1, prompt, {.ttl = seconds(60)}));
  ASSERT_TRUE(rig.engine().next_due());
  rig.Advance(seconds(50));
  EXPECT_GT(Ask(rig, Hinted(2, prompt, {.ttl = seconds(60)})), 90u);
  rig.Advance(seconds(50));  // the second use moved the deadline
  EXPECT_GT(rig.Step().stats.idle_slots, 0u);
  rig.Advance(seconds(20));
  const EngineStats stats = rig.Step().stats;
  EXPECT_EQ(stats.idle_slots, 0u);
  EXPECT_GT(stats.slots_expired, 6u);
  EXPECT_EQ(rig.engine().next_due(), std::nullopt);
  EXPECT_EQ(Ask(rig, Hinted(3, prompt, {})), 0u);
}

TEST_P(RetentionTest, WhatAnotherUsesWithoutATtlStays) {
  Rig rig({}, Model());
  const std::vector<TokenId> prompt = Tokens(96, 1);
  Ask(rig, Hinted(1, prompt, {.ttl = seconds(60)}));
  Ask(rig, Hinted(2, prompt, {}));
  rig.Advance(seconds(100));
  rig.Step();
  EXPECT_GT(Ask(rig, Hinted(3, prompt, {})), 80u);
}

TEST_P(RetentionTest, ForksAndPreemptedOnesKeepTheirTtl) {
  Rig rig({.admission = "expected"}, Model(), 60);
  for (uint64_t id = 1; id <= 20; ++id) rig.Arrive(Hinted(id, Tokens(10, id), {.ttl = seconds(5)}));
  rig.RunToEnd();
  StepInput input;
  for (uint64_t id = 21; id <= 28; ++id) {
    GenerateRequest request = Hinted(id, Tokens(50, id), {.ttl = seconds(5)});
    request.n = 3;
    request.max_tokens = 100;
    request.sampling.temperature = 1;
    request.sampling.seed = id;
    input.arrivals.push_back(std::move(request));
  }
  rig.Step(std::move(input));
  rig.RunToEnd();
  rig.Advance(seconds(6));
  rig.Step();
  rig.Step();
  EXPECT_EQ(rig.Step().stats.free_slots, 60u);
}

TEST_P(RetentionTest, AStepLetsGoOfABoundedNumber) {
  Rig rig({}, Model(), 1000);
  for (uint64_t id = 1; id <= 40; ++id) Ask(rig, Hinted(id, Tokens(60, id), {.ttl = seconds(5)}));
  rig.Advance(seconds(10));
  const uint32_t before = rig.engine().Snapshot().idle;
  const uint32_t after = rig.Step().stats.idle_slots;
  EXPECT_LT(after, before);
  EXPECT_GT(after, 0u);
  EXPECT_LE(*rig.engine().next_due(), seconds(10) + seconds(1));  // at once
  for (int i = 0; i < 20; ++i) rig.Step();
  EXPECT_EQ(rig.Step().stats.idle_slots, 0u);
}

TEST_P(RetentionTest, ScrubbedMemoryIsZeroBeforeItIsFree) {
  Rig rig({}, Model());
  GenerateRequest forked = Hinted(1, Tokens(100, 1), {.ttl = seconds(60), .scrub = true});
  forked.n = 3;
  rig.Arrive(forked);
  for (int i = 0; i < 3; ++i) {
    EXPECT_GT(WrittenSlots(rig), 0u);
    EXPECT_EQ(WrittenFreeSlots(rig), 0u);
    rig.Step();
  }
  rig.RunToEnd();
  EXPECT_EQ(WrittenFreeSlots(rig), 0u);
  EXPECT_GT(WrittenSlots(rig), 0u);
  rig.Advance(seconds(61));
  const EngineStats stats = rig.Step().stats;
  EXPECT_EQ(stats.free_slots, stats.total_slots);
  EXPECT_GT(stats.slots_scrubbed, 7u);
  EXPECT_EQ(WrittenSlots(rig), 0u);
}

TEST_P(RetentionTest, ScrubHoldsForCancelsFailuresAndWithoutACache) {
  for (const bool cache : {true, false}) {
    Rig rig({.prefill_chunk = 30, .prefix_cache = cache}, Model());
    rig.Arrive(Hinted(1, Tokens(100, 1), {.ttl = seconds(1), .scrub = true}));
    rig.Step();
    EXPECT_GT(WrittenSlots(rig), 0u);
    rig.Cancel(RequestId(1));
    rig.Arrive(Hinted(2, Tokens(100, 2), {.ttl = seconds(1), .scrub = true}));
    rig.executor().FailRun(2, Internal("injected"));
    rig.RunToEnd();
    rig.Advance(seconds(2));
    rig.Step();
    EXPECT_EQ(WrittenSlots(rig), 0u) << cache;
  }
}

TEST_P(RetentionTest, TheOptionScrubsWhatHasATtl) {
  Rig rig({.scrub_expired = true}, Model());
  Ask(rig, Hinted(1, Tokens(100, 1), {.ttl = seconds(5)}));
  Ask(rig, Hinted(2, Tokens(100, 2), {}));
  rig.Advance(seconds(6));
  rig.Step();
  const uint32_t kept = WrittenSlots(rig);
  EXPECT_GT(kept, 0u);
  StepInput clear;
  clear.inquiries.push_back({InquiryId(1), InquiryKind::kClear, {}});
  rig.Step(std::move(clear));
  EXPECT_EQ(WrittenSlots(rig), kept);  // nobody asked for the others'
}

TEST_P(RetentionTest, ASlotTakenAgainInTheSameStepIsScrubbedFirst) {
  Rig rig({}, Model(), 30, Device::kSimLink);
  uint32_t found = 0;
  for (uint64_t id = 1; id <= 60; ++id) {
    // Ends in mid-block as one before did, so that blocks are copied into slots that were just freed.
    std::vector<TokenId> prompt = Tokens(40, id % 5);
    prompt.resize(24 + id % 16);
    found += Ask(rig, Hinted(id, prompt, {.scrub = id % 2 == 0}));
  }
  EXPECT_GT(found, 100u);
  EXPECT_GT(rig.Step().stats.slots_scrubbed, 20u);
}

TEST_P(RetentionTest, HighPriorityOutlivesAFloodAndLowPriorityGoesFirst) {
  Rig rig({}, Model(), 100);
  const std::vector<TokenId> high = Tokens(64, 1), low = Tokens(64, 2);
  Ask(rig, Hinted(1, high, {.priority = RetentionPriority::kHigh}));
  for (uint64_t id = 2; id <= 40; ++id) Ask(rig, Hinted(id, Tokens(64, 100 + id), {}));
  Ask(rig, Hinted(90, low, {.priority = RetentionPriority::kLow}));
  Ask(rig, Hinted(91, Tokens(64, 300), {}));
  EXPECT_EQ(Ask(rig, Hinted(92, low, {})), 0u);
  EXPECT_GT(Ask(rig, Hinted(93, high, {})), 47u);
}

}  // namespace
}  // namespace cachalot::engine
