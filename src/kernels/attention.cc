#include "kernels/attention.h"

#include "base/check.h"

namespace cachalot::kernels {

void DcheckAttend([[maybe_unused]] const AttentionShape& shape, [[maybe_unused]] const QueryRun& run,
                  [[maybe_unused]] uint32_t kv_head, [[maybe_unused]] const PageView& view) {
#ifdef CACHALOT_CHECKS
  CACHALOT_CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0);
  CACHALOT_CHECK(shape.head_dim > 0 && shape.head_dim % 2 == 0 && shape.head_dim <= kMaxHeadDim);
  CACHALOT_CHECK(view.k_dim == shape.head_dim && view.v_dim == shape.head_dim);
  CACHALOT_CHECK(view.kv_heads == shape.kv_heads && kv_head < shape.kv_heads);
  CACHALOT_CHECK(view.block_tokens > 0 && view.block_tokens % 16 == 0);
  if (run.rows == 0) return;
  const uint64_t seen = run.first_position + 1;  // by the first row
  const uint64_t begin = shape.window != 0 && seen > shape.window ? seen - shape.window : 0;
  const uint64_t last = run.first_position + run.rows - 1;
  CACHALOT_CHECK(begin / view.block_tokens >= view.pages.first_block);
  CACHALOT_CHECK(last / view.block_tokens < uint64_t{view.pages.first_block} + view.pages.slot_count);
#endif
}

}  // namespace cachalot::kernels
