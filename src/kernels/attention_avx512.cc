#include "kernels/attention.h"

#include "kernels/simd_avx512-inl.h"

namespace cachalot::kernels {
namespace isa_avx512 {
namespace {

// 32 registers of 16 lanes: up to 24 sums.
constexpr uint32_t kScoreRows = 8;
constexpr int ScoreTilesAtOnce(int rows) { return rows <= 4 ? 4 : 2; }
constexpr uint32_t kValueRows = 6;
constexpr int ValueVecsAtOnce(int) { return 4; }
constexpr bool kReloadFactors = false;

}  // namespace

// Each needs those before it.
// clang-format off
#include "kernels/simd-inl.h"
#include "kernels/maths-inl.h"
#include "kernels/attention_tile-inl.h"
#include "kernels/attention_block-inl.h"
#include "kernels/attention-inl.h"
// clang-format on

}  // namespace isa_avx512

const AttentionKernels& AttentionAvx512() { return isa_avx512::kAttention; }

}  // namespace cachalot::kernels
