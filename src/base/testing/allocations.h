// Counts the heap allocations of the test binary that names it, through its own operator new.
// Threads:   any.
// Ownership: none.
// Invariant: all is 0 with CACHALOT_CHECKS. Memory from malloc itself is not counted.
// Cost:      one atomic increment per allocation.
#pragma once

#include <cstdint>

namespace cachalot {

uint64_t AllocationsSoFar();
// The largest one since this was last asked.
uint64_t TakeLargestAllocation();

}  // namespace cachalot
