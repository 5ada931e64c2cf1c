#include "base/fp_env.h"

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace cachalot {

#if defined(__x86_64__)

namespace {
constexpr uint32_t kDefaultMxcsr = 0x1F80;    // all exceptions masked, nearest, no FTZ, no DAZ
constexpr uint32_t kMxcsrStickyFlags = 0x3F;  // what has happened, not how to compute
}  // namespace

void SetDefaultFpEnv() { _mm_setcsr(kDefaultMxcsr); }
bool IsDefaultFpEnv() { return (_mm_getcsr() & ~kMxcsrStickyFlags) == kDefaultMxcsr; }

#elif defined(__aarch64__)

namespace {
uint64_t ReadFpcr() {
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
}
}  // namespace

void SetDefaultFpEnv() { asm volatile("msr fpcr, %0" : : "r"(uint64_t{0})); }
bool IsDefaultFpEnv() { return ReadFpcr() == 0; }

#else

void SetDefaultFpEnv() { std::fesetenv(FE_DFL_ENV); }
bool IsDefaultFpEnv() { return std::fegetround() == FE_TONEAREST; }

#endif

}  // namespace cachalot
