#include "exec/cpu/attention_plan.h"

#include <algorithm>
#include <cstring>

namespace cachalot::exec {
namespace {

// Rows of one run: enough to share loads of K and V, few enough to balance threads.
constexpr uint32_t kRunRows = 32;
// Shared positions from which reading them once is worth a common task.
constexpr uint64_t kLeastShared = 64;
// The largest task's part of a thread's share.
constexpr uint64_t kTasksPerThread = 4;
constexpr uint64_t kStateRows = 512;

uint64_t SplitsIn(uint64_t positions) { return positions / kernels::kSplitPositions + 1; }

// Leading positions of two page tables that lie in the same slots.
uint64_t SharedPositions(const PageTableRef& a, const PageTableRef& b, uint32_t block_tokens) {
  if (a.first_block != b.first_block) return 0;
  const uint32_t most = std::min(a.slot_count, b.slot_count);
  const auto same = static_cast<uint64_t>(std::mismatch(a.slots, a.slots + most, b.slots).first - a.slots);
  return same * block_tokens < kLeastShared ? 0 : (a.first_block + same) * block_tokens;
}

// Any order in which page tables with more in common lie nearer to each other.
bool ComesBefore(const PageTableRef& a, const PageTableRef& b) {
  if (a.first_block != b.first_block) return a.first_block < b.first_block;
  const int order = std::memcmp(a.slots, b.slots, sizeof(uint32_t) * std::min(a.slot_count, b.slot_count));
  return order != 0 ? order < 0 : a.slot_count < b.slot_count;
}

}  // namespace

uint64_t SplitStateRows(uint64_t context_tokens) { return std::max(kStateRows, SplitsIn(context_tokens)); }

AttentionPlan::AttentionPlan(const AttentionSetting& setting) : setting_(setting) {
  const uint32_t rows = setting.most_rows;
  singles_.reserve(rows);
  runs_.reserve(rows);
  run_rows_.reserve(rows);
  packs_.reserve(rows);
  // All tasks but those that are cut, and as many pieces as there can be: a piece is rounded up from its cost.
  tasks_.reserve(uint64_t{rows} * setting.shape.kv_heads + 2 * kTasksPerThread * setting.threads);
  cut_rows_.reserve(rows);
}

void AttentionPlan::Build(std::span<const SequenceRows> sequences, uint32_t layer_group,
                          const AttentionBuffers& buffers) {
  singles_.clear();
  runs_.clear();
  run_rows_.clear();
  packs_.clear();
  tasks_.clear();
  uint32_t row = 0;
  for (const SequenceRows& sequence : sequences) {
    const auto count = static_cast<uint32_t>(sequence.tokens.size());
    const Single first{sequence.pages[layer_group], sequence.first_position, row};
    if (count == 1) singles_.push_back(first);
    for (uint32_t done = 0; count > 1 && done < count; done += kRunRows) {
      packs_.push_back({static_cast<uint32_t>(runs_.size()), 1});
      AddRun(buffers, {first.pages, first.position + done, row + done}, std::min(kRunRows, count - done), 0);
    }
    row += count;
  }
  cut_rows_.assign(row, {});
  PackSingles(buffers);

  uint64_t cost = 0;
  for (const Pack& pack : packs_) cost += CostOf(pack) * setting_.shape.kv_heads;
  const uint64_t most_cost = setting_.threads == 1 ? cost : cost / (kTasksPerThread * setting_.threads);
  std::span<float> free_states = buffers.split_states;
  for (const Pack& pack : packs_) AddTasks(pack, std::max<uint64_t>(most_cost, 1), free_states);
}

void AttentionPlan::AddRun(const AttentionBuffers& buffers, const Single& first, uint32_t rows,
                           uint64_t shared_positions) {
  const uint64_t width = uint64_t{setting_.shape.heads} * setting_.shape.head_dim;
  runs_.push_back({.q = buffers.q + first.row * width,
                   .q_stride = width,
                   .out = buffers.out + first.row * width,
                   .out_stride = width,
                   .first_position = first.position,
                   .rows = rows,
                   .pages = first.pages,
                   .shared_positions = shared_positions});
  run_rows_.push_back(first.row);
}

void AttentionPlan::PackSingles(const AttentionBuffers& buffers) {
  std::sort(singles_.begin(), singles_.end(), [](const Single& a, const Single& b) {
    if (ComesBefore(a.pages, b.pages)) return true;
    return !ComesBefore(b.pages, a.pages) && a.row < b.row;
  });
  const kernels::AttentionShape& shape = setting_.shape;
  const uint32_t most_runs = std::max(1u, kernels::MostQueries(shape.head_dim) / (shape.heads / shape.kv_heads));
  for (size_t i = 0; i < singles_.size(); ++i) {
    uint64_t shared = 0;
    if (i > 0 && packs_.back().run_count < most_runs) {
      shared = SharedPositions(singles_[i - 1].pages, singles_[i].pages, setting_.block_tokens);
    }
    if (shared == 0) packs_.push_back({static_cast<uint32_t>(runs_.size()), 0});
    ++packs_.back().run_count;
    AddRun(buffers, singles_[i], 1, shared);
  }
}

// Of one KV head, in rows times visible positions.
uint64_t AttentionPlan::CostOf(const Pack& pack) const {
  uint64_t cost = 0;
  for (uint32_t i = pack.first_run; i < pack.first_run + pack.run_count; ++i) {
    const kernels::QueryRun& run = runs_[i];
    const uint64_t middle = run.first_position + run.rows / 2;
    cost += (middle + 1 - kernels::FirstSeen(setting_.shape, middle)) * run.rows;
  }
  return cost;
}

void AttentionPlan::AddTasks(const Pack& pack, uint64_t most_cost, std::span<float>& free_states) {
  uint64_t first_split = UINT64_MAX, end_split = 0;
  for (uint32_t i = pack.first_run; i < pack.first_run + pack.run_count; ++i) {
    const uint64_t first = kernels::FirstSplitOf(setting_.shape, runs_[i]);
    first_split = std::min(first_split, first);
    end_split = std::max(end_split, first + kernels::SplitsOf(setting_.shape, runs_[i]));
  }
  const uint64_t splits = end_split - first_split;
  uint64_t pieces = std::min(splits, (CostOf(pack) + most_cost - 1) / most_cost);
  if (pieces > 1 && !TakeStates(pack, free_states)) pieces = 1;
  for (uint32_t head = 0; head < setting_.shape.kv_heads; ++head) {
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      tasks_.push_back({&runs_[pack.first_run], pack.run_count, head, first_split + splits * piece / pieces,
                        first_split + splits * (piece + 1) / pieces});
    }
  }
}

bool AttentionPlan::TakeStates(const Pack& pack, std::span<float>& free_states) {
  const uint64_t floats = uint64_t{setting_.shape.heads} * kernels::SplitStateFloats(setting_.shape.head_dim);
  uint64_t rows = 0;  // times splits
  for (uint32_t i = pack.first_run; i < pack.first_run + pack.run_count; ++i) {
    rows += runs_[i].rows * kernels::SplitsOf(setting_.shape, runs_[i]);
  }
  if (rows * floats > free_states.size()) return false;
  for (uint32_t i = pack.first_run; i < pack.first_run + pack.run_count; ++i) {
    kernels::QueryRun& run = runs_[i];
    run.split_states = free_states.data();
    free_states = free_states.subspan(run.rows * kernels::SplitsOf(setting_.shape, run) * floats);
    for (uint32_t r = 0; r < run.rows; ++r) cut_rows_[run_rows_[i] + r] = {&run, r};
  }
  return true;
}

}  // namespace cachalot::exec
