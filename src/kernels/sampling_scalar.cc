#include "kernels/sampling.h"

#include "kernels/maths.h"
#include "kernels/simd_scalar-inl.h"

namespace cachalot::kernels {
namespace isa_scalar {
#include "kernels/simd-inl.h"
// In this order.
#include "kernels/maths-inl.h"
#include "kernels/sampling-inl.h"
}  // namespace isa_scalar

const SamplingKernels& SamplingScalar() { return isa_scalar::kSampling; }

}  // namespace cachalot::kernels
