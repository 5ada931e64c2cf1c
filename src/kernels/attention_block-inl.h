// The running softmax of a block of query vectors: its state, its update by a job's scores, and the end of a split.
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

inline uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }
inline uint64_t Earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }
inline uint64_t Later(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Positions [begin, end).
struct Range {
  uint64_t begin = 0, end = 0;
};

// Query vectors of a block that are worked on together.
struct Vectors {
  uint32_t first, count;
};

// Consecutive query vectors of a job: head by head of each row, row by row of each run. Their splits stand clear
// between the end of one and the start of the next. Arrays of one float per vector have room for whole sixteens.
struct Block {
  const AttentionShape* shape;
  const AttendJob* job;
  uint32_t count;       // query vectors
  uint32_t padded_dim;  // head_dim, rounded up to 16
  uint32_t part_dims;   // dimensions worked on at a time

  const QueryRun* run[kMaxQueries];
  float* out[kMaxQueries];        // where the result goes, or with split_states its splits, from first_split on
  Range seen[kMaxQueries];        // visible positions
  uint64_t shared[kMaxQueries];   // positions whose blocks are those of the vector before it
  float q[kStateFloats];          // [head_dim][count]
  float split_out[kStateFloats];  // [padded_dim/part_dims][count][part_dims], the last part narrower
  float total_out[kStateFloats];  // likewise
  float split_max[kMaxQueries + 16], split_sum[kMaxQueries + 16];
  float total_max[kMaxQueries + 16], total_sum[kMaxQueries + 16];
  float scores[(kScoreVecs + 16) * 16];                    // [tile][vectors of the job][16]: scores, then weights
  float decay[kScoreVecs + 16];                            // [tile][vectors of the job]
  uint8_t lane_begin[kMaxQueries], lane_end[kMaxQueries];  // of a partly visible tile, by vector of the job

  Range SeenByAny(Vectors v) const {
    Range any = seen[v.first];
    for (uint32_t i = v.first + 1; i < v.first + v.count; ++i) {
      any = {Earlier(any.begin, seen[i].begin), Later(any.end, seen[i].end)};
    }
    return any;
  }
  Range SeenByAll(Vectors v) const {
    Range all = seen[v.first];
    for (uint32_t i = v.first + 1; i < v.first + v.count; ++i) {
      all = {Later(all.begin, seen[i].begin), Earlier(all.end, seen[i].end)};
    }
    return all;
  }
  // Width of the part that starts at `dim`.
  uint32_t PartWidth(uint32_t dim) const { return Least(part_dims, padded_dim - dim); }
};

inline Vec PlainNan(Vec a) { return Select(Equal(a, a), a, FromBits(ISet(0x7fc00000))); }

// What stands for a maximum in differences.
inline Vec FiniteFloors(Vec max) { return Select(Equal(max, Set(-__builtin_inff())), Zero(), max); }

// Stores the first of `left` lanes.
inline void StoreUpTo(float* p, uint32_t left, Vec a) {
  if (left >= 16) {
    Store(p, a);
  } else {
    StorePartial(p, left, a);
  }
}

void ClearState(const Block& b, Vectors v, float* max, float* sum, float* out) {
  for (uint32_t i = 0; i < v.count; i += 16) {
    StoreUpTo(max + v.first + i, v.count - i, Set(-__builtin_inff()));
    StoreUpTo(sum + v.first + i, v.count - i, Zero());
  }
  for (uint32_t dim = 0; dim < b.padded_dim; dim += b.part_dims) {
    const uint32_t width = b.PartWidth(dim);
    float* part = out + dim * b.count + v.first * width;
    for (uint32_t i = 0; i < v.count * width; i += 16) Store(part + i, Zero());
  }
}

// Query vector i becomes head `head` of row `row` of the run.
void PlaceVector(Block& b, uint32_t i, const QueryRun& run, uint32_t row, uint32_t head) {
  const AttentionShape& shape = *b.shape;
  const uint64_t position = run.first_position + row;
  const float* q = run.q + row * run.q_stride + uint64_t{head} * shape.head_dim;
  for (uint32_t d = 0; d < shape.head_dim; ++d) b.q[d * b.count + i] = q[d];
  b.run[i] = &run;
  b.seen[i] = {FirstSeen(shape, position), position + 1};
  if (run.split_states == nullptr) {
    b.out[i] = run.out + row * run.out_stride + uint64_t{head} * shape.head_dim;
  } else {
    const uint64_t states = (uint64_t{row} * shape.heads + head) * SplitsOf(shape, run);
    b.out[i] = run.split_states + states * SplitStateFloats(shape.head_dim);
  }
  if (i > 0) b.shared[i] = b.run[i - 1] == &run ? UINT64_MAX : run.shared_positions;
}

// The block begins with query vector `first` of the job.
void StartBlock(Block& b, uint32_t first) {
  const uint32_t group = b.shape->heads / b.shape->kv_heads;
  const QueryRun* run = b.job->runs;
  for (; first >= run->rows * group; ++run) first -= run->rows * group;
  for (uint32_t i = 0; i < b.count; ++i, ++first) {
    if (first == run->rows * group) {
      ++run;
      first = 0;
    }
    PlaceVector(b, i, *run, first / group, b.job->kv_head * group + first % group);
  }
  const Vectors all{0, b.count};
  ClearState(b, all, b.total_max, b.total_sum, b.total_out);
  ClearState(b, all, b.split_max, b.split_sum, b.split_out);
}

// Hides the lanes of a partly visible tile that its query vectors do not see.
void HideLanes(Block& b, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const Mask seen = LanesInRange(b.lane_begin[i], b.lane_end[i]);
    Store(b.scores + 16 * i, Select(seen, Load(b.scores + 16 * i), Set(-__builtin_inff())));
  }
}

