#include "kernels/sampling.h"

#include "kernels/maths.h"
#include "kernels/simd_avx2-inl.h"

namespace cachalot::kernels {
namespace isa_avx2 {
#include "kernels/simd-inl.h"
// In this order.
#include "kernels/maths-inl.h"
#include "kernels/sampling-inl.h"
}  // namespace isa_avx2

const SamplingKernels& SamplingAvx2() { return isa_avx2::kSampling; }

}  // namespace cachalot::kernels
