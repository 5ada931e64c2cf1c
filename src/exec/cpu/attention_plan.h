// AttentionPlan divides a step's attention over one layer group into tasks, equal in all layers of the group.
// Threads:   Build by one caller; then any thread may read.
// Ownership: refers to the batch, the step's buffers and its own runs until the next Build.
// Invariant: pure over its arguments, and no result depends on what it decides: sequences of one row that share leading
//            blocks read them together, and tasks that would keep one thread alone are cut at splits.
// Cost:      a sort of the batch's page tables; no allocation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "kernels/attention.h"

namespace cachalot::exec {

struct AttentionSetting {
  kernels::AttentionShape shape;
  uint32_t block_tokens = 16;
  uint32_t threads = 1;
  uint32_t most_rows = 0;  // of a step
};

struct AttentionBuffers {
  const float* q = nullptr;  // [rows][heads*head_dim]
  float* out = nullptr;      // likewise
  std::span<float> split_states;
};

// Split states that every plan can use, in rows times splits of a step: those of one row over the whole context, and of
// some more over less of it.
uint64_t SplitStateRows(uint64_t context_tokens);

class AttentionPlan {
 public:
  // A row that gets its result from split states, after all tasks.
  struct CutRow {
    const kernels::QueryRun* run = nullptr;  // null: the tasks give the result
    uint32_t row = 0;                        // of the run
  };

  explicit AttentionPlan(const AttentionSetting& setting);

  void Build(std::span<const SequenceRows> sequences, uint32_t layer_group, const AttentionBuffers& buffers);

  std::span<const kernels::AttendJob> tasks() const { return tasks_; }
  // By row of the step.
  const CutRow& cut_row(size_t row) const { return cut_rows_[row]; }

 private:
  // A sequence of one row.
  struct Single {
    PageTableRef pages;
    uint64_t position;
    uint32_t row;  // of the step
  };
  // Runs that are read together.
  struct Pack {
    uint32_t first_run, run_count;
  };

  void AddRun(const AttentionBuffers& buffers, const Single& first, uint32_t rows, uint64_t shared_positions);
  void PackSingles(const AttentionBuffers& buffers);
  uint64_t CostOf(const Pack& pack) const;
  void AddTasks(const Pack& pack, uint64_t most_cost, std::span<float>& free_states);
  // Gives the pack's runs split states; false where they do not fit.
  bool TakeStates(const Pack& pack, std::span<float>& free_states);

  const AttentionSetting setting_;
  std::vector<Single> singles_;
  std::vector<kernels::QueryRun> runs_;
  std::vector<uint32_t> run_rows_;  // by run: its first row in the step
  std::vector<Pack> packs_;
  std::vector<kernels::AttendJob> tasks_;
  std::vector<CutRow> cut_rows_;
};

}  // namespace cachalot::exec
