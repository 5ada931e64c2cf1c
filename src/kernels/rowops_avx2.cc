#include "kernels/rowops.h"
#include "kernels/simd_avx2-inl.h"

namespace cachalot::kernels {
namespace isa_avx2 {
#include "kernels/simd-inl.h"
// In this order.
#include "kernels/maths-inl.h"
#include "kernels/rowops-inl.h"
}  // namespace isa_avx2

const RowopKernels& RowopsAvx2() { return isa_avx2::kRowops; }

}  // namespace cachalot::kernels
