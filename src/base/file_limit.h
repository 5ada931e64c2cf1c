// How many files and sockets this process may have open.
// Threads:   any; the limit belongs to the process.
// Ownership: none.
// Invariant: the limit never shrinks.
// Cost:      two system calls.
#pragma once

#include <cstdint>

namespace cachalot {

// Raises the limit to `wanted`, or as far as the system lets it. The limit as it then is.
uint64_t RaiseFileLimit(uint64_t wanted);

}  // namespace cachalot
