// CHECK and DCHECK stop the process on a broken invariant of our own; user input never reaches them unchecked.
// Threads:   any.
// Ownership: none.
// Invariant: a failed check prints file, line and expression, then aborts.
// Cost:      one branch; DCHECK only with CACHALOT_CHECKS (preset dev, tsan).
#pragma once

namespace cachalot {

[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);

}  // namespace cachalot

#define CACHALOT_CHECK(expr) \
  (__builtin_expect(!!(expr), 1) ? (void)0 : ::cachalot::CheckFailed(__FILE__, __LINE__, #expr))

#ifdef CACHALOT_CHECKS
#define CACHALOT_DCHECK(expr) CACHALOT_CHECK(expr)
#else
#define CACHALOT_DCHECK(expr) (void)sizeof(!!(expr))
#endif