// Turns the scores of a job's tiles into weights and updates maxima, sums and decays. The job's arrays are
// [tile][count]; loads and stores of sixteen run over the end of a tile into the next one, which is written later, or
// into the slack.
void SoftmaxTiles(Block& b, Vectors v, uint32_t tiles) {
  float maxima[kScoreVecs + 16], floors[kScoreVecs + 16], sums[kScoreVecs + 16];
  float* const split_max = b.split_max + v.first;
  float* const split_sum = b.split_sum + v.first;
  const uint32_t vecs = tiles * v.count;
  for (uint32_t i = 0; i < vecs; i += 16) Store(maxima + i, ReduceMaxEach(b.scores + 16 * i));
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    for (uint32_t i = 0; i < v.count; i += 16) {
      const uint32_t at = tile * v.count + i;
      const Vec old_max = Load(split_max + i);
      const Vec new_max = Max(old_max, Load(maxima + at));
      const Vec floor = FiniteFloors(new_max);
      StoreUpTo(split_max + i, v.count - i, new_max);
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
    for (uint32_t i = 0; i < v.count; i += 16) {
      const uint32_t at = tile * v.count + i;
      const Vec sum = Fma(Load(split_sum + i), Load(b.decay + at), Load(sums + at));
      StoreUpTo(split_sum + i, v.count - i, sum);
    }
  }
}

// What a total (max, sum) becomes with a split added, and the factors of their outs.
struct Fold {
  Vec max, sum, total_factor, split_factor;
};
inline Fold FoldOf(Vec total_max, Vec total_sum, Vec split_max, Vec split_sum) {
  Fold fold;
  fold.max = Max(total_max, split_max);
  const Vec floor = FiniteFloors(fold.max);
  fold.total_factor = ExpOfNonPositive(Sub(total_max, floor));
  fold.split_factor = ExpOfNonPositive(Sub(split_max, floor));
  fold.sum = Fma(total_sum, fold.total_factor, Mul(split_sum, fold.split_factor));
  return fold;
}

// total = total * a + split * c, `count` floats.
inline void AddSplit(float* total, const float* split, uint32_t count, Vec a, Vec c) {
  for (uint32_t d = 0; d < count; d += 16) Store(total + d, Fma(Load(total + d), a, Mul(Load(split + d), c)));
}

// Folds a split into the totals of the query vectors from `i` on, at most 16, that have a 1 in `sees`.
void FoldSixteen(Block& b, uint32_t i, uint32_t count, const float* sees) {
  float total_factor[16], split_factor[16];
  const Vec old_max = Load(b.total_max + i), old_sum = Load(b.total_sum + i);
  const Fold fold = FoldOf(old_max, old_sum, Load(b.split_max + i), Load(b.split_sum + i));
  const Mask seen = Less(Zero(), Load(sees));
  StoreUpTo(b.total_max + i, count, Select(seen, fold.max, old_max));
  StoreUpTo(b.total_sum + i, count, Select(seen, fold.sum, old_sum));
  Store(total_factor, fold.total_factor);
  Store(split_factor, fold.split_factor);
  for (uint32_t dim = 0; dim < b.padded_dim; dim += b.part_dims) {
    const uint32_t width = b.PartWidth(dim);
    for (uint32_t j = 0; j < count; ++j) {
      const uint64_t place = dim * b.count + (i + j) * width;
      if (sees[j] == 0) continue;
      AddSplit(b.total_out + place, b.split_out + place, width, Set(total_factor[j]), Set(split_factor[j]));
    }
  }
}

