// The attention kernels over the vector traits; see attention.h for the arithmetic.
// Threads:   pure.
// Ownership: none.
// Invariant: a query vector (one row and head) meets its tiles in ascending order, whichever vectors share its block.
// Cost:      K and V are converted once per block of query vectors.
//
// Included inside a namespace after attention_block-inl.h.

namespace {

constexpr uint32_t kCopiedTiles = 2;  // tiles converted to f32 at once
constexpr uint32_t kCopiedDims = 64;  // dimensions of them: the copies stay in the first-level cache

// K or V of some tiles, converted to f32.
struct Copies {
  float cells[kCopiedTiles][kCopiedDims * 16];
  Tiles<CopiedCells> tiles;
};

template <class Cells>
void CopyKeys(const Tiles<Cells>& tiles, uint32_t dim, uint32_t dims, Copies& copies) {
  copies.tiles.count = tiles.count;
  copies.tiles.key_stride = 16;
  for (uint32_t tile = 0; tile < tiles.count; ++tile) {
    const auto* from = tiles.keys[tile] + dim * tiles.key_stride;
    float* to = copies.cells[tile];
    copies.tiles.keys[tile] = to;
    for (uint32_t d = 0; d < dims; ++d) Store(to + 16 * d, Cells::LoadCells(from + d * tiles.key_stride));
  }
}

// The values of positions in `lanes`, rows padded with zeros to a multiple of 16.
template <class Cells>
void CopyValues(const Tiles<Cells>& tiles, uint32_t dim, uint32_t dims, Range lanes, Copies& copies) {
  const uint32_t padded = RoundUp16(dims);
  copies.tiles.count = tiles.count;
  copies.tiles.value_stride = padded;
  for (uint32_t tile = 0; tile < tiles.count; ++tile) {
    copies.tiles.values[tile] = copies.cells[tile];
    for (uint64_t lane = lanes.begin; lane < lanes.end; ++lane) {
      const auto* from = tiles.values[tile] + lane * tiles.value_stride + dim;
      float* to = copies.cells[tile] + lane * padded;
      uint32_t d = 0;
      for (; d + 16 <= dims; d += 16) Store(to + d, Cells::LoadCells(from + d));
      if (d == dims) continue;
      typename Cells::Cell last[16] = {};
      for (uint32_t i = 0; i < dims % 16; ++i) last[i] = from[d + i];
      Store(to + d, Cells::LoadCells(last));
    }
  }
}

// Scores of all query vectors over the dimensions [dim, dim + dims), which `tiles` begins with.
template <class Cells>
void ScoreDims(Block& b, const Tiles<Cells>& tiles, uint32_t dim, uint32_t dims, const Ahead* ahead) {
  ScoreJob job;
  job.q_stride = b.count;
  job.dims = dims;
  job.resume = dim > 0;
  job.tile_stride = b.count * 16;
  job.ahead = ahead;
  for (uint32_t i = 0; i < b.count;) {
    job.q = b.q + dim * b.count + i;
    job.scores = b.scores + 16 * i;
    i += ScoreRows<Cells>(b.count - i, job, tiles);
  }
}

// Adds the values of the part of the dimensions that starts at `dim`, which `tiles` begins with, to all query vectors.
template <class Cells>
void SumValueDims(Block& b, const Tiles<Cells>& tiles, uint32_t dim, bool whole, const Ahead* ahead) {
  ValueJob job;
  job.tile_stride = b.count * 16;
  job.decay_stride = b.count;
  job.dims = b.PartWidth(dim);
  job.ahead = ahead;
  for (uint32_t i = 0; i < b.count;) {
    uint32_t alike = b.count - i;  // vectors from i on that see the same lanes
    if (!whole) {
      job.begin = b.lane_begin[i];
      job.end = b.lane_end[i];
      for (alike = 1; i + alike < b.count; ++alike) {
        if (b.lane_begin[i + alike] != job.begin || b.lane_end[i + alike] != job.end) break;
      }
    }
    if (job.begin == job.end) {
      i += alike;
      continue;
    }
    job.weights = b.scores + 16 * i;
    job.decay = b.decay + i;
    job.out = b.split_out + dim * b.count + i * job.dims;
    i += SumValueRows<Cells>(alike, job, tiles);
  }
}

// Runs tiles that all query vectors see whole, or one tile of which they see the lanes in lane_begin and lane_end.
// `next` are the tiles that come after.
template <class Cells>
void RunTilesInPlace(Block& b, const Tiles<Cells>& tiles, const Tiles<Cells>& next, bool whole) {
  Ahead ahead;
  ahead.step = kTile * sizeof(typename Cells::Cell);
  for (uint32_t tile = 0; tile < tiles.count; ++tile) {
    ahead.from[tile] = reinterpret_cast<const std::byte*>(tiles.values[tile]);
  }
  ScoreDims(b, tiles, 0, b.shape->head_dim, &ahead);
  if (!whole) HideLanes(b);
  SoftmaxTiles(b, tiles.count);
  ahead.step = tiles.key_stride * sizeof(typename Cells::Cell);
  for (uint32_t tile = 0; tile < tiles.count; ++tile) {
    const auto* keys = tile < next.count ? next.keys[tile] : tiles.keys[tile];
    ahead.from[tile] = reinterpret_cast<const std::byte*>(keys);
  }
  SumValueDims(b, tiles, 0, whole, &ahead);
}

// The same through copies of K, and of V in `lanes`, which are all that any query vector sees.
template <class Cells>
void RunCopiedTiles(Block& b, const Tiles<Cells>& tiles, bool whole, Range lanes) {
  Copies copies;
  for (uint32_t dim = 0; dim < b.shape->head_dim; dim += kCopiedDims) {
    const uint32_t dims = Least(kCopiedDims, b.shape->head_dim - dim);
    CopyKeys(tiles, dim, dims, copies);
    ScoreDims(b, copies.tiles, dim, dims, nullptr);
  }
  if (!whole) HideLanes(b);
  SoftmaxTiles(b, tiles.count);
  for (uint32_t dim = 0; dim < b.shape->head_dim; dim += kCopiedDims) {
    CopyValues(tiles, dim, Least(kCopiedDims, b.shape->head_dim - dim), lanes, copies);
    SumValueDims(b, copies.tiles, dim, whole, nullptr);
  }
}

// The tiles from `position` to `end`, as many as one job takes.
template <class Cells>
void FindTiles(const Block& b, const PageView& view, uint64_t position, uint64_t end, Tiles<Cells>& tiles) {
  const uint32_t most = b.copied ? kCopiedTiles : Least(kTilesAtOnce, kScoreVecs / b.count);
  for (tiles.count = 0; tiles.count < most && position < end; ++tiles.count, position += kTile) {
    const std::byte* block = BlockOf(view, position);
    const uint64_t token = position % view.block_tokens;
    const auto* keys = reinterpret_cast<const typename Cells::Cell*>(block + view.k_offset);
    const auto* values = reinterpret_cast<const typename Cells::Cell*>(block + view.v_offset);
    tiles.keys[tiles.count] = keys + uint64_t{b.kv_head} * view.k_dim * view.block_tokens + token;
    tiles.values[tiles.count] = values + (uint64_t{b.kv_head} * view.block_tokens + token) * view.v_dim;
  }
}

// The lanes of the tile at `position` that lie in `seen`; {0, 0} if none do.
inline Range LanesOf(Range seen, uint64_t position) {
  if (seen.begin >= position + kTile || seen.end <= position) return {0, 0};
  return {seen.begin > position ? seen.begin - position : 0, seen.end < position + kTile ? seen.end - position : kTile};
}

template <class Cells>
void AttendBlock(Block& b, const PageView& view) {
  StartBlock(b);
  const Range any = b.SeenByAny(), all = b.SeenByAll();
  Tiles<Cells> lists[2];
  for (Tiles<Cells>& list : lists) {
    list.key_stride = view.block_tokens;
    list.value_stride = view.v_dim;
  }
  Tiles<Cells>*tiles = &lists[0], *next = &lists[1];
  uint64_t position = any.begin / kTile * kTile;
  FindTiles(b, view, position, any.end, *tiles);
  while (position < any.end) {
    const uint64_t split = position / kSplit * kSplit;
    StartSplit(b);
    while (position < any.end && position < split + kSplit) {
      const uint64_t whole_end = all.end < split + kSplit ? all.end : split + kSplit;
      const bool whole = position >= all.begin && position + kTile <= whole_end;
      const uint64_t most = whole ? (whole_end - position) / kTile : 1;
      if (tiles->count > most) tiles->count = static_cast<uint32_t>(most);
      for (uint32_t i = 0; !whole && i < b.count; ++i) {
        const Range lanes = LanesOf(b.SeenBy(i), position);
        b.lane_begin[i] = static_cast<uint8_t>(lanes.begin);
        b.lane_end[i] = static_cast<uint8_t>(lanes.end);
      }
      const uint64_t after = position + uint64_t{tiles->count} * kTile;
      FindTiles(b, view, after, any.end, *next);
      if (b.copied) {
        RunCopiedTiles(b, *tiles, whole, LanesOf(any, position));
      } else {
        RunTilesInPlace(b, *tiles, *next, whole);
      }
      position = after;
      Tiles<Cells>* const done = tiles;
      tiles = next;
      next = done;
    }
    FoldSplit(b, split);
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
    // Copies of K and V pay when several passes read them, and give padded value rows.
    b.copied = b.padded_dim != shape.head_dim || b.count > kScoreRows;
    b.part_dims = b.copied ? kCopiedDims : shape.head_dim;
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
