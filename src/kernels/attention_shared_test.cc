#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/kernel_table.h"
#include "kernels/testing/paged_kv.h"

namespace cachalot::kernels {
namespace {

// Sequences over one arena. Each begins with some blocks of an earlier one and goes on in its own.
class SharedKv {
 public:
  struct Options {
    AttentionShape shape;
    KvType type = KvType::kF16;
    uint32_t block_tokens = 16;
    uint32_t sequences = 1;
    uint32_t most_blocks = 1;  // of a sequence
    uint32_t most_rows = 1;    // of a run
    uint64_t seed = 1;
  };

  SharedKv(const Options& options, const KernelTable& table) : options_(options), random_(options.seed) {
    const AttentionShape& shape = options.shape;
    const uint64_t part = uint64_t{shape.kv_heads} * shape.head_dim * options.block_tokens * KvTypeBytes(options.type);
    view_ = {.slot_bytes = 2 * part,
             .v_offset = part,
             .block_tokens = options.block_tokens,
             .kv_heads = shape.kv_heads,
             .k_dim = shape.head_dim,
             .v_dim = shape.head_dim,
             .type = options.type};
    arena_.assign(uint64_t{options.sequences} * options.most_blocks * 2 * part, std::byte{0xff});  // NaNs
    view_.arena = arena_.data();
    sequences_.resize(options.sequences);
    for (uint32_t i = 0; i < options.sequences; ++i) Begin(i, table);
    for (uint32_t i = 0; i < options.sequences; ++i) PlaceRun(i);
  }

  const PageView& view() const { return view_; }
  uint64_t width() const { return uint64_t{options_.shape.heads} * options_.shape.head_dim; }
  // With results going to `out`, all rows of all runs.
  std::vector<QueryRun> Runs(std::vector<float>& out) const {
    std::vector<QueryRun> runs;
    uint64_t rows = 0;
    for (const Sequence& s : sequences_) {
      runs.push_back(s.run);
      runs.back().out_stride = width();
      rows += s.run.rows;
    }
    out.assign(rows * width(), -7.0f);
    rows = 0;
    for (QueryRun& run : runs) {
      run.out = out.data() + rows * width();
      rows += run.rows;
    }
    return runs;
  }

 private:
  struct Sequence {
    std::vector<uint32_t> slots;
    uint64_t tokens;
    std::vector<float> q;
    QueryRun run;
  };

  void Begin(uint32_t index, const KernelTable& table) {
    Sequence& s = sequences_[index];
    const auto blocks = static_cast<uint32_t>(1 + random_.Below(options_.most_blocks));
    const uint64_t last_block = 1 + random_.Below(options_.block_tokens);
    s.tokens = (blocks - 1) * uint64_t{options_.block_tokens} + last_block;
    uint64_t taken = 0;  // blocks
    if (index > 0) {
      const Sequence& from = sequences_[random_.Below(4) == 0 ? random_.Below(index) : index - 1];
      const uint64_t full = from.tokens / options_.block_tokens;
      taken = std::min<uint64_t>(random_.Below(full + 1), blocks - 1);
      if (random_.Below(3) == 0) taken = std::min<uint64_t>(full, blocks - 1);
      s.slots.assign(from.slots.begin(), from.slots.begin() + static_cast<std::ptrdiff_t>(taken));
    }
    for (uint64_t block = taken; block < blocks; ++block) s.slots.push_back(next_slot_++);
    view_.pages = {s.slots.data(), blocks, 0};
    const uint64_t kv_width = uint64_t{view_.kv_heads} * view_.k_dim;
    const uint64_t first = taken * options_.block_tokens;
    const std::vector<float> k = TestValues(2 * index + 1, (s.tokens - first) * kv_width);
    const std::vector<float> v = TestValues(2 * index + 2, (s.tokens - first) * kv_width);
    for (uint64_t t = first; t < s.tokens; ++t) {
      table.store_kv(k.data() + (t - first) * kv_width, v.data() + (t - first) * kv_width, t, view_);
    }
  }