// Writes query vector i's state after the split of that number.
void SaveSplit(const Block& b, uint32_t i, uint64_t split) {
  const uint64_t index = split - FirstSplitOf(*b.shape, *b.run[i]);
  float* state = b.out[i] + index * SplitStateFloats(b.shape->head_dim);
  for (uint32_t dim = 0; dim < b.padded_dim; dim += b.part_dims) {
    const uint32_t width = b.PartWidth(dim);
    const float* part = b.split_out + dim * b.count + i * width;
    for (uint32_t d = 0; d < width; d += 16) Store(state + dim + d, Load(part + d));
  }
  state[b.padded_dim] = b.split_max[i];
  state[b.padded_dim + 1] = b.split_sum[i];
}

// Ends the split of that number for those of the query vectors that see any of it, and clears it for the next.
void EndSplit(Block& b, Vectors v, uint64_t split) {
  for (uint32_t done = 0; done < v.count; done += 16) {
    const uint32_t first = v.first + done, count = Least(16, v.count - done);
    float sees[16] = {};
    bool folds = false;
    for (uint32_t j = 0; j < count; ++j) {
      const Range seen = b.seen[first + j];
      if (seen.begin >= (split + 1) * kSplit || seen.end <= split * kSplit) continue;
      if (b.run[first + j]->split_states == nullptr) {
        sees[j] = 1;
        folds = true;
      } else {
        SaveSplit(b, first + j, split);
      }
    }
    if (folds) FoldSixteen(b, first, count, sees);
  }
  ClearState(b, v, b.split_max, b.split_sum, b.split_out);
}

// Up to 16 dimensions of a result, of which `count` are left, from o and l.
inline void StoreResult(float* out, uint32_t count, Vec o, Vec l) { StoreUpTo(out, count, PlainNan(Div(o, l))); }

void FinishBlock(const Block& b) {
  for (uint32_t i = 0; i < b.count; ++i) {
    if (b.run[i]->split_states != nullptr) continue;
    const Vec sum = Set(b.total_sum[i]);
    for (uint32_t dim = 0; dim < b.padded_dim; dim += b.part_dims) {
      const uint32_t width = b.PartWidth(dim);
      const float* total = b.total_out + dim * b.count + i * width;
      for (uint32_t d = 0; d < width; d += 16) {
        StoreResult(b.out[i] + dim + d, b.shape->head_dim - dim - d, Load(total + d), sum);
      }
    }
  }
}

void FoldSplits(const AttentionShape& shape, const QueryRun& run, uint32_t row) {
  const uint32_t padded_dim = RoundUp16(shape.head_dim);
  const uint64_t position = run.first_position + row;
  const uint64_t first = FirstSplitOf(shape, run), splits = SplitsOf(shape, run);
  for (uint32_t head = 0; head < shape.heads; ++head) {
    const float* states =
        run.split_states + (uint64_t{row} * shape.heads + head) * splits * SplitStateFloats(shape.head_dim);
    Vec max = Set(-__builtin_inff()), sum = Zero();
    float total[kMaxHeadDim] = {};
    for (uint64_t split = FirstSeen(shape, position) / kSplit; split <= position / kSplit; ++split) {
      const float* state = states + (split - first) * SplitStateFloats(shape.head_dim);
      const Fold fold = FoldOf(max, sum, Set(state[padded_dim]), Set(state[padded_dim + 1]));
      max = fold.max;
      sum = fold.sum;
      AddSplit(total, state, padded_dim, fold.total_factor, fold.split_factor);
    }
    float* out = run.out + row * run.out_stride + uint64_t{head} * shape.head_dim;
    for (uint32_t d = 0; d < padded_dim; d += 16) StoreResult(out + d, shape.head_dim - d, Load(total + d), sum);
  }
}

}  // namespace
