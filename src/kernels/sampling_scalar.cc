#include "kernels/sampling.h"

#include "kernels/maths.h"
#include "kernels/simd_scalar-inl.h"

namespace cachalot::kernels {
namespace isa_scalar {
// Each needs those before it.
// clang-format off
#include "kernels/simd-inl.h"
#include "kernels/maths-inl.h"
#include "kernels/sampling-inl.h"
// clang-format on
}  // namespace isa_scalar

const SamplingKernels& SamplingScalar() { return isa_scalar::kSampling; }

}  // namespace cachalot::kernels
