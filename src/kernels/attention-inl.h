// The attention kernels over the vector traits; see attention.h for the arithmetic.
// Threads:   pure.
// Ownership: none.
// Invariant: a query vector (one row and head) meets its tiles in ascending order, whichever vectors share its block.
// Cost:      K and V are converted once per block of query vectors.
//
// Included inside a namespace after simd-inl.h, maths-inl.h and attention_tile-inl.h.

namespace {

constexpr uint32_t kStateFloats = 4096;  // query vectors of a block times padded head_dim
constexpr uint32_t kMaxQueries = 64;     // query vectors of a block
constexpr uint32_t kScoreVecs = 256;     // query vectors times tiles of one job
constexpr uint32_t kCopiedTiles = 2;     // tiles converted to f32 at once

inline uint32_t RoundUp16(uint32_t n) { return (n + 15) & ~15u; }
inline uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Visible positions [begin, end).
struct Range {
  uint64_t begin = 0, end = 0;
};

inline Range VisibleTo(uint64_t position, uint32_t window) {
  return {window != 0 && position + 1 > window ? position + 1 - window : 0, position + 1};
}

// Query vectors of one KV head that are worked on together: vector i is head i % group of row i / group.
struct Block {
  const AttentionShape* shape;
  const QueryRun* run;
  uint32_t kv_head;
  uint32_t group;         // query heads per KV head
  uint32_t first, count;  // query vectors; count <= kMaxQueries
  uint32_t lanes;         // count, rounded up to 16
  uint32_t padded_dim;

  float q[kStateFloats];                        // [head_dim][count]
  float split_out[kStateFloats];                // [count][padded_dim]
  float total_out[kStateFloats];                // [count][padded_dim]
  float split_max[kMaxQueries], split_sum[kMaxQueries];
  float total_max[kMaxQueries], total_sum[kMaxQueries];
  float scores[kScoreVecs * 16];                // [tile][count][16]: scores, then weights
  float decay[kScoreVecs];                      // [tile][lanes]
  uint8_t lane_begin[kMaxQueries], lane_end[kMaxQueries];  // of a partly visible tile

