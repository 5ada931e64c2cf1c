// The matmul kernels of one instruction set, and the plain structures they take.
// Threads:   pure; callers divide panels among threads.
// Ownership: none: plain pointers; nothing is allocated.
// Invariant: each output is one chain over ascending columns (packed_matrix.h), so it does not depend on the number of
//            rows, the panel range or the instruction set. NaNs are equal as NaNs, not in their payload.
// Cost:      matmul reads each panel of the range once from memory; up to 64 KiB of stack.
#pragma once

#include <cstdint>

#include "kernels/panel_view.h"

namespace cachalot::kernels {

// m rows of activations, quantised per row and group of kGroup columns; see quantize_rows for the rule.
struct QuantisedRows {
  int8_t* values = nullptr;  // [m][columns]
  float* scales = nullptr;   // [m][columns/kGroup]
  int32_t* sums = nullptr;  // [m][columns/kGroup]: low 16 bits the sum of the group's first 16 values, high its last 16
};

struct Activations {
  const float* f32 = nullptr;  // [m][columns]; read by float formats only
  QuantisedRows quantised;     // read where the matrix takes_quantised()
  uint32_t rows = 0;           // m
};

struct MatmulKernels {
  // Per row and group: amax = max |x|; scale = amax/127 (IEEE division); q = nearest-even(x * (127/amax)).
  // amax below 2^-100 gives scale 0 and zeros; a NaN or infinity in the group gives scale NaN and zeros, hence NaN in
  // every output. Requires columns to be a multiple of kGroup.
  void (*quantize_rows)(const float* x, uint32_t rows, uint32_t columns, const QuantisedRows& out);
  // out[r][n] = sum_k W[n][k] x[r][k] for all r < x.rows and the rows n of panels [panel_begin, panel_end).
  // out_stride: floats between rows of out. Arithmetic as packed_matrix.h says.
  void (*matmul)(const PanelView& w, const Activations& x, uint32_t panel_begin, uint32_t panel_end, float* out,
                 uint64_t out_stride);
};

const MatmulKernels& MatmulScalar();
const MatmulKernels& MatmulAvx2();    // x86-64 builds only
const MatmulKernels& MatmulAvx512();  // x86-64 builds only

}  // namespace cachalot::kernels
