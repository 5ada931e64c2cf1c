// The running softmax of a block of query vectors: its state, its update by a job's scores, and the fold of a split.
// Threads:   pure.
// Ownership: none; a Block stands on the caller's stack.
// Invariant: see attention.h for the arithmetic; a query vector's state does not depend on its neighbours.
// Cost:      two exponentials per 16 scores' worth of reductions; no allocation.
//
// Included inside a namespace after simd-inl.h, maths-inl.h and attention_tile-inl.h.

namespace {

constexpr uint32_t kStateFloats = 8192;  // most query vectors of a block times padded head_dim
constexpr uint32_t kMaxQueries = 64;     // most query vectors of a block
constexpr uint32_t kScoreVecs = 256;     // most query vectors times tiles of a job

inline uint32_t RoundUp16(uint32_t n) { return (n + 15) & ~15u; }
inline uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Visible positions [begin, end).
struct Range {
  uint64_t begin = 0, end = 0;
};

// Query vectors of one KV head that are worked on together: vector i is head i % group of row i / group, rows counted
// from first / group. Arrays of one float per vector have room for whole sixteens.
struct Block {
  const AttentionShape* shape;
  const QueryRun* run;
  uint32_t kv_head;
  uint32_t group;         // query heads per KV head
  uint32_t first, count;  // query vectors
  uint32_t padded_dim;    // head_dim, rounded up to 16
  bool copied;            // K and V are converted to f32 copies first
  uint32_t part_dims;     // dimensions worked on at a time

  float q[kStateFloats];          // [head_dim][count]
  float split_out[kStateFloats];  // [padded_dim/part_dims][count][part_dims], the last part narrower
  float total_out[kStateFloats];  // likewise
  float split_max[kMaxQueries], split_sum[kMaxQueries];
  float total_max[kMaxQueries], total_sum[kMaxQueries];
  float scores[(kScoreVecs + 16) * 16];                    // [tile][count][16]: scores, then weights
  float decay[kScoreVecs + 16];                            // [tile][count]
  uint8_t lane_begin[kMaxQueries], lane_end[kMaxQueries];  // of a partly visible tile

  Range SeenBy(uint32_t i) const {
    const uint64_t end = run->first_position + (first + i) / group + 1;
    return {shape->window != 0 && end > shape->window ? end - shape->window : 0, end};
  }
  Range SeenByAny() const { return {SeenBy(0).begin, SeenBy(count - 1).end}; }
  Range SeenByAll() const { return {SeenBy(count - 1).begin, SeenBy(0).end}; }
  // Width of the part that starts at `dim`.
  uint32_t PartWidth(uint32_t dim) const { return Least(part_dims, padded_dim - dim); }
  // Where query vector i lies in q or out.
  uint64_t OffsetOf(uint32_t i, uint64_t stride) const {
    const uint32_t query = first + i;
    return (query / group) * stride + uint64_t{kv_head * group + query % group} * shape->head_dim;
  }
};

inline Vec PlainNan(Vec a) { return Select(Equal(a, a), a, FromBits(ISet(0x7fc00000))); }

// What stands for a maximum in differences.
inline Vec FiniteFloors(Vec max) { return Select(Equal(max, Set(-__builtin_inff())), Zero(), max); }

inline void ClearState(const Block& b, float* max, float* sum, float* out) {
  for (uint32_t i = 0; i < b.count; i += 16) {
    Store(max + i, Set(-__builtin_inff()));
    Store(sum + i, Zero());
  }
  for (uint32_t i = 0; i < b.count * b.padded_dim; i += 16) Store(out + i, Zero());
}

void StartBlock(Block& b) {
  for (uint32_t i = 0; i < b.count; ++i) {
    const float* q = b.run->q + b.OffsetOf(i, b.run->q_stride);
    for (uint32_t d = 0; d < b.shape->head_dim; ++d) b.q[d * b.count + i] = q[d];
  }
  ClearState(b, b.total_max, b.total_sum, b.total_out);
}

void StartSplit(Block& b) { ClearState(b, b.split_max, b.split_sum, b.split_out); }

// Hides the lanes of a partly visible tile that its query vectors do not see.
void HideLanes(Block& b) {
  for (uint32_t i = 0; i < b.count; ++i) {
    const Mask seen = LanesInRange(b.lane_begin[i], b.lane_end[i]);
    Store(b.scores + 16 * i, Select(seen, Load(b.scores + 16 * i), Set(-__builtin_inff())));
  }
}

// Turns the scores of a job's tiles into weights and updates maxima, sums and decays. All arrays are [tile][count];
// loads and stores of sixteen run over the end of a tile into the next one, which is written later, or into the slack.
void SoftmaxTiles(Block& b, uint32_t tiles) {
  float maxima[kScoreVecs + 16], floors[kScoreVecs + 16], sums[kScoreVecs + 16];
  const uint32_t vecs = tiles * b.count;
  for (uint32_t i = 0; i < vecs; i += 16) Store(maxima + i, ReduceMaxEach(b.scores + 16 * i));
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    for (uint32_t i = 0; i < b.count; i += 16) {
      const uint32_t at = tile * b.count + i;
      const Vec old_max = Load(b.split_max + i);
      const Vec new_max = Max(old_max, Load(maxima + at));
      const Vec floor = FiniteFloors(new_max);
      Store(b.split_max + i, new_max);
      Store(floors + at, floor);
      Store(b.decay + at, Sub(old_max, floor));
    }
  }
  for (uint32_t i = 0; i < vecs; i += 16) Store(b.decay + i, ExpOfNonPositive(Load(b.decay + i)));
  for (uint32_t i = 0; i < vecs; ++i) {
    Store(b.scores + 16 * i, ExpOfNonPositive(Sub(Load(b.scores + 16 * i), Set(floors[i]))));
  }
  for (uint32_t i = 0; i < vecs; i += 16) Store(sums + i, ReduceAddEach(b.scores + 16 * i));
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    for (uint32_t i = 0; i < b.count; i += 16) {
      const uint32_t at = tile * b.count + i;
      Store(b.split_sum + i, Fma(Load(b.split_sum + i), Load(b.decay + at), Load(sums + at)));
    }
  }
}