  Range VisibleToQuery(uint32_t i) const {
    return VisibleTo(run->first_position + (first + i) / group, shape->window);
  }
  uint64_t QueryOffset(uint32_t i, uint64_t stride) const {
    const uint32_t query = first + i;
    return (query / group) * stride + uint64_t{kv_head * group + query % group} * shape->head_dim;
  }
};

// What stands for a maximum in differences.
inline Vec FiniteFloors(Vec max) { return Select(Equal(max, Set(-__builtin_inff())), Zero(), max); }

void StartBlock(Block& b) {
  const uint32_t dim = b.shape->head_dim;
  for (uint32_t i = 0; i < b.count; ++i) {
    const float* q = b.run->q + b.QueryOffset(i, b.run->q_stride);
    for (uint32_t d = 0; d < dim; ++d) b.q[d * b.count + i] = q[d];
  }
  for (uint32_t i = 0; i < b.count * b.padded_dim; i += 16) Store(b.total_out + i, Zero());
  for (uint32_t i = 0; i < b.lanes; i += 16) {
    Store(b.total_max + i, Set(-__builtin_inff()));
    Store(b.total_sum + i, Zero());
  }
}

void StartSplit(Block& b) {
  for (uint32_t i = 0; i < b.count * b.padded_dim; i += 16) Store(b.split_out + i, Zero());
  for (uint32_t i = 0; i < b.lanes; i += 16) {
    Store(b.split_max + i, Set(-__builtin_inff()));
    Store(b.split_sum + i, Zero());
  }
}

// Folds the split into the totals of query vectors [begin, end), those that see any of it.
void FoldSplit(Block& b, uint32_t begin, uint32_t end) {
  float total_factor[kMaxQueries], split_factor[kMaxQueries];
  for (uint32_t i = 0; i < b.lanes; i += 16) {
    const Vec old_max = Load(b.total_max + i), split_max = Load(b.split_max + i);
    const Vec max = Max(old_max, split_max);
    const Vec floor = FiniteFloors(max);
    const Vec a = ExpOfNonPositive(Sub(old_max, floor));
    const Vec c = ExpOfNonPositive(Sub(split_max, floor));
    const Vec old_sum = Load(b.total_sum + i);
    const Vec sum = Fma(old_sum, a, Mul(Load(b.split_sum + i), c));
    const Mask seen = LanesInRange(begin > i ? begin - i : 0, end > i ? end - i : 0);
    Store(b.total_max + i, Select(seen, max, old_max));
    Store(b.total_sum + i, Select(seen, sum, old_sum));
    Store(total_factor + i, a);
    Store(split_factor + i, c);
  }
  for (uint32_t i = begin; i < end; ++i) {
    const Vec a = Set(total_factor[i]), c = Set(split_factor[i]);
    float* total = b.total_out + i * b.padded_dim;
    const float* split = b.split_out + i * b.padded_dim;
    for (uint32_t d = 0; d < b.padded_dim; d += 16) Store(total + d, Fma(Load(total + d), a, Mul(Load(split + d), c)));
  }
}

void FinishBlock(const Block& b) {
  const uint32_t dim = b.shape->head_dim;
  for (uint32_t i = 0; i < b.count; ++i) {
    float* out = b.run->out + b.QueryOffset(i, b.run->out_stride);
    const Vec sum = Set(b.total_sum[i]);
    for (uint32_t d = 0; d < dim; d += 16) {
      const Vec y = PlainNan(Div(Load(b.total_out + i * b.padded_dim + d), sum));
      if (d + 16 <= dim) {
        Store(out + d, y);
      } else {
        StorePartial(out + d, dim - d, y);
      }
    }
  }
}

// Turns the scores of a job's tiles into weights and updates maxima, sums and decays.
void SoftmaxTiles(Block& b, uint32_t tiles, bool whole) {
  float max[kMaxQueries], sum[kMaxQueries];
  for (uint32_t i = b.count; i < b.lanes; ++i) max[i] = sum[i] = 0;
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    float* scores = b.scores + tile * b.count * 16;
    float* decay = b.decay + tile * b.lanes;
    for (uint32_t i = 0; i < b.count; ++i) {
      Vec s = Load(scores + 16 * i);
      if (!whole) {
        s = Select(LanesInRange(b.lane_begin[i], b.lane_end[i]), s, Set(-__builtin_inff()));
        Store(scores + 16 * i, s);
      }
      max[i] = ReduceMax(s);
    }
    for (uint32_t i = 0; i < b.lanes; i += 16) {
      const Vec old_max = Load(b.split_max + i);
      const Vec new_max = Max(old_max, Load(max + i));
      const Vec floor = FiniteFloors(new_max);
      Store(b.split_max + i, new_max);
      Store(max + i, floor);
      Store(decay + i, ExpOfNonPositive(Sub(old_max, floor)));
    }
    for (uint32_t i = 0; i < b.count; ++i) {
      const Vec p = ExpOfNonPositive(Sub(Load(scores + 16 * i), Set(max[i])));
      Store(scores + 16 * i, p);
      sum[i] = ReduceAdd(p);
    }
    for (uint32_t i = 0; i < b.lanes; i += 16) {
      Store(b.split_sum + i, Fma(Load(b.split_sum + i), Load(decay + i), Load(sum + i)));
    }
  }
}

// Adds the values of a job's tiles to query vectors [begin, end), which see the same lanes.
template <class Cells>
void SumValues(Block& b, const Tiles<Cells>& tiles, uint32_t begin, uint32_t end, ValueJob job) {
  job.tile_stride = b.count * 16;
  job.decay_stride = b.lanes;
  job.out_stride = b.padded_dim;
  for (uint32_t i = begin; i < end; i += kValueRows) {
    job.weights = b.scores + 16 * i;
    job.decay = b.decay + i;
    job.out = b.split_out + i * b.padded_dim;
    SumValueRows<Cells>(Least(end - i, kValueRows), job, tiles, b.padded_dim);
  }
}

// Runs tiles that all query vectors see whole, or one tile whose visible lanes stand in lane_begin and lane_end.
template <class Cells>
void RunTiles(Block& b, const Tiles<Cells>& tiles, bool whole) {
  ScoreJob job;
  job.q_stride = b.count;
  job.head_dim = b.shape->head_dim;
  job.tile_stride = b.count * 16;
  for (uint32_t i = 0; i < b.count; i += kScoreRows) {
    job.q = b.q + i;
    job.scores = b.scores + 16 * i;
    ScoreRows<Cells>(Least(b.count - i, kScoreRows), job, tiles);
  }
  SoftmaxTiles(b, tiles.count, whole);
  if (whole) return SumValues(b, tiles, 0, b.count, {});
  for (uint32_t i = 0, next = 0; i < b.count; i = next) {
    for (next = i + 1; next < b.count && b.lane_begin[next] == b.lane_begin[i] && b.lane_end[next] == b.lane_end[i];) ++next;
    if (b.lane_begin[i] == b.lane_end[i]) continue;
    SumValues(b, tiles, i, next, {.begin = b.lane_begin[i], .end = b.lane_end[i]});
  }
}

