// Caps, and who waits for whom when several tenants want the machine.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/engine_rig.h"

namespace cachalot::engine {
namespace {

using testing::HasSubstr;

GenerateRequest Of(uint32_t tenant, uint64_t id, uint32_t prompt_tokens, uint32_t max_tokens) {
  GenerateRequest request = Request(id, Tokens(prompt_tokens, id), max_tokens);
  request.tenant = TenantId(tenant);
  request.scope.salt.low = tenant;
  return request;
}

std::vector<TenantTerms> Tenants(size_t count) { return std::vector<TenantTerms>(count); }

Rejection RejectionOf(const EngineOptions& options, GenerateRequest request) {
  Rig rig(options);
  const StepOutput out = rig.Arrive(std::move(request));
  EXPECT_EQ(out.rejections.size(), 1u);
  return out.rejections.empty() ? Rejection{} : out.rejections.front();
}

TEST(Caps, OfARequestRefuseItWithNumbers) {
  GenerateRequest request = Of(0, 1, 40, 30);
  request.n = 2;
  Rejection r = RejectionOf({.terms = {.request = {.context_tokens = 69}}}, request);
  EXPECT_EQ(r.reason, RejectReason::kContextLength);
  EXPECT_EQ(r.needed, 70u);
  EXPECT_EQ(r.available, 69u);
  r = RejectionOf({.terms = {.request = {.output_tokens = 59}}}, request);
  EXPECT_EQ(r.reason, RejectReason::kInvalid);
  EXPECT_EQ(r.needed, 60u);
  EXPECT_THAT(r.message, HasSubstr("60 generated tokens"));
  EXPECT_THAT(r.message, HasSubstr("may have 59"));
  r = RejectionOf({.terms = {.request = {.sequences = 1}}}, request);
  EXPECT_EQ(r.reason, RejectReason::kInvalid);
  EXPECT_EQ(r.needed, 2u);
  r = RejectionOf({.terms = {.request = {.kv_blocks = 7}}}, request);  // 2 of the prompt, 3 from its tail on, each
  EXPECT_EQ(r.reason, RejectReason::kTooLarge);
  EXPECT_EQ(r.needed, 8u);
  EXPECT_EQ(r.available, 7u);
}

TEST(Caps, WhatATenantMayNeverRunIsRefused) {
  const Rejection r = RejectionOf({.terms = {.tenant = {.kv_blocks = 4}}}, Of(0, 1, 40, 30));
  EXPECT_EQ(r.reason, RejectReason::kTooLarge);
  EXPECT_THAT(r.message, HasSubstr("a tenant's running requests"));
}

TEST(Caps, ATenantsOwnTermsAreInPlaceOfTheOthers) {
  EngineOptions options{.terms = {.request = {.output_tokens = 10}}, .tenants = Tenants(2)};
  options.tenants[0] = options.terms;
  options.tenants[1].request.output_tokens = 50;
  EXPECT_EQ(RejectionOf(options, Of(0, 1, 10, 11)).available, 10u);
  EXPECT_EQ(RejectionOf(options, Of(1, 1, 10, 51)).available, 50u);
  EXPECT_EQ(RejectionOf(options, Of(7, 1, 10, 11)).available, 10u);
}

// Of each cap, one that two requests of the tenant exceed together.
TEST(Caps, ARequestWaitsForItsTenantsCapAndNobodyElseWaitsForIt) {
  for (const Load& cap :
       {Load{.context_tokens = 100}, Load{.output_tokens = 60}, Load{.sequences = 1}, Load{.kv_blocks = 8}}) {
    Rig rig({.tenants = {TenantTerms{.tenant = cap}}});
    rig.Arrive(Of(0, 1, 30, 40));
    StepOutput out = rig.Arrive(Of(0, 2, 30, 40));
    EXPECT_EQ(out.stats.capped_requests, 1u);
    for (uint64_t id = 3; id < 30; ++id) rig.Arrive(Of(1, id, 5, 2));  // more of them than its patience
    EXPECT_TRUE(rig.finishes.contains({RequestId(28), 0}));
    EXPECT_FALSE(rig.outputs.contains({RequestId(2), 0}));
    while (!rig.finishes.contains({RequestId(1), 0})) rig.Step();
    rig.Step();
    EXPECT_EQ(rig.outputs.count({RequestId(2), 0}), 1u);
    rig.RunToEnd();
    EXPECT_EQ(rig.outputs.at({RequestId(2), 0}).size(), 40u);
  }
}

TEST(Caps, OfItsOwnTenantALargeRequestIsOvertakenOnlySoOften) {
  Rig rig({.terms = {.tenant = {.sequences = 4}}});
  for (uint64_t id = 1; id <= 3; ++id) rig.Arrive(Of(0, id, 5, 3 + static_cast<uint32_t>(id)));
  GenerateRequest large = Of(0, 100, 5, 4);
  large.n = 4;
  rig.Arrive(large);
  uint64_t next = 200, started = 0;
  while (!rig.outputs.contains({RequestId(100), 0})) {
    rig.Arrive(Of(0, next++, 5, 6));
    ASSERT_LT(++started, 100u);
  }
}

// Of requests alike, one per tenant runs when the other's does, though one has hundreds waiting.
TEST(FairSharing, WhoFloodsTheQueueDelaysOthersByABoundedAmount) {
  Rig rig({.max_queue = 4000, .max_sequences = 4, .tenants = Tenants(2)}, {}, 60);
  StepInput flood;
  for (uint64_t id = 1; id <= 600; ++id) flood.arrivals.push_back(Of(0, id, 40, 10));
  rig.Step(std::move(flood));
  for (uint64_t id = 2001; id <= 2025; ++id) {
    rig.Arrive(Of(1, id, 40, 10));
    const size_t before = rig.finishes.size();
    while (!rig.finishes.contains({RequestId(id), 0})) rig.Step();
    // Those that ran when it came, and one turn of 512 tokens, of 50 each, with what ran at its end.
    EXPECT_LE(rig.finishes.size() - before, 4u + 11 + 4);
  }
  rig.RunToEnd();
  EXPECT_EQ(rig.finishes.size(), 625u);
}

TEST(FairSharing, TwoWhoFloodGetEqualTokensAndAWeightDoublesThem) {
  for (const uint32_t weight : {1u, 2u}) {
    EngineOptions options{.max_queue = 4000, .max_sequences = 6, .tenants = Tenants(2)};
    options.tenants[1].weight = weight;
    Rig rig(options, {}, 120);
    StepInput flood;
    // One asks for much at a time, the other for little.
    for (uint64_t id = 1; id <= 150; ++id) flood.arrivals.push_back(Of(0, id, 100, 60));
    for (uint64_t id = 1001; id <= 2400; ++id) flood.arrivals.push_back(Of(1, id, 10, 8));
    rig.Step(std::move(flood));
    while (rig.finishes.size() < 400) rig.Step();
    uint64_t tokens[2] = {};
    for (const auto& [key, finish] : rig.finishes) {
      tokens[key.first.value > 1000] += finish.prompt_tokens + finish.output_tokens;
    }
    const double ratio = static_cast<double>(tokens[1]) / static_cast<double>(tokens[0]);
    EXPECT_NEAR(ratio, weight, 0.35 * weight);
    rig.RunToEnd();
  }
}

TEST(FairSharing, WhatIsCachedIsNotCharged) {
  Rig rig({.max_queue = 4000, .max_sequences = 2, .tenants = Tenants(2)}, {}, 1000);
  GenerateRequest shared = Of(0, 1, 320, 1);
  rig.Arrive(shared);
  StepInput flood;
  for (uint64_t id = 2; id <= 300; ++id) {
    shared.id = RequestId(id);
    flood.arrivals.push_back(shared);
    flood.arrivals.push_back(Of(1, 1000 + id, 20, 1));
  }
  rig.Step(std::move(flood));
  while (rig.finishes.size() < 300) rig.Step();
  uint64_t first = 0;
  for (const auto& [key, finish] : rig.finishes) first += key.first.value <= 300;
  EXPECT_GT(first, 250u);  // two tokens each beside the other's 21
  rig.RunToEnd();
}

TEST(FairSharing, ALargeRequestIsNotStarvedByAnotherTenantsSmallOnes) {
  Rig rig({.tenants = Tenants(2)}, {}, 40);
  for (uint64_t id = 1; id <= 10; ++id) rig.Arrive(Of(0, id, 16, 20));
  rig.Arrive(Of(1, 100, 400, 100));
  uint64_t id = 200;
  while (!rig.outputs.contains({RequestId(100), 0})) {
    rig.Arrive(Of(0, id++, 16, 20));
    ASSERT_LT(id, 400u);
  }
}

// The small ones come behind one that finds no room, so that not all are tried again for them.
TEST(FairSharing, ALargeRequestIsNotStarvedByThoseTriedAlone) {
  Rig rig({.tenants = Tenants(2)}, {}, 40);
  for (uint64_t id = 1; id <= 5; ++id) rig.Arrive(Of(0, id, 16, 20));
  rig.Arrive(Of(1, 100, 400, 100));
  uint64_t id = 200;
  while (!rig.outputs.contains({RequestId(100), 0})) {
    rig.Step();  // so that there is always room for one
    StepInput input;
    if (id > 200) input.cancels.push_back(RequestId(id - 2));
    input.arrivals.push_back(Of(0, id, 500, 20));
    input.arrivals.push_back(Of(0, id + 1, 16, 20));
    rig.Step(std::move(input));
    id += 2;
    ASSERT_LT(id, 800u);
  }
}

TEST(FairSharing, OneTenantCannotFillTheQueue) {
  Rig rig({.max_queue = 12, .max_sequences = 1, .tenants = Tenants(3)});
  uint64_t id = 0;
  const auto fill = [&](uint32_t tenant) {
    uint32_t taken = 0;
    for (;; ++taken) {
      const StepOutput out = rig.Arrive(Of(tenant, ++id, 5, 1000));
      if (out.rejections.empty()) continue;
      EXPECT_EQ(out.rejections.front().reason, RejectReason::kQueueFull);
      EXPECT_THAT(out.rejections.front().message, HasSubstr("of this tenant"));
      return taken;
    }
  };
  EXPECT_EQ(fill(0), 1u + 6);
  EXPECT_EQ(fill(1), 3u);
  EXPECT_EQ(fill(2), 2u);
}

TEST(FairSharing, AQueueCapBindsItsTenantOnly) {
  EngineOptions options{.max_queue = 12, .max_sequences = 1, .tenants = Tenants(2)};
  options.tenants[0].queue = 2;
  Rig rig(options);
  for (uint64_t id = 1; id <= 3; ++id) EXPECT_TRUE(rig.Arrive(Of(0, id, 5, 100)).rejections.empty());
  const StepOutput out = rig.Arrive(Of(0, 4, 5, 100));
  ASSERT_EQ(out.rejections.size(), 1u);
  EXPECT_EQ(out.rejections.front().available, 2u);
  EXPECT_TRUE(rig.Arrive(Of(1, 5, 5, 100)).rejections.empty());
}

TEST(FairSharing, ASingleTenantMayFillTheQueue) {
  for (const size_t tenants : {0u, 1u}) {
    Rig rig({.max_queue = 12, .max_sequences = 1, .tenants = Tenants(tenants)});
    for (uint64_t id = 1; id <= 13; ++id) EXPECT_TRUE(rig.Arrive(Of(0, id, 5, 100)).rejections.empty());
    EXPECT_EQ(rig.Arrive(Of(0, 14, 5, 100)).rejections.size(), 1u);
  }
}

TEST(FairSharing, CancelledAndPreemptedRequestsLeaveNothingBehind) {
  SplitMix64 random(5);
  EngineOptions options{.max_queue = 60, .max_sequences = 8, .admission = "expected", .tenants = Tenants(3)};
  options.terms.tenant.sequences = 5;
  Rig rig(options, {}, 30);
  std::vector<std::pair<uint64_t, uint32_t>> asked;
  for (uint64_t id = 1; id <= 400; ++id) {
    StepInput input;
    GenerateRequest request =
        Of(static_cast<uint32_t>(random.Below(3)), id, static_cast<uint32_t>(1 + random.Below(40)),
           id < 150 ? 2 : 80);  // which nobody expected
    request.n = static_cast<uint32_t>(1 + random.Below(3));
    input.arrivals.push_back(std::move(request));
    if (random.Below(3) == 0) input.cancels.push_back(RequestId(1 + random.Below(id)));
    rig.Step(std::move(input));
  }
  rig.RunToEnd();
  const EngineStats stats = rig.Step().stats;
  EXPECT_EQ(stats.waiting_tenants, 0u);
  EXPECT_EQ(stats.in_use_slots(), 0u);
  EXPECT_EQ(stats.promised_slots, 0u);
  EXPECT_GT(stats.preemptions, 0u);
  EXPECT_GT(stats.requests_cancelled, 10u);
}

}  // namespace
}  // namespace cachalot::engine
