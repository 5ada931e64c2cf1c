#include "kv/residency.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "kv/kv_manager.h"

namespace cachalot::kv {
namespace {

using std::chrono::seconds;

uint64_t BucketOf(double age) {
  return static_cast<uint64_t>(std::ranges::lower_bound(kAgeBounds, age) - kAgeBounds.begin());
}

// One request of two blocks, from `begin` to `end`.
void Serve(KvManager& manager, TokenId first, Nanos begin, Nanos end) {
  std::vector<TokenId> tokens(32);
  std::iota(tokens.begin(), tokens.end(), first);
  manager.SetNow(begin);
  const SequenceId id = manager.Create();
  const uint64_t hit = manager.Attach(id, tokens, tokens.size()).tokens;
  if (hit < tokens.size()) {
    const Growth growth{id, static_cast<uint32_t>(tokens.size() - hit), std::span(tokens).subspan(hit)};
    std::move(manager.Reserve({&growth, 1})).value().Commit();
  }
  manager.SetNow(end);
  manager.Free(id);
}

TEST(Residency, TellsLifetimeIdleTimeAndReuseGap) {
  KvManager manager({.block_tokens = 16, .windows = {0}, .slots = 4}, MakeEvictionPolicy("lru").value());
  Serve(manager, 0, seconds(0), seconds(100));
  Serve(manager, 0, seconds(140), seconds(200));
  EXPECT_EQ(manager.residency().lifetimes.seconds, 0);
  EXPECT_EQ(manager.residency().reuse_gaps.counts[BucketOf(40)], 2u);
  EXPECT_DOUBLE_EQ(manager.residency().reuse_gaps.seconds, 2 * 40);
  Serve(manager, 100, seconds(250), seconds(251));
  Serve(manager, 200, seconds(1000), seconds(1001));  // the first two blocks go
  const ResidencyCounts counts = manager.residency();
  EXPECT_EQ(counts.lifetimes.counts[BucketOf(1000)], 2u);
  EXPECT_DOUBLE_EQ(counts.lifetimes.seconds, 2 * 1000);
  EXPECT_EQ(counts.idle_times.counts[BucketOf(800)], 2u);
  EXPECT_DOUBLE_EQ(counts.idle_times.seconds, 2 * 800);
  EXPECT_DOUBLE_EQ(counts.reuse_gaps.seconds, 2 * 40);
}

TEST(Residency, ABlockThatALongerOneReplacesWasNotEvicted) {
  KvManager manager({.block_tokens = 16, .windows = {0}, .slots = 8}, MakeEvictionPolicy("lru").value());
  const std::vector<TokenId> tokens(16, 7);
  for (const size_t length : {5u, 9u, 16u}) {
    const SequenceId id = manager.Create();
    const Growth growth{id, static_cast<uint32_t>(length), std::span(tokens).first(length)};
    std::move(manager.Reserve({&growth, 1})).value().Commit();
    manager.Free(id);
  }
  EXPECT_EQ(manager.available_slots() - manager.free_slots(), 1u);
  const auto& counts = manager.residency().lifetimes.counts;
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0ull), 0u);
}

}  // namespace
}  // namespace cachalot::kv
