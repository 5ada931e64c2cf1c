// The inner loops of attention: scores of query vectors against tiles of keys, and weighted sums of value rows.
// Threads:   pure.
// Ownership: none.
// Invariant: each score and each output element is one fma chain in ascending order, however the loops are blocked.
// Cost:      bound by fma throughput once kScoreRows query vectors share a load; else by converting K and V.
//
// Included inside a namespace after simd-inl.h, in a file that defines
//   kScoreRows, ScoreTilesAtOnce(rows): most rows of a score kernel, and the tiles that go with each number of rows
//   kValueRows, ValueVecsAtOnce(rows): likewise of a value kernel, and the vectors of 16 dimensions
//   kReloadFactors: load factors anew for each vector rather than keep them in registers that the sums need

namespace {

constexpr uint32_t kTile = 16;  // positions
constexpr uint64_t kSplit = kSplitPositions;
constexpr uint32_t kTilesAtOnce = 16;  // most tiles of one job

// How K and V elements of one type are read and written.
struct F32Cells {
  using Cell = float;
  static constexpr bool kInPlace = true;  // the inner loops read the blocks themselves
  static inline Vec LoadCells(const float* p) { return Load(p); }
  static inline void StoreCells(float* p, Vec a) { Store(p, a); }
};
struct F16Cells {
  using Cell = uint16_t;
  static constexpr bool kInPlace = true;
  static inline Vec LoadCells(const uint16_t* p) { return LoadF16(p); }
  static inline void StoreCells(uint16_t* p, Vec a) { StoreF16(p, a); }
};
struct Bf16Cells {
  using Cell = uint16_t;
  static constexpr bool kInPlace = true;
  static inline Vec LoadCells(const uint16_t* p) { return LoadBf16(p); }
  static inline void StoreCells(uint16_t* p, Vec a) { StoreBf16(p, a); }
};
struct CopiedCells {  // f32 copies of any of them
  using Cell = float;
  static constexpr bool kInPlace = false;
  static inline Vec LoadCells(const float* p) { return Load(p); }
};

// Consecutive tiles of one KV head.
template <class Cells>
struct Tiles {
  uint32_t count = 0;
  uint64_t key_stride = 0;                           // cells from one dimension to the next
  uint64_t value_stride = 0;                         // cells from one position to the next
  const typename Cells::Cell* keys[kTilesAtOnce];    // [dims][16 of key_stride]
  const typename Cells::Cell* values[kTilesAtOnce];  // [16][dims of value_stride]
};

// What the job after one in place reads, per tile: 16 * dims cells in rows of 16, fetched while the job runs. Blocks
// lie scattered, so the processor's own prefetchers see no further than one of them; this saves a fifth of cold decode
// time.
struct Ahead {
  const std::byte* from[kTilesAtOnce];
  uint64_t step = 0;  // bytes from row to row
};

// scores[tile][row][lane] = the score so far, or 0, then an fma chain over `dims` dimensions.
struct ScoreJob {
  const float* q = nullptr;  // [dims][row of q_stride]
  uint32_t q_stride = 0;
  uint32_t dims = 0;
  bool resume = false;
  float* scores = nullptr;  // [tile of tile_stride][row][16]
  uint32_t tile_stride = 0;
  const Ahead* ahead = nullptr;  // for tiles in place only
};

// out[row] = out[row] * decay[tile][row], then an fma chain of weights[tile][row][lane] * value of (tile, lane) over
// the lanes in [begin, end); tile after tile.
struct ValueJob {
  const float* weights = nullptr;  // [tile of tile_stride][row][16]
  uint32_t tile_stride = 0;
  const float* decay = nullptr;  // [tile of decay_stride][row]
  uint32_t decay_stride = 0;
  uint32_t begin = 0, end = kTile;
  uint32_t first_dim = 0;  // of the tiles' values, that out begins with; multiples of 16, as dims
  uint32_t dims = 0;
  float* out = nullptr;          // [row][dims]
  const Ahead* ahead = nullptr;  // for tiles in place only
};

// Not to the first level, which holds less than a job reads.
inline void FetchToSecondLevel(const std::byte* p) { __builtin_prefetch(p, 0, 2); }

// Hides that p is what it was, so that nothing loaded through it is kept in a register.
inline void Forget(const float*& p) { __asm__("" : "+r"(p)); }

template <class Cells, int R, int T>
[[gnu::noinline]] void ScoreTiles(const ScoreJob& job, const Tiles<Cells>& tiles, uint32_t first_tile) {
  const uint64_t q_stride = job.q_stride, key_stride = tiles.key_stride, tile_stride = job.tile_stride;
  const uint64_t ahead_step = Cells::kInPlace ? job.ahead->step : 0;
  float* const scores = job.scores + first_tile * tile_stride;
  const typename Cells::Cell* keys[T];
  const std::byte* ahead[T];
  Vec sums[R][T];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    keys[t] = tiles.keys[first_tile + t];
    if constexpr (Cells::kInPlace) ahead[t] = job.ahead->from[first_tile + t];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sums[r][t] = job.resume ? Load(scores + tile_stride * t + 16 * r) : Zero();
  }
  const float* q = job.q;
  uint64_t offset = 0, ahead_offset = 0;
  for (uint32_t d = job.dims; d > 0; --d) {
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      if constexpr (Cells::kInPlace) FetchToSecondLevel(ahead[t] + ahead_offset);
      if constexpr (kReloadFactors) Forget(q);
      const Vec key = Cells::LoadCells(keys[t] + offset);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) sums[r][t] = Fma(Set(q[r]), key, sums[r][t]);
    }
    q += q_stride;
    offset += key_stride;
    ahead_offset += ahead_step;
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) Store(scores + tile_stride * t + 16 * r, sums[r][t]);
  }
}

