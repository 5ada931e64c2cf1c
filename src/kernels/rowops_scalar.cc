#include "kernels/rowops.h"
#include "kernels/simd_scalar-inl.h"

namespace cachalot::kernels {
namespace isa_scalar {
#include "kernels/simd-inl.h"
// In this order.
#include "kernels/maths-inl.h"
#include "kernels/rowops-inl.h"
}  // namespace isa_scalar

const RowopKernels& RowopsScalar() { return isa_scalar::kRowops; }

}  // namespace cachalot::kernels
