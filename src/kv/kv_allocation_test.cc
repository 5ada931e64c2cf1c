// Counts the heap allocations of this test binary: in steady state a step makes none.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

#include "kv/kv_manager.h"

namespace {

std::atomic<uint64_t> allocations{0};

void* Allocate(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  std::abort();
}

}  // namespace

void* operator new(std::size_t bytes) { return Allocate(bytes); }
void* operator new[](std::size_t bytes) { return Allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

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
  const uint64_t before = allocations.load();
  for (int i = 0; i < 4; ++i) OneLifetime(manager);
  EXPECT_EQ(allocations.load(), before);
  EXPECT_GT(before, 0u);
  EXPECT_EQ(manager.free_slots(), 3000u);
}

}  // namespace
}  // namespace cachalot::kv
