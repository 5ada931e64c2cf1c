#include "sim/trace_serving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/workload.h"

namespace cachalot::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TraceServingOptions Small() {
  TraceServingOptions options;
  options.model.vocabulary = 4096;
  options.model.curve = {0.01, 5e-5, 4e-9, 0, 2e-5};
  options.slots = 4096;
  return options;
}

TraceServingReport Serve(const Trace& trace, const TraceServingOptions& options) {
  auto report = ServeTrace(trace, options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return std::move(report).value();
}

Trace ChatTrace(uint32_t requests, uint64_t seed = 1) {
  return MakeWorkload("chat", {.seed = seed, .requests = requests, .block_tokens = 64}).value();
}

TEST(TraceServing, EveryRequestIsServedAndItsTokensAreHitOrComputed) {
  const Trace trace = ChatTrace(200);
  TraceServingOptions options = Small();
  std::vector<ReplayedRequest> requests;
  options.on_request = [&](const ReplayedRequest& request) { requests.push_back(request); };
  const TraceServingReport report = Serve(trace, options);
  ASSERT_EQ(requests.size(), 200u);
  EXPECT_EQ(report.served, 200u);
  EXPECT_EQ(report.refused, 0u);
  uint64_t prompt = 0, cached = 0, output = 0;
  for (const ReplayedRequest& request : requests) {
    const TraceRequest& asked = trace.requests[request.index];
    EXPECT_EQ(request.arrival, asked.arrival);
    EXPECT_EQ(request.prompt_tokens, asked.input_tokens);
    EXPECT_EQ(request.output_tokens, std::max<uint64_t>(asked.output_tokens, 1));
    EXPECT_LE(request.arrival, request.first_token);
    EXPECT_LE(request.first_token, request.finish);
    prompt += request.prompt_tokens;
    cached += request.cached_tokens;
    output += request.output_tokens;
  }
  EXPECT_EQ(report.prompt_tokens, prompt);
  EXPECT_EQ(report.cached_tokens, cached);
  EXPECT_EQ(report.output_tokens, output);
  EXPECT_EQ(report.last.prompt_tokens_cached + report.last.prompt_tokens_computed,
            prompt + report.last.tokens_recomputed);
}

TEST(TraceServing, EqualOptionsGiveEqualReportsAndAnotherPolicyAnother) {
  const Trace trace = ChatTrace(300);
  TraceServingOptions options = Small();
  options.slots = 1024;
  const auto sum = [](const TraceServingReport& r) {
    return std::tuple(r.duration, r.cached_tokens, r.ttft.Quantile(0.5), r.e2e.max(), r.last.steps);
  };
  const TraceServingReport first = Serve(trace, options);
  EXPECT_EQ(sum(first), sum(Serve(trace, options)));
  options.engine.eviction = "fifo";
  EXPECT_NE(sum(first), sum(Serve(trace, options)));
}

TEST(TraceServing, EqualBlocksAreEqualText) {
  Trace trace{.block_tokens = 64, .requests = {}};
  trace.requests.push_back({.arrival = seconds(0), .input_tokens = 128, .output_tokens = 1, .blocks = {1, 2}});
  trace.requests.push_back({.arrival = seconds(10), .input_tokens = 160, .output_tokens = 1, .blocks = {1, 2, 3}});
  trace.requests.push_back({.arrival = seconds(20), .input_tokens = 128, .output_tokens = 1, .blocks = {1, 4}});
  TraceServingOptions options = Small();
  std::vector<uint64_t> cached;
  options.on_request = [&](const ReplayedRequest& request) { cached.push_back(request.cached_tokens); };
  Serve(trace, options);
  EXPECT_EQ(cached, (std::vector<uint64_t>{0, 128, 64}));
}

TEST(TraceServing, TimesAreThoseOfTheCurve) {
  Trace trace{.block_tokens = 64, .requests = {}};
  trace.requests.push_back({.arrival = seconds(3), .input_tokens = 64, .output_tokens = 3, .blocks = {1}});
  TraceServingOptions options = Small();
  options.model.curve = {0.5, 0, 0, 0, 0};  // half a second per step, whatever it does
  options.sample_every = milliseconds(1);
  const TraceServingReport report = Serve(trace, options);
  EXPECT_EQ(report.ttft.max(), milliseconds(500));
  EXPECT_EQ(report.itl.min(), milliseconds(500));
  EXPECT_EQ(report.itl.count(), 2u);
  EXPECT_EQ(report.e2e.max(), milliseconds(1500));
  EXPECT_EQ(report.duration, milliseconds(1500));
  ASSERT_EQ(report.samples.size(), 3u);
  EXPECT_EQ(report.samples[0].time, milliseconds(3500));
  EXPECT_GT(report.samples[0].in_use, 0);
}

TEST(TraceServing, AHigherRateBringsRequestsSooner) {
  const Trace trace = ChatTrace(100);
  TraceServingOptions options = Small();
  const Nanos before = Serve(trace, options).duration;
  options.rate = 4;
  EXPECT_LT(Serve(trace, options).duration, before / 3);
}

TEST(TraceServing, WhatARequestAllowsIsPromisedToIt) {
  Trace trace{.block_tokens = 64, .requests = {}};
  trace.requests.push_back({.arrival = seconds(0), .input_tokens = 64, .output_tokens = 3, .blocks = {1}});
  trace.requests.push_back({.arrival = seconds(0), .input_tokens = 64, .output_tokens = 3, .blocks = {2}});
  TraceServingOptions options = Small();
  options.slots = 20;
  EXPECT_EQ(Serve(trace, options).last.pressure.some.total, Nanos(0));
  for (TraceRequest& request : trace.requests) request.asked_tokens = 200;
  const TraceServingReport report = Serve(trace, options);
  EXPECT_GT(report.last.pressure.some.total, Nanos(0)) << "there is room for one promise";
  EXPECT_EQ(report.output_tokens, 6u) << "answers are as long as they were";
}

// Long requests of one tenant, and after them one of another.
Trace Crowd() {
  Trace trace{.block_tokens = 64};
  for (uint64_t i = 0; i < 21; ++i) {
    trace.requests.push_back({.arrival = milliseconds(i),
                              .input_tokens = 64,
                              .output_tokens = 200,
                              .blocks = {i},
                              .tenant = i < 20 ? 7u : 8u});
  }
  return trace;
}

TEST(TraceServing, TenantsThatTheTraceTellsApartTakeTurns) {
  TraceServingOptions options = Small();
  options.engine.max_sequences = 1;
  const auto first_token_of_the_last = [&](bool tenants) {
    options.tenants = tenants;
    Nanos first{0};
    options.on_request = [&](const ReplayedRequest& request) {
      if (request.index == 20) first = request.first_token;
    };
    EXPECT_EQ(Serve(Crowd(), options).served, 21u);
    return first;
  };
  EXPECT_LT(first_token_of_the_last(true) * 5, first_token_of_the_last(false));
}

TEST(TraceServing, TooManyTenantsAreRefusedUnlessTheyCountAsOne) {
  Trace trace{.block_tokens = 64};
  for (uint64_t i = 0; i < 5000; ++i) {
    trace.requests.push_back(
        {.arrival = milliseconds(i), .input_tokens = 1, .output_tokens = 1, .blocks = {i}, .tenant = i});
  }
  TraceServingOptions options = Small();
  options.engine.max_queue = 10'000;
  EXPECT_THAT(ServeTrace(trace, options).status().message(), HasSubstr("tells 5000 tenants apart"));
  options.tenants = false;
  EXPECT_EQ(Serve(trace, options).served, 5000u);
}

TEST(TraceServing, TermsHoldForEachTenant) {
  TraceServingOptions options = Small();
  options.engine.max_sequences = 32;
  options.engine.terms.tenant.sequences = 2;
  const auto most_running = [&](bool tenants) {
    options.tenants = tenants;
    options.sample_every = Nanos(1);
    uint32_t most = 0;
    for (const ServingSample& sample : Serve(Crowd(), options).samples) most = std::max(most, sample.running);
    return most;
  };
  EXPECT_EQ(most_running(false), 2u);
  EXPECT_EQ(most_running(true), 3u);
}

TEST(TraceServing, WhatCannotBeServedIsRefusedAndCounted) {
  Trace trace{.block_tokens = 64, .requests = {}};
  trace.requests.push_back({.arrival = seconds(0), .input_tokens = 64, .output_tokens = 1, .blocks = {1}});
  trace.requests.push_back({.arrival = seconds(1), .input_tokens = 128, .output_tokens = 1, .blocks = {1, 2}});
  TraceServingOptions options = Small();
  options.model.context_tokens = 100;
  std::string refusal;
  options.on_request = [&](const ReplayedRequest& request) { refusal += request.refusal; };
  const TraceServingReport report = Serve(trace, options);
  EXPECT_EQ(report.served, 1u);
  EXPECT_EQ(report.refused, 1u);
  EXPECT_THAT(refusal, HasSubstr("context is 100 tokens"));
}

TEST(TraceServing, TimesThatWouldOverflowAreRefused) {
  Trace trace{.block_tokens = 64, .requests = {}};
  trace.requests.push_back({.arrival = seconds(0), .input_tokens = 64, .output_tokens = 2000, .blocks = {1}});
  trace.requests.push_back({.arrival = seconds(1), .input_tokens = 64, .output_tokens = 2000, .blocks = {2}});
  TraceServingOptions options = Small();
  options.rate = 1e-10;
  EXPECT_THAT(ServeTrace(trace, options).status().message(), HasSubstr("the last request arrives after 10000000000 s"));
  options.rate = 1;
  options.model.curve = {1e6, 1e6, 1e6, 1e6, 1e6};
  EXPECT_THAT(ServeTrace(trace, options).status().message(), HasSubstr("expected shorter steps"));
}

TEST(TraceServing, OptionsThatMakeNoSenseAreRefused) {
  TraceServingOptions options = Small();
  options.slots = 0;
  options.rate = 0;
  options.model.curve[1] = -1;
  options.engine.eviction = "never";
  const std::string message = ServeTrace({}, options).status().message();
  for (const char* part : {"no requests", "no blocks", "rate of 0", "step curve", "never"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

}  // namespace
}  // namespace cachalot::sim
