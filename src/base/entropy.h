// SystemEntropy gives 64 bits that nobody can predict. The one place where randomness enters from outside.
// Threads:   any.
// Ownership: none.
// Invariant: never the same twice, for practical purposes.
// Cost:      one system call.
#pragma once

#include <cstdint>

namespace cachalot {

uint64_t SystemEntropy();

}  // namespace cachalot
