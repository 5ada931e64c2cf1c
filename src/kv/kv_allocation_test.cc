// Counts the heap allocations of this test binary: in steady state a step makes none.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/testing/allocations.h"
#include "kv/eviction.h"
#include "kv/kv_manager.h"

namespace cachalot::kv {
namespace {

void Step(KvManager& manager, std::span<const Growth> growth, bool commit) {
  Result<StepReservation> step = manager.Reserve(growth);
  ASSERT_TRUE(step.ok());
  if (commit) std::move(*step).Commit();
}

// Three sequences, two of them forks, that grow over hundreds of blocks with failed steps between, and end.
void OneLifetime(KvManager& manager) {
  const SequenceId a = manager.Create();
  const Growth prompt[] = {{a, 100}};
  Step(manager, prompt, true);
  const SequenceId b = manager.Fork(a);
  const SequenceId c = manager.Fork(a);
  const Growth decode[] = {{a, 1}, {b, 3}, {c, 2}};
  for (int i = 0; i < 1000; ++i) Step(manager, decode, i % 10 != 0);
  manager.Free(b);
  manager.Free(a);
  manager.Free(c);
}

TEST(KvAllocations, StepsForksAndEndsAllocateNothingOnceASizeWasSeen) {
#ifdef CACHALOT_CHECKS
  GTEST_SKIP() << "with checks on, every step takes a snapshot";
#endif
  KvManager manager({.block_tokens = 16, .windows = {0, 64, 100}, .slots = 3000});
  for (int i = 0; i < 4; ++i) OneLifetime(manager);
  const uint64_t before = AllocationsSoFar();
  for (int i = 0; i < 4; ++i) OneLifetime(manager);
  EXPECT_EQ(AllocationsSoFar(), before);
  EXPECT_GT(before, 0u);
  EXPECT_EQ(manager.free_slots(), 3000u);
}

// Prompts that begin alike and end differently, computed, found again and evicted.
void ManyPrompts(KvManager& manager, std::vector<TokenId>& prompt) {
  for (int i = 0; i < 200; ++i) {
    ++prompt[50];
    for (int visit = 0; visit < 2; ++visit) {
      const SequenceId id = manager.Create();
      const uint64_t found = manager.Attach(id, prompt, prompt.size() - 1).tokens;
      const std::span<const TokenId> rest = std::span(prompt).subspan(found);
      const Growth growth[] = {{id, static_cast<uint32_t>(rest.size()), rest}};
      Step(manager, growth, true);
      manager.Free(id);
    }
  }
}

TEST(KvAllocations, TheIndexAllocatesNothingOnceASizeWasSeen) {
#ifdef CACHALOT_CHECKS
  GTEST_SKIP() << "with checks on, every step takes a snapshot";
#endif
  KvManager manager({.block_tokens = 16, .windows = {0, 64}, .slots = 300}, MakeEvictionPolicy("lru").value());
  std::vector<TokenId> prompt(200, 7);
  for (int i = 0; i < 4; ++i) ManyPrompts(manager, prompt);
  const uint64_t before = AllocationsSoFar();
  ManyPrompts(manager, prompt);
  EXPECT_EQ(AllocationsSoFar(), before);
  EXPECT_GT(manager.evicted_slots(), 1000u);
}

}  // namespace
}  // namespace cachalot::kv
