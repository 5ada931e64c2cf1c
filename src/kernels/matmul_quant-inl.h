// Quantised formats of matmul-inl.h: per group of 32 columns acc = fma(float(isum), d_w * d_x, acc), with a minimum then
// acc = fma(float(xsum), m_w * d_x, acc), groups ascending.

namespace {

inline constexpr uint32_t kSlabGroups = 32;  // groups that are unpacked at once: 16 KiB of weights

// What a group's 16 weight rows are scaled by. With a minimum, `a` is m_w; with pairs, a and b are the integer scales
// of the two halves.
struct GroupScales {
  Vec d, a, b;
};

// Weights as they lie in a panel.
template <TensorType kType>
struct PackedWeights {
  static constexpr QuantFormat kFormat = FormatOf(kType);
  const std::byte* weights;
  const std::byte* scales;

  // The weights of steps 2*chunk and 2*chunk + 1, as unsigned bytes.
  template <int chunk>
  void Steps(uint64_t group, Bytes& even, Bytes& odd) const {
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

  GroupScales Scales(uint64_t group) const {
    constexpr uint64_t kBlockGroups = GroupsPerScaleBlock(kFormat.scales);
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

// Up to kSlabGroups groups of a panel, unpacked to bytes and f32 scales.
template <QuantFormat kSource>
struct SlabWeights {
  static constexpr QuantFormat kFormat = kSource;
  static constexpr uint64_t kVecs = kSource.scales == ScaleKind::kHalf ? 1 : HasMin(kSource.scales) ? 2 : 3;
  const std::byte* weights;
  const float* scales;

  template <int chunk>
  void Steps(uint64_t group, Bytes& even, Bytes& odd) const {
    even = LoadBytes(weights + group * 512 + 128 * chunk);
    odd = LoadBytes(weights + group * 512 + 128 * chunk + 64);
  }
  GroupScales Scales(uint64_t group) const {
    const float* own = scales + group * kVecs * kPanelRows;
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
};

template <class S, int R>
inline void AddPairGroup(const S& w, const QuantRows& x, uint64_t group, const GroupScales& scales, Vec (&acc)[R][1]) {
  constexpr int kBias = static_cast<int>(S::kFormat.offset) - kDotBias<S>;
  Int low[R], high[R];
  Dots<S, R, 0, 1>(w, group, x.values + group * kGroup, x.columns, low);
  Dots<S, R, 2, 3>(w, group, x.values + group * kGroup, x.columns, high);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const int32_t* sums = x.sums + r * x.groups + group;
    const Vec first = ToFloat(AddPairDot<-kBias, 0>(low[r], sums));
    const Vec second = ToFloat(AddPairDot<0, -kBias>(high[r], sums));
    // Each product and their sum stay below 2^24: exact.
    const Vec isum = Fma(second, scales.b, Mul(first, scales.a));
    acc[r][0] = Fma(isum, Mul(scales.d, Set(x.scales[r * x.groups + group])), acc[r][0]);
  }
}

template <class S, int R>
inline void AddGroup(const S& w, const QuantRows& x, uint64_t group, const GroupScales& scales, Vec (&acc)[R][1]) {
  constexpr int kBias = static_cast<int>(S::kFormat.offset) - kDotBias<S>;
  Int sum[R];
  Dots<S, R, 0, 3>(w, group, x.values + group * kGroup, x.columns, sum);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const int32_t* sums = x.sums + r * x.groups + group;
    const Vec scale = Set(x.scales[r * x.groups + group]);
    const Int isum = kBias == 0 ? sum[r] : AddPairDot<-kBias, -kBias>(sum[r], sums);
    acc[r][0] = Fma(ToFloat(isum), Mul(scales.d, scale), acc[r][0]);
    if constexpr (HasMin(S::kFormat.scales)) {
      const Vec xsum = ToFloat(AddPairDot<1, 1>(ISet(0), sums));
      acc[r][0] = Fma(xsum, Mul(scales.a, scale), acc[r][0]);
    }
  }
}

template <class S, int R>
inline void QuantTile(const S& w, uint64_t groups, const QuantRows& x, const TileOut& out) {
  Vec acc[R][1];
  LoadTile(out, acc);
  for (uint64_t group = 0; group < groups; ++group) {
    const GroupScales scales = w.Scales(group);
    if constexpr (S::kFormat.scales == ScaleKind::kSuperPair) {
      AddPairGroup<S, R>(w, x, group, scales, acc);
    } else {
      AddGroup<S, R>(w, x, group, scales, acc);
    }
  }
  StoreTile(out, acc);
}

// A tile of `rows` rows, 1 <= rows <= R.
template <class S, int R>
inline void QuantTileOf(uint32_t rows, const S& w, uint64_t groups, const QuantRows& x, const TileOut& out) {
  if constexpr (R > 1) {
    if (rows < R) return QuantTileOf<S, R - 1>(rows, w, groups, x, out);
  }
  QuantTile<S, R>(w, groups, x, out);
}

template <int chunk, class S>
inline void UnpackChunk(const S& from, uint64_t group, std::byte* to) {
  Bytes even, odd;
  from.template Steps<chunk>(group, even, odd);
  StoreBytes(to + 128 * chunk, even);
  StoreBytes(to + 128 * chunk + 64, odd);
}

template <TensorType kType>
struct Slab {
  using Weights = SlabWeights<SlabFormat(FormatOf(kType))>;
  alignas(64) std::byte weights[kSlabGroups * 512];
  alignas(64) float scales[kSlabGroups * Weights::kVecs * kPanelRows];

  void Unpack(const PackedWeights<kType>& from, uint64_t begin, uint64_t groups) {
    for (uint64_t group = 0; group < groups; ++group) {
      std::byte* to = weights + group * 512;
      UnpackChunk<0>(from, begin + group, to);
      UnpackChunk<1>(from, begin + group, to);
      UnpackChunk<2>(from, begin + group, to);
      UnpackChunk<3>(from, begin + group, to);
      const GroupScales own = from.Scales(begin + group);
      float* at = scales + group * Weights::kVecs * kPanelRows;
      Store(at, own.d);
      if constexpr (Weights::kVecs > 1) Store(at + kPanelRows, own.a);
      if constexpr (Weights::kVecs > 2) Store(at + 2 * kPanelRows, own.b);
    }
  }
};

// One panel against many rows, slab by slab.
template <TensorType kType>
void QuantLarge(const PackedWeights<kType>& panel, const QuantRows& x, uint32_t rows, TileOut out) {
  Slab<kType> slab;
  const typename Slab<kType>::Weights unpacked{slab.weights, slab.scales};
  const uint32_t blocks = (rows + kQuantRows - 1) / kQuantRows;
  for (uint64_t begin = 0; begin < x.groups; begin += kSlabGroups) {
    const uint64_t groups = x.groups - begin < kSlabGroups ? x.groups - begin : kSlabGroups;
    slab.Unpack(panel, begin, groups);
    for (uint32_t block = 0; block < blocks; ++block) {
      const uint64_t first = BlockStart(rows, blocks, block);
      const QuantRows own{x.values + first * x.columns + begin * kGroup, x.scales + first * x.groups + begin,
                          x.sums + first * x.groups + begin, x.columns, x.groups};
      TileOut tile = out;
      tile.data += first * out.stride;
      const uint32_t count = BlockStart(rows, blocks, block + 1) - static_cast<uint32_t>(first);
      QuantTileOf<typename Slab<kType>::Weights, kQuantRows>(count, unpacked, groups, own, tile);
    }
    out.resume = true;
  }
}

template <TensorType kType>
void MatmulQuant(const PanelView& w, const Activations& x, uint32_t panel_begin, uint32_t panel_end,
                 const TileOut& out) {
  using Packed = PackedWeights<kType>;
  const uint64_t groups = w.columns / kGroup;
  const QuantRows rows{x.quantised.values, x.quantised.scales, x.quantised.sums, w.columns, groups};
  for (uint32_t panel = panel_begin; panel < panel_end; ++panel) {
    const std::byte* data = w.data + panel * w.panel_bytes;
    const Packed weights{data, data + ScalesOffset(Packed::kFormat, w.columns)};
    TileOut tile = out;
    tile.data += uint64_t{panel} * kPanelRows;
    tile.lanes = LanesOf(w, panel);
    if (x.rows <= kQuantSmallRows) {
      QuantTileOf<Packed, kQuantSmallRows>(x.rows, weights, groups, rows, tile);
    } else {
      QuantLarge<kType>(weights, rows, x.rows, tile);
    }
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
