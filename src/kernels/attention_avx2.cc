#include "kernels/attention.h"

#include "kernels/simd_avx2-inl.h"

namespace cachalot::kernels {
namespace isa_avx2 {
namespace {

// 16 registers of 8 lanes: 12 sums, the rest for a load and its factor.
constexpr uint32_t kScoreRows = 6;
constexpr int ScoreTilesAtOnce(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }
constexpr uint32_t kValueRows = 6;
constexpr int ValueVecsAtOnce(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }
constexpr bool kReloadFactors = true;

}  // namespace

// Each needs those before it.
// clang-format off
#include "kernels/simd-inl.h"
#include "kernels/maths-inl.h"
#include "kernels/attention_tile-inl.h"
#include "kernels/attention_block-inl.h"
#include "kernels/attention-inl.h"
// clang-format on

}  // namespace isa_avx2

const AttentionKernels& AttentionAvx2() { return isa_avx2::kAttention; }

}  // namespace cachalot::kernels
