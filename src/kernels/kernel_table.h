// KernelTable is the set of compute kernels for one instruction set; all tables give the same bits.
// Threads:   kernels are pure over their arguments; callers divide rows, heads and panels among threads.
// Ownership: none: plain pointers and views; kernels allocate nothing and take no lock.
// Invariant: results depend on values and positions only: not on the instruction set, on how rows are batched, on how
//            work is split, or on where blocks lie.
// Cost:      see each kernel.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/rowops.h"
#include "kernels/sampling.h"

namespace cachalot::kernels {

struct KernelTable {
  const char* isa = "";  // "scalar", "avx2", "avx512"

  // --- matmul.h, contracts at MatmulKernels
  void (*quantize_rows)(const float* x, uint32_t rows, uint32_t columns, const QuantisedRows& out);
  void (*matmul)(const PanelView& w, const Activations& x, uint32_t panel_begin, uint32_t panel_end, float* out,
                 uint64_t out_stride);

  // --- attention.h, contracts at AttentionKernels
  void (*store_kv)(const float* k, const float* v, uint64_t position, const PageView& view);
  void (*attend)(const AttentionShape& shape, const AttendJob& job, const PageView& view);
  void (*fold_splits)(const AttentionShape& shape, const QueryRun& run, uint32_t row);

  // --- rowops.h, contracts at RowopKernels
  void (*rms_norm)(const float* x, const float* weight, float epsilon, uint32_t n, float* out);
  void (*add)(const float* a, const float* b, uint32_t n, float* out);
  void (*scale)(const float* x, float factor, uint32_t n, float* out);
  void (*silu_mul)(const float* gate, const float* up, uint32_t n, float* out);
  void (*gelu_tanh_mul)(const float* gate, const float* up, uint32_t n, float* out);
  void (*rope_interleaved)(float* head, const float* cos, const float* sin, uint32_t dims);
  void (*rope_halves)(float* head, const float* cos, const float* sin, uint32_t dims);

  // --- sampling.h, contracts at SamplingKernels
  uint32_t (*argmax)(const float* logits, uint32_t n);
  LogSumExp (*log_sum_exp)(const float* logits, uint32_t n);
  void (*exp_shifted)(const float* logits, float max, float inverse_temperature, uint32_t n, float* out);
};

// The tables that this machine can run, best first; the last is "scalar".
std::span<const KernelTable* const> RunnableTables();
// "auto" gives the best; a name that this build or machine lacks is kInvalid, with those that it has.
Result<const KernelTable*> SelectTable(std::string_view isa);

}  // namespace cachalot::kernels
