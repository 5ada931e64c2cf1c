// The row kernels over the vector traits; see rowops.h.
// Threads:   pure.
// Ownership: none.
// Invariant: the last, partial vector runs the same operations as a whole one.
// Cost:      one pass.
//
// Included inside a namespace after simd-inl.h and maths-inl.h.

namespace {

template <class Op>
inline void MapUnary(const float* x, uint32_t n, float* out, Op op) {
  uint32_t i = 0;
  for (; i + 16 <= n; i += 16) Store(out + i, op(Load(x + i)));
  if (i < n) StorePartial(out + i, n - i, op(LoadPartial(x + i, n - i)));
}

template <class Op>
inline void MapBinary(const float* x, const float* y, uint32_t n, float* out, Op op) {
  uint32_t i = 0;
  for (; i + 16 <= n; i += 16) Store(out + i, op(Load(x + i), Load(y + i)));
  if (i < n) StorePartial(out + i, n - i, op(LoadPartial(x + i, n - i), LoadPartial(y + i, n - i)));
}

void RmsNorm(const float* x, const float* weight, float epsilon, uint32_t n, float* out) {
  Vec squares = Zero();
  uint32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const Vec v = Load(x + i);
    squares = Fma(v, v, squares);
  }
  if (i < n) {
    const Vec v = LoadPartial(x + i, n - i);
    squares = Fma(v, v, squares);
  }
  const float mean = ReduceAdd(squares) / static_cast<float>(n);
  const Vec r = Set(1.0f / __builtin_sqrtf(mean + epsilon));
  MapBinary(x, weight, n, out, [r](Vec v, Vec w) { return Mul(Mul(v, r), w); });
}

void AddRows(const float* a, const float* b, uint32_t n, float* out) {
  MapBinary(a, b, n, out, [](Vec x, Vec y) { return Add(x, y); });
}

void ScaleRow(const float* x, float factor, uint32_t n, float* out) {
  const Vec f = Set(factor);
  MapUnary(x, n, out, [f](Vec v) { return Mul(v, f); });
}

void SiluMul(const float* gate, const float* up, uint32_t n, float* out) {
  MapBinary(gate, up, n, out, [](Vec g, Vec u) {
    const Vec silu = Div(g, Add(Set(1.0f), ExpOf(Neg(g))));
    return Mul(silu, u);
  });
}

void GeluTanhMul(const float* gate, const float* up, uint32_t n, float* out) {
  MapBinary(gate, up, n, out, [](Vec g, Vec u) {
    const Vec cubic = Fma(Mul(g, g), Set(0.044715f), Set(1.0f));
    const Vec t = TanhOf(Mul(Mul(g, Set(0.79788456f)), cubic));  // sqrt(2/pi)
    return Mul(Mul(Mul(Set(0.5f), g), Add(Set(1.0f), t)), u);
  });
}

// `pairs` holds 8 pairs; c and s hold each cosine and sine twice.
inline Vec RotateNeighbours(Vec pairs, Vec c, Vec s) {
  static const int32_t kEvenSigns[16] = {INT32_MIN, 0, INT32_MIN, 0, INT32_MIN, 0, INT32_MIN, 0,
                                         INT32_MIN, 0, INT32_MIN, 0, INT32_MIN, 0, INT32_MIN, 0};
  const Vec crossed = Mul(SwapNeighbours(pairs), s);
  return Fma(pairs, c, FromBits(IAdd(BitsOf(crossed), ILoad(kEvenSigns))));
}

void RopeInterleaved(float* head, const float* cos, const float* sin, uint32_t dims) {
  const uint32_t half = dims / 2;
  uint32_t i = 0;
  for (; i + 8 <= half; i += 8) {
    Store(head + 2 * i, RotateNeighbours(Load(head + 2 * i), LoadTwice(cos + i), LoadTwice(sin + i)));
  }
  if (i == half) return;
  const uint32_t rest = half - i;
  float last_cos[8] = {}, last_sin[8] = {};
  for (uint32_t j = 0; j < rest; ++j) {
    last_cos[j] = cos[i + j];
    last_sin[j] = sin[i + j];
  }
  const Vec pairs = LoadPartial(head + 2 * i, 2 * rest);
  StorePartial(head + 2 * i, 2 * rest, RotateNeighbours(pairs, LoadTwice(last_cos), LoadTwice(last_sin)));
}

void RopeHalves(float* head, const float* cos, const float* sin, uint32_t dims) {
  const uint32_t half = dims / 2;
  for (uint32_t i = 0; i < half; i += 16) {
    const uint32_t n = half - i < 16 ? half - i : 16;
    const Vec a = LoadPartial(head + i, n), b = LoadPartial(head + half + i, n);
    const Vec c = LoadPartial(cos + i, n), s = LoadPartial(sin + i, n);
    StorePartial(head + i, n, Fma(a, c, Neg(Mul(b, s))));
    StorePartial(head + half + i, n, Fma(b, c, Mul(a, s)));
  }
}

constexpr RowopKernels kRowops = {
    .rms_norm = RmsNorm,
    .add = AddRows,
    .scale = ScaleRow,
    .silu_mul = SiluMul,
    .gelu_tanh_mul = GeluTanhMul,
    .rope_interleaved = RopeInterleaved,
    .rope_halves = RopeHalves,
};

}  // namespace