// Folds the split that starts at `split` into the totals of the query vectors that see any of it.
void FoldSplit(Block& b, uint64_t split) {
  uint32_t begin = 0, end = b.count;
  while (b.SeenBy(begin).end <= split) ++begin;
  while (b.SeenBy(end - 1).begin >= split + kSplit) --end;
  float total_factor[kMaxQueries], split_factor[kMaxQueries];
  for (uint32_t i = 0; i < b.count; i += 16) {
    const Vec old_max = Load(b.total_max + i), old_sum = Load(b.total_sum + i), split_max = Load(b.split_max + i);
    const Vec max = Max(old_max, split_max);
    const Vec floor = FiniteFloors(max);
    const Vec a = ExpOfNonPositive(Sub(old_max, floor));
    const Vec c = ExpOfNonPositive(Sub(split_max, floor));
    const Vec sum = Fma(old_sum, a, Mul(Load(b.split_sum + i), c));
    const Mask seen = LanesInRange(begin > i ? begin - i : 0, end > i ? end - i : 0);
    Store(b.total_max + i, Select(seen, max, old_max));
    Store(b.total_sum + i, Select(seen, sum, old_sum));
    Store(total_factor + i, a);
    Store(split_factor + i, c);
  }
  for (uint32_t dim = 0; dim < b.padded_dim; dim += b.part_dims) {
    const uint32_t width = b.PartWidth(dim);
    for (uint32_t i = begin; i < end; ++i) {
      const Vec a = Set(total_factor[i]), c = Set(split_factor[i]);
      float* total = b.total_out + dim * b.count + i * width;
      const float* split_part = b.split_out + dim * b.count + i * width;
      for (uint32_t d = 0; d < width; d += 16) {
        Store(total + d, Fma(Load(total + d), a, Mul(Load(split_part + d), c)));
      }
    }
  }
}

void FinishBlock(const Block& b) {
  const uint32_t head_dim = b.shape->head_dim;
  for (uint32_t i = 0; i < b.count; ++i) {
    float* out = b.run->out + b.OffsetOf(i, b.run->out_stride);
    const Vec sum = Set(b.total_sum[i]);
    for (uint32_t dim = 0; dim < b.padded_dim; dim += b.part_dims) {
      const uint32_t width = b.PartWidth(dim);
      const float* total = b.total_out + dim * b.count + i * width;
      for (uint32_t d = 0; d < width; d += 16) {
        const Vec y = PlainNan(Div(Load(total + d), sum));
        const uint32_t rest = head_dim - dim - d;
        if (rest >= 16) {
          Store(out + dim + d, y);
        } else {
          StorePartial(out + dim + d, rest, y);
        }
      }
    }
  }
}

}  // namespace
