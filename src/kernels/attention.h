// The attention kernels of one instruction set: storing K and V into blocks, and attending over pages.
// Threads:   pure; callers divide runs, rows and KV heads among threads. Rows are stored before they are attended.
// Ownership: none: plain pointers and views; nothing is allocated.
// Invariant: a row's result depends on its query, its position, the window and the visible K and V: not on the
//            instruction set, the rows and runs beside it, the block size, where blocks lie, which blocks are shared,
//            where splits are divided among calls, or what invisible positions hold.
// Cost:      attend reads each visible K and V element once per block of up to MostQueries(head_dim) query vectors of a
//            KV head, shared elements once for all runs of the block; about 140 KiB of stack.
//
// Arithmetic. Tiles are 16 and splits 256 absolute positions. Per query row and head, over the visible positions:
//   tile:  s[t] = fma chain over the head dimension, ascending, from 0;  m' = max(m, max s);  a = exp(m - m');
//          p[t] = exp(s[t] - m');  l = fma(l, a, tree(p)), p of the 16 lanes, 0 where invisible;
//          o[d] = o[d]*a, then o[d] = fma(p[t], v[t][d], o[d]) over visible t, ascending.
//   split: starts at m = -inf, l = 0, o = 0, and is folded into the total (M, L, O), which starts alike:
//          M' = max(M, m);  A = exp(M - M');  B = exp(m - M');  L = fma(L, A, l*B);  O[d] = fma(O[d], A, o[d]*B).
//   end:   out[d] = O[d] / L, IEEE division.
// Runs that share leading blocks go through these tiles together and then each through its own: a query vector's split
// state is handed over, nothing is merged.
// Tiles and splits with nothing visible are skipped. Where m' (or M') is -inf, 0 stands for it in the differences, so
// scores of -inf weigh nothing. A visible score of +inf or NaN, or only -inf, makes every out[d] NaN; a V of NaN, or of
// inf under a weight of 0, only its own d. Every NaN in out is 0x7fc00000.
#pragma once

#include <cstdint>

#include "base/page_view.h"

namespace cachalot::kernels {

constexpr uint32_t kMaxHeadDim = 512;  // of the attention kernels; a model beyond it must be refused before

struct AttentionShape {
  uint32_t heads = 0;
  uint32_t kv_heads = 0;  // divides heads; query heads g*heads/kv_heads and following read KV head g
  uint32_t head_dim = 0;  // even, up to kMaxHeadDim
  uint32_t window = 0;    // 0: full
};

// Functions here are static, as BlockOf: a copy shared with files of another instruction set would be a weak symbol.
static constexpr uint32_t RoundUp16(uint32_t n) { return (n + 15) & ~15u; }

// Most query vectors (one row and head) of one KV head that share their loads of K and V.
static constexpr uint32_t MostQueries(uint32_t head_dim) { return head_dim <= 128 ? 64 : 8192 / RoundUp16(head_dim); }

// A run of consecutive query rows of one sequence.
struct QueryRun {
  const float* q = nullptr;  // [rows][heads*head_dim], rotated and already multiplied by the attention scale
  uint64_t q_stride = 0;     // floats between rows
  float* out = nullptr;      // [rows][heads*head_dim]
  uint64_t out_stride = 0;
  uint64_t first_position = 0;  // of row 0; row r sees positions (p - window, p], p = first_position + r
  uint32_t rows = 0;
  PageTableRef pages;
  // Leading positions whose blocks are the same slots in the run before this one of a call; 0 in the first. A multiple
  // of the block size. Above 0 only where both page tables begin at the same block.
  uint64_t shared_positions = 0;
  // Where the splits of `out` go while they are divided among calls: [rows][heads][SplitsOf][SplitStateFloats].
  float* split_states = nullptr;
};

// The query heads of one KV head of some runs, over some splits.
struct AttendJob {
  const QueryRun* runs = nullptr;
  uint32_t run_count = 0;
  uint32_t kv_head = 0;
  // Splits by absolute number, position / kSplitPositions. Runs without split_states need all of them.
  uint64_t first_split = 0;
  uint64_t end_split = UINT64_MAX;
};

constexpr uint32_t kSplitPositions = 256;

// One query vector's m, l and o after a split.
static constexpr uint32_t SplitStateFloats(uint32_t head_dim) { return RoundUp16(head_dim) + 16; }

// The first position that a row at `position` sees.
static inline uint64_t FirstSeen(const AttentionShape& shape, uint64_t position) {
  return shape.window != 0 && position >= shape.window ? position + 1 - shape.window : 0;
}
static inline uint64_t FirstSplitOf(const AttentionShape& shape, const QueryRun& run) {
  return FirstSeen(shape, run.first_position) / kSplitPositions;
}
// Splits of which any row of the run sees something.
static inline uint64_t SplitsOf(const AttentionShape& shape, const QueryRun& run) {
  return (run.first_position + run.rows - 1) / kSplitPositions - FirstSplitOf(shape, run) + 1;
}

struct AttentionKernels {
  // Writes one token's K [kv_heads*k_dim] and V [kv_heads*v_dim] into its block, rounded (nearest even) to view.type;
  // f16 overflows to infinity. NaNs become the positive quiet NaN without payload.
  void (*store_kv)(const float* k, const float* v, uint64_t position, const PageView& view);
  // out = softmax(q . K) V for the query heads of one KV head of all runs, or their split states. Requires view.k_dim
  // == view.v_dim == shape.head_dim, view.kv_heads == shape.kv_heads and the blocks of all visible positions; the pages
  // are those of the runs, not of the view.
  void (*attend)(const AttentionShape& shape, const AttendJob& job, const PageView& view);
  // out of one row from its split states, once all of them are there.
  void (*fold_splits)(const AttentionShape& shape, const QueryRun& run, uint32_t row);
};

const AttentionKernels& AttentionScalar();
const AttentionKernels& AttentionAvx2();    // x86-64 builds only
const AttentionKernels& AttentionAvx512();  // x86-64 builds only

// Stops on a call that breaks attend's requirements, where DCHECKs are on. The kernels call it.
void DcheckAttend(const AttentionShape& shape, const AttendJob& job, const PageView& view);

}  // namespace cachalot::kernels
