#include "kernels/attention.h"

#include "base/check.h"

namespace cachalot::kernels {

void DcheckAttend([[maybe_unused]] const AttentionShape& shape, [[maybe_unused]] const AttendJob& job,
                  [[maybe_unused]] const PageView& view) {
#ifdef CACHALOT_CHECKS
  CACHALOT_CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0);
  CACHALOT_CHECK(shape.head_dim > 0 && shape.head_dim % 2 == 0 && shape.head_dim <= kMaxHeadDim);
  CACHALOT_CHECK(view.k_dim == shape.head_dim && view.v_dim == shape.head_dim);
  CACHALOT_CHECK(view.kv_heads == shape.kv_heads && job.kv_head < shape.kv_heads);
  CACHALOT_CHECK(view.block_tokens > 0 && view.block_tokens % 16 == 0);
  for (uint32_t i = 0; i < job.run_count; ++i) {
    const QueryRun& run = job.runs[i];
    CACHALOT_CHECK(run.rows > 0);
    const uint64_t last = run.first_position + run.rows - 1;
    CACHALOT_CHECK(FirstSeen(shape, run.first_position) / view.block_tokens >= run.pages.first_block);
    CACHALOT_CHECK(last / view.block_tokens < uint64_t{run.pages.first_block} + run.pages.slot_count);
    CACHALOT_CHECK(run.shared_positions % view.block_tokens == 0);
    if (i > 0 && run.shared_positions > 0) {
      CACHALOT_CHECK(run.pages.first_block == job.runs[i - 1].pages.first_block);
    }
    CACHALOT_CHECK(run.split_states != nullptr ||
                   (job.first_split <= FirstSplitOf(shape, run) && job.end_split > last / kSplitPositions));
  }
#endif
}

}  // namespace cachalot::kernels