// The same through f32 copies of K and of V in `lanes`: padded value rows need it, several passes over K repay it.
template <class Cells>
void RunCopiedTiles(Block& b, const Tiles<Cells>& tiles, bool whole, Range lanes) {
  float keys[kCopiedTiles * kMaxHeadDim * 16], values[kCopiedTiles * 16 * kMaxHeadDim];
  const uint32_t dim = b.shape->head_dim;
  Tiles<F32Cells> copy;
  copy.count = tiles.count;
  copy.key_stride = 16;
  copy.value_stride = b.padded_dim;
  for (uint32_t tile = 0; tile < tiles.count; ++tile) {
    float* key = keys + tile * dim * 16;
    float* value = values + tile * 16 * b.padded_dim;
    copy.keys[tile] = key;
    copy.values[tile] = value;
    for (uint32_t d = 0; d < dim; ++d) Store(key + 16 * d, Cells::LoadCells(tiles.keys[tile] + d * tiles.key_stride));
    for (uint64_t lane = lanes.begin; lane < lanes.end; ++lane) {
      const auto* from = tiles.values[tile] + lane * tiles.value_stride;
      float* to = value + lane * b.padded_dim;
      uint32_t d = 0;
      for (; d + 16 <= dim; d += 16) Store(to + d, Cells::LoadCells(from + d));
      if (d == dim) continue;
      typename Cells::Cell last[16] = {};
      for (uint32_t i = 0; d + i < dim; ++i) last[i] = from[d + i];
      Store(to + d, Cells::LoadCells(last));
    }
  }
  RunTiles<F32Cells>(b, copy, whole);
}

template <class Cells>
void AddTile(Tiles<Cells>& tiles, const Block& b, const PageView& view, uint64_t position) {
  using Cell = typename Cells::Cell;
  const std::byte* block = BlockOf(view, position);
  const uint64_t token = position % view.block_tokens;
  const auto* keys = reinterpret_cast<const Cell*>(block + view.k_offset);
  const auto* values = reinterpret_cast<const Cell*>(block + view.v_offset);
  tiles.keys[tiles.count] = keys + uint64_t{b.kv_head} * view.k_dim * view.block_tokens + token;
  tiles.values[tiles.count] = values + (uint64_t{b.kv_head} * view.block_tokens + token) * view.v_dim;
  ++tiles.count;
}

// Whether every query vector of the block sees the whole tile at `position`.
inline bool SeenByAll(const Block& b, uint64_t position) {
  return b.VisibleToQuery(b.count - 1).begin <= position && b.VisibleToQuery(0).end >= position + kTile;
}

// The lanes of the tile at `position` that lie in `visible`; {0, 0} if none do.
inline Range LanesOf(Range visible, uint64_t position) {
  if (visible.begin >= position + kTile || visible.end <= position) return {0, 0};
  return {visible.begin > position ? visible.begin - position : 0,
          visible.end < position + kTile ? visible.end - position : kTile};
}

// Tiles from `begin` to `end`, which is in one split; each holds a position that some query vector sees.
template <class Cells>
void AttendTiles(Block& b, const PageView& view, uint64_t begin, uint64_t end) {
  const bool copy = b.padded_dim != b.shape->head_dim || (b.count > kScoreRows && sizeof(typename Cells::Cell) < 4);
  const uint32_t most = Least(copy ? kCopiedTiles : kTilesAtOnce, kScoreVecs / b.lanes);
  const Range seen_by_any = {b.VisibleToQuery(0).begin, b.VisibleToQuery(b.count - 1).end};
  Tiles<Cells> tiles;
  tiles.key_stride = view.block_tokens;
  tiles.value_stride = view.v_dim;
  for (uint64_t position = begin; position < end;) {
    const bool whole = SeenByAll(b, position);
    const Range lanes = LanesOf(seen_by_any, position);
    for (uint32_t i = 0; !whole && i < b.count; ++i) {
      const Range seen = LanesOf(b.VisibleToQuery(i), position);
      b.lane_begin[i] = static_cast<uint8_t>(seen.begin);
      b.lane_end[i] = static_cast<uint8_t>(seen.end);
    }
    tiles.count = 0;
    do {
      AddTile(tiles, b, view, position);
      position += kTile;
    } while (whole && tiles.count < most && position < end && SeenByAll(b, position));
    if (copy) {
      RunCopiedTiles(b, tiles, whole, lanes);
    } else {
      RunTiles(b, tiles, whole);
    }
  }
}

