#include "kernels/sampling.h"

#include "kernels/maths.h"
#include "kernels/simd_avx2-inl.h"

namespace cachalot::kernels {
namespace isa_avx2 {
// Each needs those before it.
// clang-format off
#include "kernels/simd-inl.h"
#include "kernels/maths-inl.h"
#include "kernels/sampling-inl.h"
// clang-format on
}  // namespace isa_avx2

const SamplingKernels& SamplingAvx2() { return isa_avx2::kSampling; }

}  // namespace cachalot::kernels
