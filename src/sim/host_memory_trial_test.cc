// What host memory below the pool is worth.
#include <optional>

#include <gtest/gtest.h>

#include "sim/trace_serving.h"
#include "sim/workload.h"

namespace cachalot::sim {
namespace {

// A machine that computes 20,000 tokens a second, and 128 KiB of KV per token.
TraceServingReport ServeFast(const char* workload, uint32_t slots, uint32_t host_blocks,
                             std::optional<exec::LinkSpec> link) {
  TraceServingOptions options;
  options.model.kv.layers = {{.kv_heads = 32'768, .k_dim = 2}};
  options.model.curve = {0.01, 5e-5, 4e-9, 0, 2e-5};
  options.slots = slots;
  options.tiers = {.link = link, .host_blocks = host_blocks};
  return ServeTrace(MakeWorkload(workload, {.seed = 1, .requests = 700}).value(), options).value();
}

constexpr exec::LinkSpec kLink{.bytes_per_second = 25e9};

TEST(TraceServingHostMemory, IsWorthAPoolOfItsSizeAndOverALinkStillMuchOfIt) {
  const uint64_t without = ServeFast("chat", 4096, 0, {}).cached_tokens;
  const uint64_t pool = ServeFast("chat", 12'288, 0, {}).cached_tokens;
  const uint64_t at_once = ServeFast("chat", 4096, 8192, {}).cached_tokens;
  const uint64_t linked = ServeFast("chat", 4096, 8192, kLink).cached_tokens;
  EXPECT_GE(pool, without * 3 / 2);
  EXPECT_GE(at_once, pool * 9 / 10);
  EXPECT_GE(linked - without, (pool - without) / 2);
}

// What comes up from host memory was not computed in vain.
TEST(TraceServingHostMemory, IsNoThrash) {
  const TraceServingReport without = ServeFast("agent", 4096, 0, {}), with = ServeFast("agent", 4096, 8192, {});
  EXPECT_GT(with.cached_tokens, without.cached_tokens);
  EXPECT_LT(with.ttft.Quantile(0.5), without.ttft.Quantile(0.5));
  EXPECT_EQ(with.last.limit_decreases, 0u);
}

}  // namespace
}  // namespace cachalot::sim
