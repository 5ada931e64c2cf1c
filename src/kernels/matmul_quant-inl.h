// quantize_rows, and the matmul kernels of quantised formats: per group of 32 columns
// acc = fma(float(isum), d_w * d_x, acc), with a minimum then acc = fma(float(xsum), m_w * d_x, acc), groups ascending.
// Threads:   pure.
// Ownership: none.
// Invariant: as matmul-inl.h; isum and xsum are exact and below 2^24, so their conversion is exact too.
// Cost:      per 512 products eight dot steps and three float operations, five with a minimum; weights are unpacked
//            once per panel and call, or per block of rows if few.

namespace {

inline constexpr uint32_t kSlabGroupBytes = 512;  // of unpacked weights
// Streaming panels from memory: 8.9 GB/s without, 12.6 with (one core of a Xeon whose plain read gives 10 to 12).
inline constexpr uint32_t kFetchAheadBytes = 8192;

// What a group's 16 weight rows are scaled by. With a minimum, `a` is m_w; with pairs, a and b are the integer scales
// of the two halves.
struct GroupScales {
  Vec d, a, b;
};

// Weights as they lie in a panel, from group `begin` on: a multiple of eight.
template <TensorType kType>
struct PackedWeights {
  static constexpr QuantFormat kFormat = FormatOf(kType);
  const std::byte* weights;
  const std::byte* scales;

  PackedWeights(const PanelView& w, uint32_t panel, uint64_t begin)
      : weights(w.data + panel * w.panel_bytes + begin * WeightBytesPerGroup(kFormat.bits)),
        scales(w.data + panel * w.panel_bytes + ScalesOffset(kFormat, w.columns) +
               begin / GroupsPerScaleBlock(kFormat.scales) * ScaleBlockBytes(kFormat.scales)) {}

  // Panels are read in order, so what lies ahead is the rest of this one, then the next.
  void FetchAhead(uint32_t group) const {
    constexpr uint32_t kBytes = WeightBytesPerGroup(kFormat.bits);
    const std::byte* at = weights + group * kBytes + kFetchAheadBytes;
    for (uint32_t line = 0; line < kBytes; line += 64) __builtin_prefetch(at + line, 0, 2);
    constexpr uint32_t kScaleBytes = ScaleBlockBytes(kFormat.scales) / GroupsPerScaleBlock(kFormat.scales);
    __builtin_prefetch(scales + group * kScaleBytes + kFetchAheadBytes, 0, 2);
  }

  // The weights of steps 2*chunk and 2*chunk + 1, as unsigned bytes. This is one panel: panel 0.
  template <int chunk>
  void Steps(int, uint32_t group, Bytes& even, Bytes& odd) const {
    const std::byte* at = weights + group * WeightBytesPerGroup(kFormat.bits);
    if constexpr (kFormat.bits == 8) {
      even = LoadBytes(at + 128 * chunk);
      odd = LoadBytes(at + 128 * chunk + 64);
      return;
    }
    const Bytes both = LoadBytes(at + 64 * chunk);
    even = LowNibbles(both);
    odd = HighNibbles(both);
    if constexpr (kFormat.bits == 5) {
      const Bytes top = LoadBytes(at + 256);
      even = Or(even, TopBits<2 * chunk, 1>(top));
      odd = Or(odd, TopBits<2 * chunk + 1, 1>(top));
    }
    if constexpr (kFormat.bits == 6) {
      const Bytes top = LoadBytes(at + 256 + 64 * (chunk / 2));
      even = Or(even, TopBits<4 * (chunk % 2), 3>(top));
      odd = Or(odd, TopBits<4 * (chunk % 2) + 2, 3>(top));
    }
  }

  GroupScales Scales(int, uint32_t group) const {
    constexpr uint32_t kBlockGroups = GroupsPerScaleBlock(kFormat.scales);
    const std::byte* block = scales + group / kBlockGroups * ScaleBlockBytes(kFormat.scales);
    const auto* halves = reinterpret_cast<const uint16_t*>(block);
    const Vec d = LoadF16(halves);
    if constexpr (kFormat.scales == ScaleKind::kHalf) {
      return {d, Zero(), Zero()};
    } else if constexpr (kFormat.scales == ScaleKind::kHalfMin) {
      return {d, LoadF16(halves + kPanelRows), Zero()};
    } else if constexpr (kFormat.scales == ScaleKind::kSuperMin) {
      const std::byte* own = block + 4 * kPanelRows + group % kBlockGroups * 2 * kPanelRows;
      const Vec min = Mul(LoadF16(halves + kPanelRows), LoadU8(own + kPanelRows));
      return {Mul(d, LoadU8(own)), Neg(min), Zero()};
    } else {
      const std::byte* own = block + 2 * kPanelRows + group % kBlockGroups * 2 * kPanelRows;
      return {d, LoadI8(own), LoadI8(own + kPanelRows)};
    }
  }
};

// Up to kSlabGroups groups of some panels, unpacked to bytes and f32 scales.
template <QuantFormat kSource>
struct SlabWeights {
  static constexpr QuantFormat kFormat = kSource;
  static constexpr uint32_t kVecs = kSource.scales == ScaleKind::kHalf ? 1 : HasMin(kSource.scales) ? 2 : 3;
  static constexpr uint32_t kPanelBytes = kSlabGroups * kSlabGroupBytes;
  static constexpr uint32_t kPanelScales = kSlabGroups * kVecs * kPanelRows;
  const std::byte* weights;
  const float* scales;

