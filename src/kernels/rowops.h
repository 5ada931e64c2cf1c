// The row kernels of one instruction set: norms, element-wise operations and rotary embedding.
// Threads:   pure.
// Ownership: none; out may be an input itself, but no other overlap.
// Invariant: element i of an element-wise result depends on element i alone, tails included. NaNs are equal as NaNs,
//            not in their payload.
// Cost:      one pass, rms_norm two; silu and gelu about two nanoseconds per 16 elements.
#pragma once

#include <cstdint>

namespace cachalot::kernels {

struct RowopKernels {  // n elements, any n >= 1
  // out = (x * r) * weight, r = 1 / sqrt(sum / n + epsilon), every step rounded to f32. The sum of squares has 16
  // lanes, lane i an fma chain over elements i, i + 16, ..., added as lane i with i + 8, then i + 4, i + 2, i + 1.
  void (*rms_norm)(const float* x, const float* weight, float epsilon, uint32_t n, float* out);
  void (*add)(const float* a, const float* b, uint32_t n, float* out);
  void (*scale)(const float* x, float factor, uint32_t n, float* out);
  // (g / (1 + exp(-g))) * up.
  void (*silu_mul)(const float* gate, const float* up, uint32_t n, float* out);
  // ((0.5*g) * (1 + tanh(u))) * up, u = (g * 0.79788456) * fma(g*g, 0.044715, 1).
  void (*gelu_tanh_mul)(const float* gate, const float* up, uint32_t n, float* out);
  // Rotates one head in place; cos, sin [dims/2], dims even. Each pair (a, b) becomes
  // (fma(a, c, -(b*s)), fma(b, c, a*s)). Interleaved: pairs (2i, 2i+1); halves: (i, i + dims/2).
  void (*rope_interleaved)(float* head, const float* cos, const float* sin, uint32_t dims);
  void (*rope_halves)(float* head, const float* cos, const float* sin, uint32_t dims);
};

const RowopKernels& RowopsScalar();
const RowopKernels& RowopsAvx2();    // x86-64 builds only
const RowopKernels& RowopsAvx512();  // x86-64 builds only

}  // namespace cachalot::kernels
