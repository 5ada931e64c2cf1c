#include "kernels/rowops.h"
#include "kernels/simd_avx2-inl.h"

namespace cachalot::kernels {
namespace isa_avx2 {
// Each needs those before it.
// clang-format off
#include "kernels/simd-inl.h"
#include "kernels/maths-inl.h"
#include "kernels/rowops-inl.h"
// clang-format on
}  // namespace isa_avx2

const RowopKernels& RowopsAvx2() { return isa_avx2::kRowops; }

}  // namespace cachalot::kernels