  void PlaceRun(uint32_t index) {
    Sequence& s = sequences_[index];
    const auto rows = static_cast<uint32_t>(std::min<uint64_t>(1 + random_.Below(options_.most_rows), s.tokens));
    s.q = TestValues(1000 + index, rows * width());
    s.run = {.q = s.q.data(), .q_stride = width(), .first_position = s.tokens - rows, .rows = rows};
    // A window's lost blocks are gone from some tables and still there in others.
    const uint64_t seen = FirstSeen(options_.shape, s.run.first_position) / options_.block_tokens;
    const auto dropped = static_cast<uint32_t>(random_.Below(2) == 0 ? seen : seen / 2);
    s.run.pages = {s.slots.data() + dropped, static_cast<uint32_t>(s.slots.size()) - dropped, dropped};
    if (index == 0) return;
    const PageTableRef& before = sequences_[index - 1].run.pages;
    if (before.first_block != dropped) return;
    uint32_t same = 0;
    while (same < std::min(before.slot_count, s.run.pages.slot_count) &&
           before.slots[same] == s.run.pages.slots[same]) {
      ++same;
    }
    if (same > 0) s.run.shared_positions = uint64_t{dropped + same} * options_.block_tokens;
  }

  const Options options_;
  SplitMix64 random_;
  std::vector<std::byte> arena_;
  std::vector<Sequence> sequences_;
  uint32_t next_slot_ = 0;
  PageView view_;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<float> EachAlone(const KernelTable& table, const AttentionShape& shape, const SharedKv& kv) {
  std::vector<float> out;
  for (QueryRun run : kv.Runs(out)) {
    run.shared_positions = 0;
    for (uint32_t g = 0; g < shape.kv_heads; ++g) table.attend(shape, {&run, 1, g}, kv.view());
  }
  return out;
}

std::vector<float> Together(const KernelTable& table, const AttentionShape& shape, const SharedKv& kv) {
  std::vector<float> out;
  const std::vector<QueryRun> runs = kv.Runs(out);
  for (uint32_t g = 0; g < shape.kv_heads; ++g) {
    table.attend(shape, {runs.data(), static_cast<uint32_t>(runs.size()), g}, kv.view());
  }
  return out;
}

// The last splits first, `splits_at_once` of them by a call, then folded.
std::vector<float> InPieces(const KernelTable& table, const AttentionShape& shape, const SharedKv& kv,
                            uint64_t splits_at_once) {
  std::vector<float> out;
  std::vector<QueryRun> runs = kv.Runs(out);
  std::vector<std::vector<float>> states;
  uint64_t end = 0;
  for (QueryRun& run : runs) {
    const uint64_t splits = SplitsOf(shape, run);
    states.emplace_back(run.rows * shape.heads * splits * SplitStateFloats(shape.head_dim), -7.0f);
    run.split_states = states.back().data();
    end = std::max(end, FirstSplitOf(shape, run) + splits);
  }
  while (end > 0) {
    const uint64_t begin = end > splits_at_once ? end - splits_at_once : 0;
    for (uint32_t g = 0; g < shape.kv_heads; ++g) {
      table.attend(shape, {runs.data(), static_cast<uint32_t>(runs.size()), g, begin, end}, kv.view());
    }
    end = begin;
  }
  for (const QueryRun& run : runs) {
    for (uint32_t row = 0; row < run.rows; ++row) table.fold_splits(shape, run, row);
  }
  return out;
}

std::vector<SharedKv::Options> Cases() {
  const AttentionShape shapes[] = {{9, 3, 64, 0},   {4, 1, 256, 0},   {2, 2, 18, 0},  {5, 1, 80, 0},
                                   {9, 3, 64, 300}, {4, 1, 256, 512}, {3, 1, 64, 37}, {6, 2, 96, 0},
                                   {1, 1, 512, 40}, {4, 4, 32, 0},    {14, 2, 64, 0}, {4, 1, 256, 100}};
  const KvType types[] = {KvType::kF16, KvType::kF32, KvType::kBF16};
  std::vector<SharedKv::Options> cases;
  uint32_t i = 0;
  for (uint32_t round = 0; round < 3; ++round) {
    for (const AttentionShape& shape : shapes) {
      SharedKv::Options options{.shape = shape, .type = types[i % 3], .seed = 77 + i};
      options.block_tokens = i % 4 == 3 ? 48 : 16;
      options.sequences = 2 + (5 * i) % 19;
      options.most_blocks = (i % 2 == 0 ? 700 : 300) / options.block_tokens;
      options.most_rows = round == 2 ? 9 : 1;
      cases.push_back(options);
      ++i;
    }
  }
  return cases;
}

std::string Name(const SharedKv::Options& o) {
  return std::to_string(o.sequences) + " sequences, heads " + std::to_string(o.shape.heads) + "/" +
         std::to_string(o.shape.kv_heads) + " x " + std::to_string(o.shape.head_dim) + " window " +
         std::to_string(o.shape.window) + " seed " + std::to_string(o.seed);
}

TEST(SharedAttention, EqualsEachSequenceAlone) {
  for (const KernelTable* table : RunnableTables()) {
    for (const SharedKv::Options& options : Cases()) {
      const SharedKv kv(options, *table);
      EXPECT_TRUE(SameBits(Together(*table, options.shape, kv), EachAlone(*table, options.shape, kv)))
          << table->isa << ": " << Name(options);
    }
  }
}

TEST(SharedAttention, MayClaimLessThanIsShared) {
  const KernelTable& table = *RunnableTables().front();
  const SharedKv::Options options{.shape = {3, 1, 64, 0}, .sequences = 12, .most_blocks = 40, .seed = 5};
  const SharedKv kv(options, table);
  std::vector<float> out;
  std::vector<QueryRun> runs = kv.Runs(out);
  for (size_t i = 1; i < runs.size(); ++i) runs[i].shared_positions = runs[i].shared_positions / 32 * (16 * (i % 3));
  table.attend(options.shape, {runs.data(), static_cast<uint32_t>(runs.size())}, kv.view());
  EXPECT_TRUE(SameBits(out, EachAlone(table, options.shape, kv)));
}

TEST(SharedAttention, SplitsMayBeDividedAmongCalls) {
  for (const KernelTable* table : RunnableTables()) {
    uint64_t splits_at_once = 1;
    for (const SharedKv::Options& options : Cases()) {
      const SharedKv kv(options, *table);
      EXPECT_TRUE(SameBits(InPieces(*table, options.shape, kv, splits_at_once), EachAlone(*table, options.shape, kv)))
          << table->isa << ": " << Name(options);
      splits_at_once = splits_at_once % 2 + 1;
    }
  }
}

// Its total is a minus zero, which the addition of nothing would make a plain zero.
TEST(SharedAttention, ASplitThatOnlyNeighboursSeeChangesNothing) {
  const AttentionShape shape{1, 1, 2, 0};
  std::vector<float> k(1800, 0.0f), v(1800, 0.0f);
  for (uint32_t t = 0; t < 256; ++t) v[2 * t] = v[2 * t + 1] = -0x1p-149f;  // the second split's weight rounds it to -0
  for (uint32_t t = 256; t < 900; ++t) k[2 * t] = 10;
  const std::vector<float> q = {1, 0};
  for (const KernelTable* table : RunnableTables()) {
    PagedKv kv({.shape = shape, .type = KvType::kF32, .tokens = 900});
    kv.Store({table->store_kv, table->attend, table->fold_splits}, k, v);
    std::vector<float> out(4, 1.0f);
    const QueryRun runs[] = {
        {q.data(), 2, out.data(), 2, 511, 1, kv.view().pages},
        {q.data(), 2, out.data() + 2, 2, 899, 1, kv.view().pages, 896},
    };
    table->attend(shape, {runs, 2}, kv.view());
    for (const float x : {out[0], out[1]}) EXPECT_TRUE(x == 0 && std::signbit(x)) << table->isa << " " << x;
  }
}

}  // namespace
}  // namespace cachalot::kernels
