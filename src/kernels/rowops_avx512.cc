#include "kernels/rowops.h"
#include "kernels/simd_avx512-inl.h"

namespace cachalot::kernels {
namespace isa_avx512 {
// Each needs those before it.
// clang-format off
#include "kernels/simd-inl.h"
#include "kernels/maths-inl.h"
#include "kernels/rowops-inl.h"
// clang-format on
}  // namespace isa_avx512

const RowopKernels& RowopsAvx512() { return isa_avx512::kRowops; }

}  // namespace cachalot::kernels
