#include "kernels/attention.h"

#include "kernels/simd_scalar-inl.h"

namespace cachalot::kernels {
namespace isa_scalar {
namespace {

constexpr uint32_t kScoreRows = 1;
constexpr int ScoreTilesAtOnce(int) { return 1; }
constexpr uint32_t kValueRows = 1;
constexpr int ValueVecsAtOnce(int) { return 1; }
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

}  // namespace isa_scalar

const AttentionKernels& AttentionScalar() { return isa_scalar::kAttention; }

}  // namespace cachalot::kernels
