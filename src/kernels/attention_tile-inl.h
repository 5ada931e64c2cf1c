// The inner loops of attention: scores of query vectors against tiles of keys, and weighted sums of value rows.
// Threads:   pure.
// Ownership: none.
// Invariant: each score and each output element is one fma chain in ascending order, however the loops are blocked.
// Cost:      bound by fma throughput once kScoreRows query vectors share a load; else by converting K and V.
//
// Included inside a namespace after simd-inl.h, in a file that defines
//   kScoreRows, ScoreTilesAtOnce(rows): accumulators rows * tiles of the score kernel, tiles a power of two
//   kValueRows, ValueVecsAtOnce(rows): accumulators rows * vectors of the value kernel, vectors a power of two

namespace {

constexpr uint32_t kTile = 16;        // positions
constexpr uint32_t kSplit = 256;      // positions
constexpr uint32_t kTilesAtOnce = 16;  // most tiles that one job covers

// How K and V elements of one type are read and written.
struct F32Cells {
  using Cell = float;
  static inline Vec LoadCells(const float* p) { return Load(p); }
  static inline void StoreCells(float* p, Vec a) { Store(p, a); }
};
struct F16Cells {
  using Cell = uint16_t;
  static inline Vec LoadCells(const uint16_t* p) { return LoadF16(p); }
  static inline void StoreCells(uint16_t* p, Vec a) { StoreF16(p, a); }
};
struct Bf16Cells {
  using Cell = uint16_t;
  static inline Vec LoadCells(const uint16_t* p) { return LoadBf16(p); }
  static inline void StoreCells(uint16_t* p, Vec a) { StoreBf16(p, a); }
};

inline Vec PlainNan(Vec a) { return Select(Equal(a, a), a, FromBits(ISet(0x7fc00000))); }

// Consecutive tiles of one KV head.
template <class Cells>
struct Tiles {
  uint32_t count = 0;
  uint64_t key_stride = 0;                            // cells from one dimension to the next
  uint64_t value_stride = 0;                          // cells from one position to the next
  const typename Cells::Cell* keys[kTilesAtOnce];    // [head_dim][16 of key_stride]
  const typename Cells::Cell* values[kTilesAtOnce];  // [16][head_dim of value_stride]
};

// scores[tile][row][lane] = q[row] . key of (tile, lane).
struct ScoreJob {
  const float* q = nullptr;  // [head_dim][row of q_stride]
  uint32_t q_stride = 0;
  uint32_t head_dim = 0;
  float* scores = nullptr;   // [tile of tile_stride][row][16]
  uint32_t tile_stride = 0;
};

template <class Cells, int R, int T>
void ScoreTiles(const ScoreJob& job, const Tiles<Cells>& tiles, uint32_t first_tile) {
  Vec sums[R][T];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) sums[r][t] = Zero();
  }
  const typename Cells::Cell* keys[T];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) keys[t] = tiles.keys[first_tile + t];
  const float* q = job.q;
  uint64_t offset = 0;
  for (uint32_t d = 0; d < job.head_dim; ++d) {
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const Vec key = Cells::LoadCells(keys[t] + offset);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) sums[r][t] = Fma(Set(q[r]), key, sums[r][t]);
    }
    q += job.q_stride;
    offset += tiles.key_stride;
  }
  float* scores = job.scores + uint64_t{first_tile} * job.tile_stride;
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) Store(scores + uint64_t{job.tile_stride} * t + 16 * r, sums[r][t]);
  }
}

// All tiles from first_tile on, T at once while they last, then T/2, ...
template <class Cells, int R, int T>
void ScoreTilesFrom(const ScoreJob& job, const Tiles<Cells>& tiles, uint32_t first_tile) {
  for (; first_tile + T <= tiles.count; first_tile += T) ScoreTiles<Cells, R, T>(job, tiles, first_tile);
  if constexpr (T > 1) ScoreTilesFrom<Cells, R, T / 2>(job, tiles, first_tile);
}

template <class Cells, int R = kScoreRows>
void ScoreRows(uint32_t rows, const ScoreJob& job, const Tiles<Cells>& tiles) {
  if constexpr (R > 1) {
    if (rows < R) return ScoreRows<Cells, R - 1>(rows, job, tiles);
  }
  ScoreTilesFrom<Cells, R, ScoreTilesAtOnce(R)>(job, tiles, 0);
}

// out[row] = out[row] * decay[tile][row], then out[row] += weights[tile][row][lane] * value of (tile, lane), lanes in
// [begin, end) ascending; tile after tile.
struct ValueJob {
  const float* weights = nullptr;  // [tile of tile_stride][row][16]
  uint32_t tile_stride = 0;
  const float* decay = nullptr;    // [tile of decay_stride][row]
  uint32_t decay_stride = 0;
  uint32_t begin = 0, end = kTile;
  float* out = nullptr;            // [row of out_stride]
  uint32_t out_stride = 0;
};

template <class Cells, int R, int D>
void SumValueVecs(const ValueJob& job, const Tiles<Cells>& tiles, uint32_t first_dim) {
  Vec sums[R][D];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < D; ++i) sums[r][i] = Load(job.out + uint64_t{job.out_stride} * r + first_dim + 16 * i);
  }
  for (uint32_t tile = 0; tile < tiles.count; ++tile) {
    const float* decay = job.decay + uint64_t{job.decay_stride} * tile;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec factor = Set(decay[r]);
#pragma GCC unroll 16
      for (int i = 0; i < D; ++i) sums[r][i] = Mul(sums[r][i], factor);
    }
    const float* weights = job.weights + uint64_t{job.tile_stride} * tile;
    const typename Cells::Cell* value = tiles.values[tile] + job.begin * tiles.value_stride + first_dim;
    for (uint32_t lane = job.begin; lane < job.end; ++lane) {
      Vec v[D];
#pragma GCC unroll 16
      for (int i = 0; i < D; ++i) v[i] = Cells::LoadCells(value + 16 * i);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Vec weight = Set(weights[16 * r + lane]);
#pragma GCC unroll 16
        for (int i = 0; i < D; ++i) sums[r][i] = Fma(weight, v[i], sums[r][i]);
      }
      value += tiles.value_stride;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < D; ++i) Store(job.out + uint64_t{job.out_stride} * r + first_dim + 16 * i, sums[r][i]);
  }
}

// All dimensions from first_dim on, D vectors at once while they last, then D/2, ...
template <class Cells, int R, int D>
void SumValueDims(const ValueJob& job, const Tiles<Cells>& tiles, uint32_t first_dim, uint32_t padded_dim) {
  for (; first_dim + 16 * D <= padded_dim; first_dim += 16 * D) SumValueVecs<Cells, R, D>(job, tiles, first_dim);
  if constexpr (D > 1) SumValueDims<Cells, R, D / 2>(job, tiles, first_dim, padded_dim);
}

template <class Cells, int R = kValueRows>
void SumValueRows(uint32_t rows, const ValueJob& job, const Tiles<Cells>& tiles, uint32_t padded_dim) {
  if constexpr (R > 1) {
    if (rows < R) return SumValueRows<Cells, R - 1>(rows, job, tiles, padded_dim);
  }
  SumValueDims<Cells, R, ValueVecsAtOnce(R)>(job, tiles, 0, padded_dim);
}

}  // namespace