  void FetchAhead(uint32_t) const {}

  template <int chunk>
  void Steps(int panel, uint32_t group, Bytes& even, Bytes& odd) const {
    const std::byte* at = weights + panel * kPanelBytes + group * kSlabGroupBytes + 128 * chunk;
    even = LoadBytes(at);
    odd = LoadBytes(at + 64);
  }
  GroupScales Scales(int panel, uint32_t group) const {
    const float* own = scales + panel * kPanelScales + group * kVecs * kPanelRows;
    return {Load(own), kVecs > 1 ? Load(own + kPanelRows) : Zero(), kVecs > 2 ? Load(own + 2 * kPanelRows) : Zero()};
  }
};

// Formats that differ only in how they are packed share their slab kernels.
constexpr QuantFormat SlabFormat(QuantFormat source) {
  if (HasMin(source.scales)) source.scales = ScaleKind::kHalfMin;
  return source;
}

// Rows of x from some group on.
struct QuantRows {
  const int8_t* values;
  const float* scales;
  const int32_t* sums;
  uint64_t columns;  // stride of values
  uint64_t groups;   // stride of scales and sums

  QuantRows From(uint64_t row, uint64_t group) const {
    return {values + row * columns + group * kGroup, scales + row * groups + group, sums + row * groups + group,
            columns, groups};
  }
};

// What R rows of x add to their dots, for the groups of a slab. Where the dot counts weights as unsigned, `start` is
// what their offset takes away; pairs have one for each half.
template <class S, int R>
struct RowTerms {
  static constexpr int kBias = static_cast<int>(S::kFormat.offset) - kDotBias<S>;
  static constexpr bool kPairs = S::kFormat.scales == ScaleKind::kSuperPair;
  static constexpr bool kMin = HasMin(S::kFormat.scales);
  float scale[R][kSlabGroups];
  float sum[kMin ? R : 1][kSlabGroups];
  int32_t start[R][kSlabGroups];
  int32_t second_start[kPairs ? R : 1][kSlabGroups];

  // Sixteen groups at once; where they are no multiple of that, the last sixteen overlap others.
  void Set(const QuantRows& x, uint32_t rows, uint32_t groups) {
    for (uint32_t r = 0; r < rows; ++r) {
      for (uint32_t g = 0; g < groups && groups < 16; ++g) SetOne(x, r, g);
      for (uint32_t g = 0; g < groups && groups >= 16; g += 16) SetSixteen(x, r, LeastOf(g, groups - 16));
    }
  }

 private:
  void SetOne(const QuantRows& x, uint32_t r, uint32_t g) {
    const int32_t both = x.sums[r * x.groups + g];
    const int32_t low = static_cast<int16_t>(both & 0xffff), high = both >> 16;
    scale[r][g] = x.scales[r * x.groups + g];
    start[r][g] = -kBias * (kPairs ? low : low + high);
    if constexpr (kMin) sum[r][g] = static_cast<float>(low + high);
    if constexpr (kPairs) second_start[r][g] = -kBias * high;
  }

  void SetSixteen(const QuantRows& x, uint32_t r, uint32_t g) {
    const Int both = ILoad(x.sums + r * x.groups + g);
    const Int low = ShiftRightSigned<16>(ShiftLeft<16>(both)), high = ShiftRightSigned<16>(both);
    Store(&scale[r][g], Load(x.scales + r * x.groups + g));
    if constexpr (kBias != 0) IStore(&start[r][g], TimesBias(kPairs ? low : IAdd(low, high)));
    if constexpr (kMin) Store(&sum[r][g], ToFloat(IAdd(low, high)));
    if constexpr (kPairs) IStore(&second_start[r][g], TimesBias(high));
  }

