// The kernels over a row of logits of one instruction set.
// Threads:   pure.
// Ownership: none.
// Invariant: equal on every instruction set, to the bit; NaNs are equal as NaNs, not in their payload.
// Cost:      two passes each (argmax, log_sum_exp), one (exp_shifted).
#pragma once

#include <cstdint>

namespace cachalot::kernels {

// exp-sum statistics of a logit row; see log_sum_exp.
struct LogSumExp {
  float max = 0;
  float log_sum = 0;  // log(sum exp(x - max)); logprob(x) = (x - max) - log_sum
};

struct SamplingKernels {  // n logits, any n >= 1
  // Index of the largest, lowest index on ties (-0 ties with 0); NaNs never win. All-NaN gives 0.
  uint32_t (*argmax)(const float* logits, uint32_t n);
  // Over chunks of 4,096 in order. Per chunk: m = the largest that is not NaN (-inf if none), s = sum of exp(x - m) in
  // 16 lanes and the tree of rowops.h. Merged from (-inf, 0): M' = max(M, m), S = fma(S, exp(M - M'), s*exp(m - M')).
  // Where a maximum is -inf, 0 stands for it in the differences. A NaN or +inf logit gives a NaN log_sum; only -inf
  // gives max = log_sum = -inf.
  LogSumExp (*log_sum_exp)(const float* logits, uint32_t n);
  // out[i] = exp((logits[i] - max) * inverse_temperature).
  void (*exp_shifted)(const float* logits, float max, float inverse_temperature, uint32_t n, float* out);
};

const SamplingKernels& SamplingScalar();
const SamplingKernels& SamplingAvx2();    // x86-64 builds only
const SamplingKernels& SamplingAvx512();  // x86-64 builds only

}  // namespace cachalot::kernels
