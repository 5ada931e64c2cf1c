#include "base/entropy.h"

#include <sys/random.h>

#include "base/check.h"

namespace cachalot {

uint64_t SystemEntropy() {
  uint64_t bits = 0;
  CACHALOT_CHECK(getrandom(&bits, sizeof(bits), 0) == sizeof(bits));  // up to 256 bytes are never interrupted
  return bits;
}

}  // namespace cachalot
