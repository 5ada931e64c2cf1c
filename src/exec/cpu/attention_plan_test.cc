#include "exec/cpu/attention_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::exec {
namespace {

constexpr uint32_t kBlock = 16;

// A batch of sequences that own their page tables.
class Step {
 public:
  // A sequence of `rows` rows that ends at `tokens`, its first `shared` blocks those of sequence `from`.
  void Add(uint64_t tokens, uint32_t rows, uint32_t from = 0, uint64_t shared = 0) {
    std::vector<uint32_t> slots;
    if (shared > 0) slots.assign(slots_[from].begin(), slots_[from].begin() + static_cast<std::ptrdiff_t>(shared));
    while (slots.size() * kBlock < tokens) slots.push_back(next_slot_++);
    slots_.push_back(std::move(slots));
    rows_.push_back(rows);
    tokens_.push_back(tokens);
    step_rows_ += rows;
  }

  AttentionPlan Plan(uint32_t threads, uint64_t state_floats = uint64_t{1} << 20) {
    AttentionPlan plan({shape, kBlock, threads, step_rows_});
    pages_.clear();
    for (const auto& slots : slots_) pages_.push_back({slots.data(), static_cast<uint32_t>(slots.size()), 0});
    token_ids_.assign(step_rows_, 0);
    std::vector<SequenceRows> sequences;
    for (size_t i = 0; i < slots_.size(); ++i) {
      sequences.push_back({std::span(token_ids_).first(rows_[i]), tokens_[i] - rows_[i], std::span(&pages_[i], 1), 0});
    }
    q_.assign(step_rows_ * shape.heads * shape.head_dim, 0);
    states_.assign(state_floats, 0);
    plan.Build(sequences, 0, {q_.data(), q_.data(), states_});
    return plan;
  }

  uint32_t step_rows() const { return step_rows_; }

  kernels::AttentionShape shape{9, 3, 64, 0};

 private:
  std::vector<std::vector<uint32_t>> slots_;
  std::vector<uint32_t> rows_;
  std::vector<uint64_t> tokens_;
  std::vector<PageTableRef> pages_;
  std::vector<TokenId> token_ids_;
  std::vector<float> q_, states_;
  uint32_t next_slot_ = 0, step_rows_ = 0;
};

// Every row's visible splits of every KV head belong to exactly one task.
void ExpectCovered(const Step& step, const AttentionPlan& plan) {
  std::map<std::tuple<const kernels::QueryRun*, uint32_t, uint64_t>, uint32_t> times;
  std::map<const kernels::QueryRun*, uint32_t> rows;
  for (const kernels::AttendJob& task : plan.tasks()) {
    for (uint32_t i = 0; i < task.run_count; ++i) {
      const kernels::QueryRun& run = task.runs[i];
      rows[&run] = run.rows;
      const uint64_t first = kernels::FirstSplitOf(step.shape, run);
      for (uint64_t split = first; split < first + kernels::SplitsOf(step.shape, run); ++split) {
        if (split >= task.first_split && split < task.end_split) ++times[{&run, task.kv_head, split}];
      }
    }
  }
  uint32_t all_rows = 0;
  size_t expected = 0;
  for (const auto& [run, count] : rows) {
    all_rows += count;
    expected += kernels::SplitsOf(step.shape, *run) * step.shape.kv_heads;
  }
  EXPECT_EQ(all_rows, step.step_rows());
  EXPECT_EQ(times.size(), expected);
  for (const auto& [key, count] : times) EXPECT_EQ(count, 1u);
}

TEST(AttentionPlan, SequencesThatShareBlocksGoTogether) {
  Step step;
  step.Add(4'100, 1);
  for (uint32_t i = 0; i < 15; ++i) step.Add(4'100 + i, 1, 0, 256);
  const AttentionPlan plan = step.Plan(1);
  ASSERT_EQ(plan.tasks().size(), 3u);
  for (const auto& task : plan.tasks()) {
    EXPECT_EQ(task.run_count, 16u);
    for (uint32_t i = 1; i < 16; ++i) EXPECT_EQ(task.runs[i].shared_positions, 4'096u);
  }
  ExpectCovered(step, plan);
}

TEST(AttentionPlan, ThoseThatShareMoreLieSideBySide) {
  Step step;
  step.Add(400, 1);
  step.Add(400, 1);          // alone
  step.Add(400, 1, 0, 6);    // shares little with 0
  step.Add(400, 1, 0, 20);   // shares more with 0
  step.Add(400, 33, 0, 20);  // two runs of several rows
  const AttentionPlan plan = step.Plan(1);
  std::vector<std::vector<uint64_t>> shared;
  for (const auto& task : plan.tasks()) {
    if (task.kv_head != 0) continue;
    shared.emplace_back();
    for (uint32_t i = 0; i < task.run_count; ++i) shared.back().push_back(task.runs[i].shared_positions);
    std::ranges::sort(shared.back());
  }
  std::ranges::sort(shared);
  const std::vector<std::vector<uint64_t>> expected = {{0}, {0}, {0}, {0, 96, 320}};
  EXPECT_EQ(shared, expected);
  ExpectCovered(step, plan);
}

TEST(AttentionPlan, FewBlocksAreNotWorthACommonTask) {
  Step step;
  step.Add(400, 1);
  step.Add(400, 1, 0, 3);
  EXPECT_EQ(step.Plan(1).tasks().size(), 6u);
}

TEST(AttentionPlan, OneLongSequenceIsCutForThreads) {
  Step step;
  step.shape = {4, 1, 256, 0};
  step.Add(4'096, 1);
  for (uint32_t threads : {2u, 4u}) {
    const AttentionPlan plan = step.Plan(threads);
    EXPECT_GE(plan.tasks().size(), 4 * threads - 1);
    EXPECT_NE(plan.cut_row(0).run, nullptr);
    ExpectCovered(step, plan);
  }
  const AttentionPlan plan = step.Plan(1);
  EXPECT_EQ(plan.tasks().size(), 1u);
  EXPECT_EQ(plan.cut_row(0).run, nullptr);
}

TEST(AttentionPlan, WithoutRoomForSplitsTasksStayWhole) {
  Step step;
  step.Add(4'096, 1);
  const AttentionPlan plan = step.Plan(2, 1000);
  EXPECT_EQ(plan.tasks().size(), 3u);
  EXPECT_EQ(plan.cut_row(0).run, nullptr);
  ExpectCovered(step, plan);
}

TEST(AttentionPlan, EveryRandomStepIsCoveredOnce) {
  SplitMix64 random(3);
  for (int round = 0; round < 200; ++round) {
    Step step;
    step.shape.window = random.Below(3) == 0 ? 300 : 0;
    const auto sequences = static_cast<uint32_t>(1 + random.Below(30));
    for (uint32_t i = 0; i < sequences; ++i) {
      const uint64_t tokens = 300 + random.Below(2'000);
      const uint32_t rows = random.Below(4) == 0 ? static_cast<uint32_t>(1 + random.Below(100)) : 1;
      step.Add(tokens, rows, i == 0 ? 0 : static_cast<uint32_t>(random.Below(i)), i == 0 ? 0 : random.Below(18));
    }
    ExpectCovered(step, step.Plan(static_cast<uint32_t>(1 + random.Below(8)), random.Below(2) << 19));
  }
}

}  // namespace
}  // namespace cachalot::exec
