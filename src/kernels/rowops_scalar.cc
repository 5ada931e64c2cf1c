#include "kernels/rowops.h"
#include "kernels/simd_scalar-inl.h"

namespace cachalot::kernels {
namespace isa_scalar {
// Each needs those before it.
// clang-format off
#include "kernels/simd-inl.h"
#include "kernels/maths-inl.h"
#include "kernels/rowops-inl.h"
// clang-format on
}  // namespace isa_scalar

const RowopKernels& RowopsScalar() { return isa_scalar::kRowops; }

}  // namespace cachalot::kernels
