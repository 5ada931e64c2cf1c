// The matmul kernels of float formats: acc = fma(w, x, acc), columns ascending.
// Threads:   pure.
// Ownership: none.
// Invariant: as matmul-inl.h.
// Cost:      one fma per 16 products; 16-bit weights are widened once per panel and call, or per 4 rows if few.

namespace {

inline constexpr uint32_t kFloatSlab = 256;  // columns whose weights are widened at once: 16 KiB per panel

template <TensorType kType>
inline Vec LoadWeights(const std::byte* at) {
  if constexpr (kType == TensorType::kF32) {
    return Load(reinterpret_cast<const float*>(at));
  } else if constexpr (kType == TensorType::kF16) {
    return LoadF16(reinterpret_cast<const uint16_t*>(at));
  } else {
    return LoadBf16(reinterpret_cast<const uint16_t*>(at));
  }
}

// The weights of P neighbouring panels, from some column on.
struct FloatWeights {
  const std::byte* at;
  uint64_t panel_stride;  // bytes
  uint32_t columns;
};

struct FloatRows {
  const float* at;
  uint64_t stride;
};

template <TensorType kType, int R, int P>
inline void FloatTile(const FloatWeights& w, const FloatRows& x, const TileOut& out) {
  constexpr uint32_t kStep = kPanelRows * FloatBytes(kType);
  Vec acc[R][P];
  LoadTile(out, acc);
  const std::byte* at = w.at;
  for (uint32_t k = 0; k < w.columns; ++k, at += kStep) {
    Vec weights[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) weights[p] = LoadWeights<kType>(at + p * w.panel_stride);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec value = Set(x.at[r * x.stride + k]);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) acc[r][p] = Fma(weights[p], value, acc[r][p]);
    }
  }
  StoreTile(out, acc);
}

// A tile of `rows` rows, a block of MatmulFloat's large case.
template <TensorType kType, int R, int P>
inline void FloatTileOf(uint32_t rows, const FloatWeights& w, const FloatRows& x, const TileOut& out) {
  if constexpr (R > LeastBlock(kFloatSmallRows, kFloatRows)) {
    if (rows < R) return FloatTileOf<kType, R - 1, P>(rows, w, x, out);
  }
  FloatTile<kType, R, P>(w, x, out);
}

// Few rows: the weights stream through registers, SmallPanels(R) panels at a time to hide the latency of the chains.
template <TensorType kType, int R>
void FloatSmall(const PanelView& w, const Activations& x, uint32_t panel_begin, uint32_t panel_end, const Result& out) {
  constexpr int P = SmallPanels(R);
  const FloatRows rows{x.f32, w.columns};
  for (uint32_t panel = panel_begin; panel < panel_end;) {
    const FloatWeights weights{w.data + panel * w.panel_bytes, w.panel_bytes, w.columns};
    if (panel_end - panel >= P) {
      FloatTile<kType, R, P>(weights, rows, out.Tile(w, 0, panel, P, false));
      panel += P;
    } else {
      FloatTile<kType, R, 1>(weights, rows, out.Tile(w, 0, panel, 1, false));
      panel += 1;
    }
  }
}

template <TensorType kType, int R>
void FloatSmallOf(const PanelView& w, const Activations& x, uint32_t panel_begin, uint32_t panel_end,
                  const Result& out) {
  if constexpr (R > 1) {
    if (x.rows < R) return FloatSmallOf<kType, R - 1>(w, x, panel_begin, panel_end, out);
  }
  FloatSmall<kType, R>(w, x, panel_begin, panel_end, out);
}

// Many rows: P panels, slab by slab; 16-bit weights are widened once per slab.
template <TensorType kType, int P>
void FloatLarge(const PanelView& w, const Activations& x, uint32_t panel, const Result& out) {
  constexpr uint32_t kStep = kPanelRows * FloatBytes(kType);
  constexpr bool kWiden = kType != TensorType::kF32;
  alignas(64) float widened[kWiden ? P * kFloatSlab * kPanelRows : 1];
  const uint32_t blocks = (x.rows + kFloatRows - 1) / kFloatRows;
  for (uint32_t begin = 0; begin < w.columns; begin += kFloatSlab) {
    const uint32_t columns = LeastOf(kFloatSlab, w.columns - begin);
    const std::byte* at = w.data + panel * w.panel_bytes + uint64_t{begin} * kStep;
    FloatWeights slab{at, w.panel_bytes, columns};
    if constexpr (kWiden) {
      for (uint32_t p = 0; p < P; ++p) {
        for (uint32_t k = 0; k < columns; ++k) {
          Store(widened + (p * kFloatSlab + k) * kPanelRows, LoadWeights<kType>(at + p * w.panel_bytes + k * kStep));
        }
      }
      slab = {reinterpret_cast<const std::byte*>(widened), kFloatSlab * kPanelRows * sizeof(float), columns};
    }
    for (uint32_t block = 0; block < blocks; ++block) {
      const uint32_t first = BlockStart(x.rows, blocks, block);
      const FloatRows rows{x.f32 + uint64_t{first} * w.columns + begin, w.columns};
      FloatTileOf<TensorType::kF32, kFloatRows, P>(BlockStart(x.rows, blocks, block + 1) - first, slab, rows,
                                                   out.Tile(w, first, panel, P, begin > 0));
    }
  }
}

template <TensorType kType>
void MatmulFloat(const PanelView& w, const Activations& x, uint32_t panel_begin, uint32_t panel_end,
                 const Result& out) {
  if (x.rows <= kFloatSmallRows) return FloatSmallOf<kType, kFloatSmallRows>(w, x, panel_begin, panel_end, out);
  uint32_t panel = panel_begin;
  for (; panel + kFloatPanels <= panel_end; panel += kFloatPanels) FloatLarge<kType, kFloatPanels>(w, x, panel, out);
  for (; panel < panel_end; ++panel) FloatLarge<kType, 1>(w, x, panel, out);
}

}  // namespace
