#include "kernels/rowops.h"
#include "kernels/simd_avx512-inl.h"

namespace cachalot::kernels {
namespace isa_avx512 {
#include "kernels/simd-inl.h"
// In this order.
#include "kernels/maths-inl.h"
#include "kernels/rowops-inl.h"
}  // namespace isa_avx512

const RowopKernels& RowopsAvx512() { return isa_avx512::kRowops; }

}  // namespace cachalot::kernels