  // -kBias * a.
  static Int TimesBias(Int a) {
    static_assert((kBias & (kBias - 1)) == 0);
    return ISub(ISet(0), ShiftLeft<__builtin_ctz(kBias == 0 ? 1 : kBias)>(a));
  }
};

template <class S, int R, int P>
inline void AddGroup(const S& w, const QuantRows& x, const RowTerms<S, R>& terms, uint32_t group, Vec (&acc)[R][P]) {
  const int8_t* values = x.values + group * kGroup;
  GroupScales scales[P];
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) scales[p] = w.Scales(p, group);
  Int dots[R][P];
  if constexpr (RowTerms<S, R>::kPairs) {
    Dots<S, R, P, 0, 1>(w, group, values, x.columns, &terms.start[0][group], dots);
    Vec first[R][P];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) first[r][p] = Mul(ToFloat(dots[r][p]), scales[p].a);
    }
    Dots<S, R, P, 2, 3>(w, group, values, x.columns, &terms.second_start[0][group], dots);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec scale = Set(terms.scale[r][group]);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        // Each product and their sum stay below 2^24: exact.
        const Vec isum = Fma(ToFloat(dots[r][p]), scales[p].b, first[r][p]);
        acc[r][p] = Fma(isum, Mul(scales[p].d, scale), acc[r][p]);
      }
    }
  } else {
    Dots<S, R, P, 0, 3>(w, group, values, x.columns, &terms.start[0][group], dots);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec scale = Set(terms.scale[r][group]);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        acc[r][p] = Fma(ToFloat(dots[r][p]), Mul(scales[p].d, scale), acc[r][p]);
        if constexpr (RowTerms<S, R>::kMin) {
          acc[r][p] = Fma(Set(terms.sum[r][group]), Mul(scales[p].a, scale), acc[r][p]);
        }
      }
    }
  }
}

template <class S, int R, int P>
void QuantTile(const S& w, uint32_t groups, const QuantRows& x, const RowTerms<S, R>& terms, const TileOut& out) {
  Vec acc[R][P];
  LoadTile(out, acc);
  for (uint32_t group = 0; group < groups; ++group) {
    w.FetchAhead(group);
    AddGroup<S, R, P>(w, x, terms, group, acc);
  }
  StoreTile(out, acc);
}

// --- Few rows: weights go through registers only.

template <TensorType kType, int R>
void QuantSmall(const PanelView& w, const QuantRows& x, uint32_t panel_begin, uint32_t panel_end, const Result& out) {
  using Packed = PackedWeights<kType>;
  RowTerms<Packed, R> terms;
  for (uint64_t begin = 0; begin < x.groups; begin += kSlabGroups) {
    const auto groups = static_cast<uint32_t>(x.groups - begin < kSlabGroups ? x.groups - begin : kSlabGroups);
    const QuantRows rows = x.From(0, begin);
    terms.Set(rows, R, groups);
    for (uint32_t panel = panel_begin; panel < panel_end; ++panel) {
      const TileOut tile = out.Tile(w, 0, panel, 1, begin > 0);
      QuantTile<Packed, R, 1>(Packed(w, panel, begin), groups, rows, terms, tile);
    }
  }
}

template <TensorType kType, int R>
void QuantSmallOf(uint32_t rows, const PanelView& w, const QuantRows& x, uint32_t panel_begin, uint32_t panel_end,
                  const Result& out) {
  if constexpr (R > 1) {
    if (rows < R) return QuantSmallOf<kType, R - 1>(rows, w, x, panel_begin, panel_end, out);
  }
  QuantSmall<kType, R>(w, x, panel_begin, panel_end, out);
}

// --- Many rows: P panels are unpacked slab by slab, then all rows go over the slab.

template <int chunk, class S>
inline void UnpackChunk(const S& from, uint32_t group, std::byte* to) {
  Bytes even, odd;
  from.template Steps<chunk>(0, group, even, odd);
  StoreBytes(to + 128 * chunk, even);
  StoreBytes(to + 128 * chunk + 64, odd);
}

template <TensorType kType, class Weights>
void Unpack(const PackedWeights<kType>& from, uint32_t groups, std::byte* weights, float* scales) {
  for (uint32_t group = 0; group < groups; ++group) {
    from.FetchAhead(group);
    std::byte* to = weights + group * kSlabGroupBytes;
    UnpackChunk<0>(from, group, to);
    UnpackChunk<1>(from, group, to);
    UnpackChunk<2>(from, group, to);
    UnpackChunk<3>(from, group, to);
    const GroupScales own = from.Scales(0, group);
    float* at = scales + group * Weights::kVecs * kPanelRows;
    Store(at, own.d);
    if constexpr (Weights::kVecs > 1) Store(at + kPanelRows, own.a);
    if constexpr (Weights::kVecs > 2) Store(at + 2 * kPanelRows, own.b);
  }
}

