// The floating-point mode that every thread computes in: round to nearest, denormals kept, nothing trapped.
// Threads:   the mode belongs to the calling thread.
// Ownership: none.
// Invariant: results depend on no library that sets flush-to-zero (as -ffast-math objects do at load time).
// Cost:      one or two instructions.
#pragma once

namespace cachalot {

void SetDefaultFpEnv();
bool IsDefaultFpEnv();

}  // namespace cachalot
