#include "base/testing/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<uint64_t> allocations{0}, largest{0};

[[maybe_unused]] void* Allocate(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (bytes > largest.load(std::memory_order_relaxed)) largest = bytes;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  std::abort();
}

}  // namespace

namespace cachalot {

uint64_t AllocationsSoFar() { return allocations.load(); }
uint64_t TakeLargestAllocation() { return largest.exchange(0); }

}  // namespace cachalot

#ifndef CACHALOT_CHECKS  // sanitizers have their own
// noinline: g++ 12 otherwise takes the inlined free() for one that does not match its new.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return Allocate(bytes); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return Allocate(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif
