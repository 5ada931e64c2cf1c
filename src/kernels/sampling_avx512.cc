#include "kernels/sampling.h"

#include "kernels/maths.h"
#include "kernels/simd_avx512-inl.h"

namespace cachalot::kernels {
namespace isa_avx512 {
// Each needs those before it.
// clang-format off
#include "kernels/simd-inl.h"
#include "kernels/maths-inl.h"
#include "kernels/sampling-inl.h"
// clang-format on
}  // namespace isa_avx512

const SamplingKernels& SamplingAvx512() { return isa_avx512::kSampling; }

}  // namespace cachalot::kernels
