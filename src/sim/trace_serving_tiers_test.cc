// A trace through all tiers: what comes from where, and that tokens, bytes and time add up.
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/trace_serving.h"
#include "sim/workload.h"

namespace cachalot::sim {
namespace {

using std::chrono::hours;
using testing::HasSubstr;

constexpr uint64_t kBlockTokens = 16, kSlotBytes = 16 * 4096;

// A pool that holds less than requests come back to, on a slow machine.
TraceServingOptions Small() {
  TraceServingOptions options;
  options.model.vocabulary = 4096;
  options.model.kv.layers = {{.kv_heads = 1024, .k_dim = 2}};
  options.model.curve = {0.01, 1e-4, 1e-9, 0, 2e-5};
  options.slots = 2048;
  options.tiers.link = exec::LinkSpec{.bytes_per_second = 1e9};
  return options;
}

// Questions about documents, and long after them a request of one token: by then all that was under way has ended.
Trace Questions() {
  Trace trace = MakeWorkload("rag", {.seed = 3, .requests = 120, .block_tokens = 64}).value();
  TraceRequest last{.arrival = trace.requests.back().arrival + hours(10), .input_tokens = 1, .output_tokens = 1};
  last.blocks = {1'000'000'000};
  trace.requests.push_back(last);
  return trace;
}

TraceServingReport Serve(const Trace& trace, const TraceServingOptions& options) {
  auto report = ServeTrace(trace, options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return std::move(report).value();
}

auto Sum(const TraceServingReport& r) {
  return std::tuple(r.duration, r.cached_tokens, r.host_tokens, r.disk_tokens, r.ttft.Quantile(0.5), r.e2e.max(),
                    r.last.steps, r.time.compute, r.time.transfers, r.moved.from_pool, r.moved.to_pool,
                    r.moved.disk_read, r.moved.disk_written);
}

struct Below {
  const char* name;
  uint32_t host_blocks;
  uint64_t disk_blocks;
};

class TraceServingTiers : public testing::TestWithParam<Below> {
 protected:
  TraceServingOptions Options() const {
    TraceServingOptions options = Small();
    options.tiers.host_blocks = GetParam().host_blocks;
    options.tiers.disk_blocks = GetParam().disk_blocks;
    return options;
  }
};

TEST_P(TraceServingTiers, TokensBytesAndTimeAddUp) {
  const Trace trace = Questions();
  TraceServingOptions options = Options();
  uint64_t prompt = 0, cached = 0, host = 0, disk = 0, answered = 0;
  options.on_request = [&](const ReplayedRequest& request) {
    EXPECT_EQ(request.refusal, "");
    EXPECT_LT(request.cached_tokens, request.prompt_tokens);
    EXPECT_LE(request.host_tokens + request.disk_tokens, request.cached_tokens);
    prompt += request.prompt_tokens;
    cached += request.cached_tokens;
    host += request.host_tokens;
    disk += request.disk_tokens;
    ++answered;
  };
  const TraceServingReport report = Serve(trace, options);
  const engine::TierStats& tiers = report.last.tiers;
  EXPECT_EQ(answered, trace.requests.size());
  EXPECT_EQ(report.served, trace.requests.size());
  EXPECT_EQ(std::tuple(report.prompt_tokens, report.cached_tokens, report.host_tokens, report.disk_tokens),
            std::tuple(prompt, cached, host, disk));
  EXPECT_EQ(report.last.prompt_tokens_cached + report.last.prompt_tokens_computed,
            prompt + report.last.tokens_recomputed);
  EXPECT_EQ(report.time.total(), report.duration);
  EXPECT_EQ(report.last.time.transfers, report.time.transfers) << "what the engine was told is what time passed for";

  // Requests and prefetches got what was loaded; loads that were given up for computing moved some more.
  const uint64_t loaded = tiers.loaded_tokens + tiers.host_loaded_tokens;
  EXPECT_LE(host + disk, loaded);
  EXPECT_LE(loaded, host + disk + tiers.prefetched_tokens);
  EXPECT_GE(report.moved.to_pool, loaded / kBlockTokens * kSlotBytes);
  EXPECT_LE(report.moved.to_pool, loaded * kSlotBytes / kBlockTokens * 3 / 2);
  EXPECT_GE(report.moved.disk_read, tiers.loaded_tokens / kBlockTokens * kSlotBytes);
  // What left the pool went to host memory, or to the disk unless it came from host memory.
  EXPECT_GE(report.moved.from_pool, tiers.host_stored_bytes);
  const uint64_t stored = tiers.host_stored_bytes + report.moved.disk_written;
  EXPECT_LE(report.moved.from_pool, stored + 100 * kSlotBytes) << "what the last of all handed down is under way";
  if (GetParam().host_blocks == 0) {
    EXPECT_EQ(report.moved.from_pool, report.moved.disk_written);
  }
  EXPECT_EQ(report.moved.disk_written, tiers.stored_bytes);
  EXPECT_EQ(report.moved.disk_read, tiers.loaded_bytes);
}

TEST_P(TraceServingTiers, EachGivesBackSomeOfWhatItTook) {
  const TraceServingReport report = Serve(Questions(), Options());
  EXPECT_EQ(report.host_tokens > 0, GetParam().host_blocks > 0);
  EXPECT_EQ(report.disk_tokens > 0, GetParam().disk_blocks > 0);
  EXPECT_EQ(report.moved.disk_written > 0, GetParam().disk_blocks > 0);
  TraceServingOptions without = Options();
  without.tiers = {.link = without.tiers.link};
  EXPECT_EQ(Serve(Questions(), without).moved, BytesMoved{});
}

TEST_P(TraceServingTiers, EqualOptionsGiveEqualReports) {
  const Trace trace = Questions();
  EXPECT_EQ(Sum(Serve(trace, Options())), Sum(Serve(trace, Options())));
}

INSTANTIATE_TEST_SUITE_P(Tiers, TraceServingTiers,
                         testing::Values(Below{"Host", 4096, 0}, Below{"Disk", 0, 16384}, Below{"Both", 1024, 16384}),
                         [](const auto& info) { return info.param.name; });

TEST(TraceServingTierRates, NothingComesOverALinkThatIsSlowerThanComputing) {
  const Trace trace = Questions();
  TraceServingOptions options = Small();
  options.tiers.host_blocks = 4096;
  options.tiers.link = exec::LinkSpec{.bytes_per_second = 1e7};  // 0.4 ms for a token that takes 0.1 ms
  const TraceServingReport report = Serve(trace, options);
  EXPECT_EQ(report.moved.from_pool, 0u);
  EXPECT_EQ(report.host_tokens, 0u);
}

TEST(TraceServingTierOptions, ThatMakeNoSenseAreRefused) {
  const Trace trace = Questions();
  TraceServingOptions options = Small();
  options.tiers.link->bytes_per_second = 0;
  options.tiers.host_eviction = "never";
  options.tiers.disk_blocks = 3;
  options.tiers.disk_read.latency_seconds = -1;
  const std::string message = ServeTrace(trace, options).status().message();
  for (const char* part : {"a link of 0 bytes/s", "\"never\"; expected lru or s3fifo", "3 blocks of 64 KiB on disk",
                           "disk reads of 3000000000 bytes/s after -1 s"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
  options = Small();
  options.model.kv.layers[0].k_dim = 3;
  EXPECT_THAT(ServeTrace(trace, options).status().message(), HasSubstr("k_dim = 3"));
}

// A question and, ten minutes later, another one about the same; nobody else asks.
TEST(IdleSessions, GoDownToHostMemory) {
  Trace trace{.block_tokens = 64};
  trace.requests.push_back({.input_tokens = 64, .output_tokens = 1, .blocks = {1}, .session = 5});
  trace.requests.push_back(
      {.arrival = std::chrono::minutes(10), .input_tokens = 128, .output_tokens = 1, .blocks = {1, 2}, .session = 5});
  TraceServingOptions options = Small();
  options.tiers.host_blocks = 2048;
  options.engine.sessions.idle_seconds = 60;
  const TraceServingReport without = Serve(trace, options);
  EXPECT_EQ(without.cached_tokens, 64u);
  EXPECT_EQ(without.host_tokens, 0u);
  options.sessions = true;
  const TraceServingReport with = Serve(trace, options);
  EXPECT_EQ(with.cached_tokens, 64u);
  EXPECT_EQ(with.host_tokens, 64u);
}

}  // namespace
}  // namespace cachalot::sim