template <class Cells>
void AttendBlock(Block& b, const PageView& view) {
  StartBlock(b);
  const uint64_t begin = b.VisibleToQuery(0).begin, end = b.VisibleToQuery(b.count - 1).end;
  for (uint64_t split = begin / kSplit * kSplit; split < end; split += kSplit) {
    StartSplit(b);
    const uint64_t from = split > begin ? split : begin / kTile * kTile;
    AttendTiles<Cells>(b, view, from, split + kSplit < end ? split + kSplit : end);
    uint32_t first = 0, last = b.count;
    while (b.VisibleToQuery(first).end <= split) ++first;
    while (b.VisibleToQuery(last - 1).begin >= split + kSplit) --last;
    FoldSplit(b, first, last);
  }
  FinishBlock(b);
}

template <class Cells>
void AttendAs(const AttentionShape& shape, const QueryRun& run, uint32_t kv_head, const PageView& view) {
  Block b;
  b.shape = &shape;
  b.run = &run;
  b.kv_head = kv_head;
  b.group = shape.heads / shape.kv_heads;
  b.padded_dim = RoundUp16(shape.head_dim);
  const uint32_t queries = run.rows * b.group;
  const uint32_t most = Least(kMaxQueries, kStateFloats / b.padded_dim);
  const uint32_t blocks = (queries + most - 1) / most;
  for (uint32_t i = 0; i < blocks; ++i) {
    b.first = static_cast<uint32_t>(uint64_t{queries} * i / blocks);
    b.count = static_cast<uint32_t>(uint64_t{queries} * (i + 1) / blocks) - b.first;
    b.lanes = RoundUp16(b.count);
    AttendBlock<Cells>(b, view);
  }
}

void Attend(const AttentionShape& shape, const QueryRun& run, uint32_t kv_head, const PageView& view) {
  DcheckAttend(shape, run, kv_head, view);
  switch (view.type) {
    case KvType::kF32: return AttendAs<F32Cells>(shape, run, kv_head, view);
    case KvType::kF16: return AttendAs<F16Cells>(shape, run, kv_head, view);
    case KvType::kBF16: return AttendAs<Bf16Cells>(shape, run, kv_head, view);
  }
}

// Stores n elements `stride` cells apart.
template <class Cells>
inline void StoreRow(const float* from, uint32_t n, typename Cells::Cell* to, uint64_t stride) {
  for (uint32_t i = 0; i < n; i += 16) {
    const uint32_t count = Least(16, n - i);
    typename Cells::Cell cells[16];
    Cells::StoreCells(cells, PlainNan(count == 16 ? Load(from + i) : LoadPartial(from + i, count)));
    for (uint32_t j = 0; j < count; ++j) to[(i + j) * stride] = cells[j];
  }
}

template <class Cells>
void StoreKvAs(const float* k, const float* v, uint64_t position, const PageView& view) {
  std::byte* block = BlockOf(view, position);
  const uint64_t token = position % view.block_tokens;
  auto* keys = reinterpret_cast<typename Cells::Cell*>(block + view.k_offset);
  auto* values = reinterpret_cast<typename Cells::Cell*>(block + view.v_offset);
  for (uint64_t head = 0; head < view.kv_heads; ++head) {
    StoreRow<Cells>(k + head * view.k_dim, view.k_dim, keys + head * view.k_dim * view.block_tokens + token,
                    view.block_tokens);
    StoreRow<Cells>(v + head * view.v_dim, view.v_dim, values + (head * view.block_tokens + token) * view.v_dim, 1);
  }
}

void StoreKv(const float* k, const float* v, uint64_t position, const PageView& view) {
  switch (view.type) {
    case KvType::kF32: return StoreKvAs<F32Cells>(k, v, position, view);
    case KvType::kF16: return StoreKvAs<F16Cells>(k, v, position, view);
    case KvType::kBF16: return StoreKvAs<Bf16Cells>(k, v, position, view);
  }
}

constexpr AttentionKernels kAttention = {.store_kv = StoreKv, .attend = Attend};

}  // namespace
