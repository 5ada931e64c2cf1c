// The vector traits that every kernel is written in: a virtual vector of 16 lanes, the same on each instruction set.
// Threads:   pure.
// Ownership: none.
// Invariant: equal bits on every instruction set, so a kernel written over these is equal too.
// Cost:      one 512-bit or two 256-bit instructions, or a loop of 16.
//
// A kernel area x is written once, in x-inl.h, which includes nothing and is included inside a namespace:
//
//   // x_avx2.cc (x_scalar.cc, x_avx512.cc alike)
//   #include "kernels/simd_avx2-inl.h"          // defines the traits in cachalot::kernels::isa_avx2
//   #include "kernels/x.h"                      // declares const XKernels& XAvx2();
//   namespace cachalot::kernels::isa_avx2 {
//   #include "kernels/simd-inl.h"               // traits derived from the others (this file)
//   #include "kernels/x-inl.h"                  // everything in an unnamed namespace, so that no symbol is weak
//   }
//
// The traits (Vec: 16 f32, Int: 16 i32, Mask: 16 truths):
//   Zero Set Load LoadPartial(p, n: rest 0) Store StorePartial Add Sub Mul Div Sqrt Abs
//   Fma(a, b, c) = a*b + c   Fnma(a, b, c) = c - a*b, rounded once        FmaOne(a, b, c): one float
//   Max(a, b) = a > b ? a : b   Min(a, b) = a < b ? a : b                 (so a NaN on either side gives b)
//   BitsOf FromBits ISet ILoad IStore IAdd ISub IAnd IOr ShiftLeft<n> ShiftRight<n> (logical)
//   ShiftRightSigned<n>
//   RoundToInt (nearest even; NaN and out of range give INT32_MIN) ToFloat
//   Less LessEqual Equal (false on NaN) Select(mask, yes, no) BitsOfMask(mask): bit i is lane i
//   LanesInRange(begin, end): true for begin <= i < end
//   LoadTwice(p): lane i is p[i/2], eight floats read   SwapNeighbours: lane i is lane i^1
//   LoadF16 LoadBf16 StoreF16 StoreBf16 (nearest even), on uint16_t*
//   ReduceAdd ReduceMax: lane i with i+8, then i+4, i+2, i+1
//   ReduceAddEach(p) ReduceMaxEach(p): lane i is that reduction of the i-th of the sixteen vectors at p

namespace {

inline Vec Neg(Vec a) { return FromBits(ISub(BitsOf(a), ISet(INT32_MIN))); }  // flips the sign bit

}  // namespace
