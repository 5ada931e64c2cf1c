// The attention kernels over the vector traits; see attention.h for the arithmetic.
// Threads:   pure.
// Ownership: none.
// Invariant: a query vector (one row and head) meets its tiles in ascending order, whichever vectors share its block.
// Cost:      K and V are read, and converted, once per family of query vectors that share them.
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

// Fetches K and V of `next`, which come after, meanwhile.
template <class Cells>
void CopyKeys(const Tiles<Cells>& tiles, const Tiles<Cells>& next, uint32_t dim, uint32_t dims, Copies& copies) {
  copies.tiles.count = tiles.count;
  copies.tiles.key_stride = 16;
  for (uint32_t tile = 0; tile < tiles.count; ++tile) {
    const auto* from = tiles.keys[tile] + dim * tiles.key_stride;
    float* to = copies.cells[tile];
    copies.tiles.keys[tile] = to;
    const auto* next_keys = tile < next.count ? next.keys[tile] + dim * next.key_stride : from;
    const auto* next_values = tile < next.count ? next.values[tile] + dim * kTile : from;
    for (uint32_t d = 0; d < dims; ++d) {
      FetchToSecondLevel(reinterpret_cast<const std::byte*>(next_keys + d * tiles.key_stride));
      FetchToSecondLevel(reinterpret_cast<const std::byte*>(next_values + d * kTile));
      Store(to + 16 * d, Cells::LoadCells(from + d * tiles.key_stride));
    }
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

// Some dimensions of a job.
struct Part {
  uint32_t dim = 0;
  uint32_t dims = 0;
  uint32_t tiles_dim = 0;
  const Ahead* ahead = nullptr;  // for tiles in place only
};

// Scores of the query vectors over the dimensions [dim, dim + dims), which `tiles` begins with.
template <class Cells>
void ScoreDims(Block& b, Vectors v, const Tiles<Cells>& tiles, Part part) {
  ScoreJob job;
  job.q_stride = b.count;
  job.dims = part.dims;
  job.resume = part.dim > 0;
  job.tile_stride = v.count * 16;
  job.ahead = part.ahead;
  for (uint32_t i = 0; i < v.count;) {
    job.q = b.q + part.dim * b.count + v.first + i;
    job.scores = b.scores + 16 * i;
    i += ScoreRows<Cells>(v.count - i, job, tiles);
  }
}

// Adds the values of the dimensions [dim, dim + dims), which begin at tiles_dim in `tiles`, to the query vectors.
template <class Cells>
void SumValueDims(Block& b, Vectors v, const Tiles<Cells>& tiles, bool whole, Part part) {
  ValueJob job;
  job.tile_stride = v.count * 16;
  job.decay_stride = v.count;
  job.first_dim = part.tiles_dim;
  job.dims = part.dims;
  job.ahead = part.ahead;
  for (uint32_t i = 0; i < v.count;) {
    uint32_t alike = v.count - i;  // vectors from i on that see the same lanes
    if (!whole) {
      job.begin = b.lane_begin[i];
      job.end = b.lane_end[i];
      for (alike = 1; i + alike < v.count; ++alike) {
        if (b.lane_begin[i + alike] != job.begin || b.lane_end[i + alike] != job.end) break;
      }
    }
    if (job.begin == job.end) {
      i += alike;
      continue;
    }
    job.weights = b.scores + 16 * i;
    job.decay = b.decay + i;
    job.out = b.split_out + part.dim * b.count + (v.first + i) * job.dims;
    i += SumValueRows<Cells>(alike, job, tiles);
  }
}

// Runs tiles that all query vectors see whole, or one tile of which they see the lanes in lane_begin and lane_end.
// `next` are the tiles that come after.
template <class Cells>
void RunTilesInPlace(Block& b, Vectors v, const Tiles<Cells>& tiles, const Tiles<Cells>& next, bool whole) {
  Ahead ahead;
  ahead.step = kTile * sizeof(typename Cells::Cell);
  for (uint32_t tile = 0; tile < tiles.count; ++tile) {
    ahead.from[tile] = reinterpret_cast<const std::byte*>(tiles.values[tile]);
  }
  ScoreDims(b, v, tiles, {.dims = b.shape->head_dim, .ahead = &ahead});
  if (!whole) HideLanes(b, v.count);
  SoftmaxTiles(b, v, tiles.count);
  ahead.step = tiles.key_stride * sizeof(typename Cells::Cell);
  for (uint32_t tile = 0; tile < tiles.count; ++tile) {
    const auto* keys = tile < next.count ? next.keys[tile] : tiles.keys[tile];
    ahead.from[tile] = reinterpret_cast<const std::byte*>(keys);
  }
  for (uint32_t dim = 0; dim < b.padded_dim; dim += b.part_dims) {
    SumValueDims(b, v, tiles, whole, {.dim = dim, .dims = b.PartWidth(dim), .tiles_dim = dim, .ahead = &ahead});
  }
}

// The same through copies of K, and of V in `lanes`, which are all that any query vector sees.
template <class Cells>
void RunCopiedTiles(Block& b, Vectors v, const Tiles<Cells>& tiles, const Tiles<Cells>& next, bool whole, Range lanes) {
  Copies copies;
  for (uint32_t dim = 0; dim < b.shape->head_dim; dim += kCopiedDims) {
    const uint32_t dims = Least(kCopiedDims, b.shape->head_dim - dim);
    CopyKeys(tiles, next, dim, dims, copies);
    ScoreDims(b, v, copies.tiles, {.dim = dim, .dims = dims});
  }
  if (!whole) HideLanes(b, v.count);
  SoftmaxTiles(b, v, tiles.count);
  for (uint32_t dim = 0; dim < b.shape->head_dim; dim += kCopiedDims) {
    CopyValues(tiles, dim, Least(kCopiedDims, b.shape->head_dim - dim), lanes, copies);
    SumValueDims(b, v, copies.tiles, whole, {.dim = dim, .dims = b.PartWidth(dim)});
  }
}

// Copies of K and V pay when several passes read them, and give padded value rows.
inline bool CopiesFor(const Block& b, uint32_t count) {
  return b.padded_dim != b.shape->head_dim || count > kScoreRows;
}

// The tiles from `position` to `end`, at most `most`.
template <class Cells>
void FindTiles(const Block& b, const PageView& view, Range positions, uint32_t most, Tiles<Cells>& tiles) {
  uint64_t position = positions.begin;
  for (tiles.count = 0; tiles.count < most && position < positions.end; ++tiles.count, position += kTile) {
    const std::byte* block = BlockOf(view, position);
    const uint64_t token = position % view.block_tokens;
    const auto* keys = reinterpret_cast<const typename Cells::Cell*>(block + view.k_offset);
    const auto* values = reinterpret_cast<const typename Cells::Cell*>(block + view.v_offset);
    tiles.keys[tiles.count] = keys + uint64_t{b.job->kv_head} * view.k_dim * view.block_tokens + token;
    tiles.values[tiles.count] = values + (uint64_t{b.job->kv_head} * view.block_tokens + token) * view.v_dim;
  }
}

// The lanes of the tile at `position` that lie in `seen`; {0, 0} if none do.
inline Range LanesOf(Range seen, uint64_t position) {
  if (seen.begin >= position + kTile || seen.end <= position) return {0, 0};
  return {seen.begin > position ? seen.begin - position : 0, seen.end < position + kTile ? seen.end - position : kTile};
}

// Runs the tiles of `positions` for query vectors that all find them in the pages of `view`, and ends the splits that
// end there. Not inline: RunFamily, which calls itself, keeps a small frame.
template <class Cells>
[[gnu::noinline]] void RunTiles(Block& b, Vectors v, const PageView& view, Range positions) {
  const Range any = b.SeenByAny(v), all = b.SeenByAll(v);
  const bool copied = CopiesFor(b, v.count);
  const uint32_t at_once = copied ? kCopiedTiles : Least(kTilesAtOnce, kScoreVecs / v.count);
  uint64_t position = Later(positions.begin, any.begin) / kTile * kTile;
  Tiles<Cells> lists[2];
  for (Tiles<Cells>& list : lists) {
    list.key_stride = view.block_tokens;
    list.value_stride = view.v_dim;
  }
  Tiles<Cells>*tiles = &lists[0], *next = &lists[1];
  FindTiles(b, view, {position, positions.end}, at_once, *tiles);
  while (position < positions.end) {
    const uint64_t split_end = (position / kSplit + 1) * kSplit;
    const uint64_t whole_end = Earlier(Earlier(all.end, positions.end), split_end);
    const bool whole = position >= all.begin && position + kTile <= whole_end;
    const uint64_t most = whole ? (whole_end - position) / kTile : 1;
    if (tiles->count > most) tiles->count = static_cast<uint32_t>(most);
    for (uint32_t i = 0; !whole && i < v.count; ++i) {
      const Range lanes = LanesOf(b.seen[v.first + i], position);
      b.lane_begin[i] = static_cast<uint8_t>(lanes.begin);
      b.lane_end[i] = static_cast<uint8_t>(lanes.end);
    }
    const uint64_t after = position + uint64_t{tiles->count} * kTile;
    FindTiles(b, view, {after, positions.end}, at_once, *next);
    if (copied) {
      RunCopiedTiles(b, v, *tiles, *next, whole, LanesOf(any, position));
    } else {
      RunTilesInPlace(b, v, *tiles, *next, whole);
    }
    position = after;
    Tiles<Cells>* const done = tiles;
    tiles = next;
    next = done;
    if (position == split_end && position <= positions.end) EndSplit(b, v, position / kSplit - 1);
  }
}

// Runs query vectors, which have all run up to `begin`, through the tiles that they share and then, family by family of
// those that share more, through the rest.
template <class Cells>
void RunFamily(Block& b, Vectors v, PageView& view, uint64_t begin) {
  uint64_t shared = UINT64_MAX;
  for (uint32_t i = 1; i < v.count; ++i) shared = Earlier(shared, b.shared[v.first + i]);
  const uint64_t end_position = b.job->end_split < UINT64_MAX / kSplit ? b.job->end_split * kSplit : UINT64_MAX;
  const uint64_t last = b.SeenByAny(v).end;
  const uint64_t end = Later(begin, Earlier(Earlier(shared, last), end_position));
  view.pages = b.run[v.first]->pages;
  RunTiles<Cells>(b, v, view, {begin, end});
  if (last <= shared) {
    if (end % kSplit != 0) EndSplit(b, v, end / kSplit);
    return;
  }
  for (uint32_t done = 0; done < v.count;) {
    Vectors family{v.first + done, 1};
    while (done + family.count < v.count && b.shared[family.first + family.count] > shared) ++family.count;
    RunFamily<Cells>(b, family, view, end);
    done += family.count;
  }
}

template <class Cells>
void AttendAs(const AttentionShape& shape, const AttendJob& job, PageView view) {
  Block b;
  b.shape = &shape;
  b.job = &job;
  b.padded_dim = RoundUp16(shape.head_dim);
  uint32_t queries = 0;
  for (uint32_t i = 0; i < job.run_count; ++i) queries += job.runs[i].rows * (shape.heads / shape.kv_heads);
  const uint32_t blocks = (queries + MostQueries(shape.head_dim) - 1) / MostQueries(shape.head_dim);
  for (uint32_t i = 0; i < blocks; ++i) {
    const auto first = static_cast<uint32_t>(uint64_t{queries} * i / blocks);
    b.count = static_cast<uint32_t>(uint64_t{queries} * (i + 1) / blocks) - first;
    b.part_dims = CopiesFor(b, b.count) ? kCopiedDims : shape.head_dim;
    StartBlock(b, first);
    RunFamily<Cells>(b, {0, b.count}, view, job.first_split * kSplit);
    FinishBlock(b);
  }
}

void Attend(const AttentionShape& shape, const AttendJob& job, const PageView& view) {
  DcheckAttend(shape, job, view);
  switch (view.type) {
    case KvType::kF32: return AttendAs<F32Cells>(shape, job, view);
    case KvType::kF16: return AttendAs<F16Cells>(shape, job, view);
    case KvType::kBF16: return AttendAs<Bf16Cells>(shape, job, view);
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

constexpr AttentionKernels kAttention = {.store_kv = StoreKv, .attend = Attend, .fold_splits = FoldSplits};

}  // namespace
