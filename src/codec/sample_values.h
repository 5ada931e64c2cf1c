// FillNormal makes values that are distributed as those of KV are, for trials of codecs.
// Threads:   pure, but for the generator, which belongs to its caller.
// Ownership: none.
// Invariant: the same generator and law give the same bytes on one build.
// Cost:      two random numbers a value.
#pragma once

#include <cstddef>
#include <span>

#include "base/kv_layout.h"
#include "base/random.h"

namespace cachalot::codec {

struct NormalLaw {
  double mean = 0;
  double deviation = 1;
};

// As they lie in memory, cut to the type's bits, not rounded; what f16 has no normal number for is 0. Requires a whole
// number of values.
void FillNormal(SplitMix64& random, const NormalLaw& law, KvType type, std::span<std::byte> values);

}  // namespace cachalot::codec
