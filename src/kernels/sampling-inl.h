// The logit kernels over the vector traits; see sampling.h.
// Threads:   pure.
// Ownership: none.
// Invariant: the last, partial vector runs the same operations as a whole one, its missing lanes at -inf.
// Cost:      one pass per loop.
//
// Included inside a namespace after simd-inl.h and maths-inl.h.

namespace {

constexpr uint32_t kLogitChunk = 4096;

// Lanes from `count` on hold -inf.
inline Vec LoadLogits(const float* p, uint32_t count) {
  if (count >= 16) return Load(p);
  return Select(LanesInRange(0, count), LoadPartial(p, count), Set(-__builtin_inff()));
}

// The largest that is not NaN; -inf if there is none.
inline float LargestOf(const float* x, uint32_t n) {
  Vec best = Set(-__builtin_inff());
  for (uint32_t i = 0; i < n; i += 16) best = Max(LoadLogits(x + i, n - i), best);
  return ReduceMax(best);
}

// What stands for a maximum in differences.
inline float FiniteFloor(float max) { return max == -__builtin_inff() ? 0.0f : max; }

uint32_t Argmax(const float* logits, uint32_t n) {
  const Vec largest = Set(LargestOf(logits, n));
  for (uint32_t i = 0; i < n; i += 16) {
    const uint32_t count = n - i < 16 ? n - i : 16;
    const uint32_t equal = BitsOfMask(Equal(LoadLogits(logits + i, count), largest)) & ((1u << count) - 1u);
    if (equal != 0) return i + static_cast<uint32_t>(__builtin_ctz(equal));
  }
  return 0;
}

LogSumExp LogSumExpOf(const float* logits, uint32_t n) {
  float max = -__builtin_inff();
  float sum = 0;
  for (uint32_t begin = 0; begin < n; begin += kLogitChunk) {
    const float* x = logits + begin;
    const uint32_t count = n - begin < kLogitChunk ? n - begin : kLogitChunk;
    const float chunk_max = LargestOf(x, count);
    const Vec shift = Set(FiniteFloor(chunk_max));
    Vec lanes = Zero();
    for (uint32_t i = 0; i < count; i += 16) {
      lanes = Add(lanes, ExpOfNonPositive(Sub(LoadLogits(x + i, count - i), shift)));
    }
    const float merged = max > chunk_max ? max : chunk_max;
    const float floor = FiniteFloor(merged);
    sum = FmaOne(sum, Exp(max - floor), ReduceAdd(lanes) * Exp(chunk_max - floor));
    max = merged;
  }
  return {max, Log(sum)};
}

void ExpShifted(const float* logits, float max, float inverse_temperature, uint32_t n, float* out) {
  const Vec shift = Set(max), factor = Set(inverse_temperature);
  for (uint32_t i = 0; i < n; i += 16) {
    const uint32_t count = n - i;
    const Vec y = ExpOf(Mul(Sub(LoadLogits(logits + i, count), shift), factor));
    if (count >= 16) {
      Store(out + i, y);
    } else {
      StorePartial(out + i, count, y);
    }
  }
}

constexpr SamplingKernels kSampling = {.argmax = Argmax, .log_sum_exp = LogSumExpOf, .exp_shifted = ExpShifted};

}  // namespace