template <class S, int R, int P>
void QuantBlockOf(uint32_t rows, const S& w, uint32_t groups, const QuantRows& x, const TileOut& out) {
  if constexpr (R > LeastBlock(kQuantSmallRows, QuantRowsOf(S::kFormat.scales))) {
    if (rows < R) return QuantBlockOf<S, R - 1, P>(rows, w, groups, x, out);
  }
  RowTerms<S, R> terms;
  terms.Set(x, R, groups);
  QuantTile<S, R, P>(w, groups, x, terms, out);
}

template <TensorType kType>
void QuantLarge(const PanelView& w, const QuantRows& x, uint32_t rows, uint32_t panel, const Result& out) {
  using Weights = SlabWeights<SlabFormat(FormatOf(kType))>;
  constexpr int kRows = QuantRowsOf(Weights::kFormat.scales);
  constexpr int P = kQuantPanels;
  alignas(64) std::byte weights[P * Weights::kPanelBytes];
  alignas(64) float scales[P * Weights::kPanelScales];
  const uint32_t blocks = (rows + kRows - 1) / kRows;
  for (uint64_t begin = 0; begin < x.groups; begin += kSlabGroups) {
    const auto groups = static_cast<uint32_t>(x.groups - begin < kSlabGroups ? x.groups - begin : kSlabGroups);
    for (uint32_t p = 0; p < P; ++p) {
      Unpack<kType, Weights>(PackedWeights<kType>(w, panel + p, begin), groups, weights + p * Weights::kPanelBytes,
                             scales + p * Weights::kPanelScales);
    }
    for (uint32_t block = 0; block < blocks; ++block) {
      const uint32_t first = BlockStart(rows, blocks, block);
      QuantBlockOf<Weights, kRows, P>(BlockStart(rows, blocks, block + 1) - first, Weights{weights, scales}, groups,
                                      x.From(first, begin), out.Tile(w, first, panel, P, begin > 0));
    }
  }
}

template <TensorType kType>
void MatmulQuant(const PanelView& w, const Activations& x, uint32_t panel_begin, uint32_t panel_end,
                 const Result& out) {
  const QuantRows rows{x.quantised.values, x.quantised.scales, x.quantised.sums, w.columns, w.columns / kGroup};
  uint32_t panel = panel_begin;
  if (x.rows > kQuantSmallRows) {
    for (; panel + kQuantPanels <= panel_end; panel += kQuantPanels) QuantLarge<kType>(w, rows, x.rows, panel, out);
  }
  if (panel == panel_end) return;
  const uint32_t blocks = (x.rows + kQuantSmallRows - 1) / kQuantSmallRows;
  for (uint32_t block = 0; block < blocks; ++block) {
    const uint32_t first = BlockStart(x.rows, blocks, block);
    QuantSmallOf<kType, kQuantSmallRows>(BlockStart(x.rows, blocks, block + 1) - first, w, rows.From(first, 0), panel,
                                         panel_end, out.FromRow(first));
  }
}

// --- quantize_rows

inline constexpr float kLeastAmax = 0x1p-100f;  // below, 127/amax could overflow
inline constexpr float kGreatestFloat = 0x1.fffffep127f;

inline void QuantizeGroup(const float* x, int8_t* values, float* scale, int32_t* sums) {
  const Vec low = Load(x), high = Load(x + 16);
  const Vec low_abs = Abs(low), high_abs = Abs(high);
  const Vec greatest = Set(kGreatestFloat);
  const uint32_t finite = BitsOfMask(LessEqual(low_abs, greatest)) & BitsOfMask(LessEqual(high_abs, greatest));
  const float amax = ReduceMax(Max(low_abs, high_abs));
  if (finite != 0xffff || amax < kLeastAmax) {
    *scale = finite != 0xffff ? __builtin_nanf("") : 0.0f;
    *sums = 0;
    StoreInt8(values, ISet(0));
    StoreInt8(values + 16, ISet(0));
    return;
  }
  *scale = amax / 127.0f;
  const Vec inverse = Set(127.0f / amax);
  StoreInt8(values, RoundToInt(Mul(low, inverse)));
  StoreInt8(values + 16, RoundToInt(Mul(high, inverse)));
  *sums = HalfSums(values);
}

void QuantizeRows(const float* x, uint32_t rows, uint32_t columns, const QuantisedRows& out) {
  const uint64_t groups = uint64_t{rows} * (columns / kGroup);
  for (uint64_t group = 0; group < groups; ++group) {
    QuantizeGroup(x + group * kGroup, out.values + group * kGroup, out.scales + group, out.sums + group);
  }
}

}  // namespace