// The row counts that have kernels: 8, 6, 4, 3, 2, 1, as far as the instruction set goes.
constexpr int FewerRows(int rows) { return rows > 4 ? rows - 2 : rows - 1; }

// Scores the first of `rows` rows, as many as one kernel takes, and returns how many these are.
template <class Cells, int R = kScoreRows>
uint32_t ScoreRows(uint32_t rows, const ScoreJob& job, const Tiles<Cells>& tiles) {
  if constexpr (R > 1) {
    if (rows < R) return ScoreRows<Cells, FewerRows(R)>(rows, job, tiles);
  }
  constexpr int kAtOnce = ScoreTilesAtOnce(R);
  uint32_t tile = 0;
  for (; tile + kAtOnce <= tiles.count; tile += kAtOnce) ScoreTiles<Cells, R, kAtOnce>(job, tiles, tile);
  for (; tile < tiles.count; ++tile) ScoreTiles<Cells, R, 1>(job, tiles, tile);
  return R;
}

// sums[row][vector] = fma(weights[row], value[vector], sums[row][vector]).
template <class Cells, int R, int D>
inline void AddValueRow(const float* weights, const typename Cells::Cell* value, Vec (&sums)[R][D]) {
  if constexpr (kReloadFactors) {
#pragma GCC unroll 16
    for (int i = 0; i < D; ++i) {
      Forget(weights);
      const Vec v = Cells::LoadCells(value + 16 * i);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) sums[r][i] = Fma(Set(weights[16 * r]), v, sums[r][i]);
    }
  } else {
    Vec v[D];
#pragma GCC unroll 16
    for (int i = 0; i < D; ++i) v[i] = Cells::LoadCells(value + 16 * i);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec weight = Set(weights[16 * r]);
#pragma GCC unroll 16
      for (int i = 0; i < D; ++i) sums[r][i] = Fma(weight, v[i], sums[r][i]);
    }
  }
}

// D vectors of dimensions from first_dim on.
template <class Cells, int R, int D>
[[gnu::noinline]] void SumValueVecs(const ValueJob& job, const Tiles<Cells>& tiles, uint32_t first_dim) {
  const uint64_t dims = job.dims, value_stride = tiles.value_stride;
  const uint64_t ahead_step = Cells::kInPlace ? job.ahead->step : 0;
  const uint32_t begin = job.begin, lanes = job.end - job.begin, tile_count = tiles.count;
  float* const out = job.out + first_dim;
  Vec sums[R][D];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < D; ++i) sums[r][i] = Load(out + dims * r + 16 * i);
  }
  for (uint32_t tile = 0; tile < tile_count; ++tile) {
    const float* decay = job.decay + uint64_t{job.decay_stride} * tile;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec factor = Set(decay[r]);
#pragma GCC unroll 16
      for (int i = 0; i < D; ++i) sums[r][i] = Mul(sums[r][i], factor);
    }
    const float* weights = job.weights + uint64_t{job.tile_stride} * tile + begin;
    const typename Cells::Cell* value = tiles.values[tile] + begin * value_stride + job.first_dim + first_dim;
    const uint64_t ahead_row = job.first_dim + first_dim / 16;
    const std::byte* ahead = Cells::kInPlace ? job.ahead->from[tile] + ahead_row * ahead_step : nullptr;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      if constexpr (Cells::kInPlace) {
#pragma GCC unroll 16
        for (int i = 0; i < D; ++i) FetchToSecondLevel(ahead + i * ahead_step);
      }
      AddValueRow<Cells, R, D>(weights, value, sums);
      value += value_stride;
      if constexpr (Cells::kInPlace) ahead += dims / 16 * ahead_step;
      ++weights;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < D; ++i) Store(out + dims * r + 16 * i, sums[r][i]);
  }
}

// Sums values into the first of `rows` rows, as many as one kernel takes, and returns how many these are.
template <class Cells, int R = kValueRows>
uint32_t SumValueRows(uint32_t rows, const ValueJob& job, const Tiles<Cells>& tiles) {
  if constexpr (R > 1) {
    if (rows < R) return SumValueRows<Cells, FewerRows(R)>(rows, job, tiles);
  }
  constexpr int kAtOnce = ValueVecsAtOnce(R);
  uint32_t dim = 0;
  for (; dim + 16 * kAtOnce <= job.dims; dim += 16 * kAtOnce) SumValueVecs<Cells, R, kAtOnce>(job, tiles, dim);
  for (; dim < job.dims; dim += 16) SumValueVecs<Cells, R, 1>(job, tiles, dim);
  return R;
}

}  // namespace
