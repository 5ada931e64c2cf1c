// Elementary functions of our own, so that no libm's rounding reaches KV, logits or sampling.
// Threads:   pure.
// Ownership: none.
// Invariant: the same bits on every machine and compiler: basic IEEE operations and explicit fma only. The f32 forms
//            equal the vector forms of the kernels element by element.
// Cost:      tens of nanoseconds.
#pragma once

#include <cstdint>

namespace cachalot::kernels {

// f32, as the kernels compute them. Errors against the true value: <= 2 ulp in the ranges used.
float Exp(float x);  // 0 below -87.34 (no denormals), +inf above 88.73
float Log(float x);  // x > 0
float Tanh(float x);

// f64, for tables built at start. Errors <= 2 ulp.
double Exp64(double x);
double Log64(double x);
double Pow64(double base, double exponent);  // base > 0
struct SinCos {
  double sin, cos;
};
SinCos SinCos64(double x);  // |x| <= 2^30

}  // namespace cachalot::kernels
