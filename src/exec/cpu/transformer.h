// Transformer is the forward pass of a decoder-only model over rows of many sequences.
// Threads:   one caller at a time; work is divided among the pool's threads, which have joined when Forward returns.
// Ownership: borrows model, arena, kernels and pool; owns the workspace.
// Invariant: a row's result depends on its sequence's tokens alone.
// Cost:      no allocation; at most ten fork-joins of the pool per layer, five for one row.
//
// Per layer: norm, Q K V, (bias, head norms,) rotation, KV written to its block, attention over pages, output
// projection, (post norm,) residual; norm, gate and up, activation, down, (post norm,) residual.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "exec/cpu/attention_plan.h"
#include "exec/cpu/workspace.h"
#include "exec/executor.h"
#include "kernels/kernel_table.h"
#include "kernels/packed_matrix.h"

namespace cachalot {
class ThreadPool;
}

namespace cachalot::exec {

class CpuModel;
struct CpuLayer;

struct StepRow {
  TokenId token;
  uint32_t sequence;  // index into the batch
  uint64_t position;
};

class Transformer {
 public:
  Transformer(const CpuModel& model, std::byte* arena, const StepLimits& limits, const kernels::KernelTable& kernels,
              ThreadPool& pool);

  // Computes all rows (in batch order, a sequence's rows side by side) and the logits of `logit_rows`, ascending row
  // indices. Requires what CpuExecutor checks.
  void Forward(std::span<const SequenceRows> sequences, std::span<const StepRow> rows,
               std::span<const uint32_t> logit_rows);

  // [logit_rows][vocabulary] of the last Forward.
  const float* logits() const { return workspace_.buffers().logits; }

 private:
  struct MatmulJob {
    const kernels::PackedMatrix* weights;
    float* out;  // [rows][weights->rows()]
  };

  void Embed(std::span<const StepRow> rows);
  void PlanAttention(std::span<const SequenceRows> sequences);
  // What never arrives gives rows of garbage: no harm to others, as rows don't mix.
  void AwaitLayer(std::span<const SequenceRows> sequences, uint32_t layer_index);
  void ProjectQkv(const CpuLayer& layer, uint32_t rows);
  void PlaceQkv(uint32_t layer_index, std::span<const SequenceRows> sequences, std::span<const StepRow> rows);
  void Attend(uint32_t layer_index);
  void ProjectAttended(uint32_t layer_index, uint32_t rows);
  void FeedForward(uint32_t layer_index, uint32_t rows);
  void ComputeLogits(std::span<const uint32_t> logit_rows);

  // A layer's input, for one row; nothing after the last layer.
  void StartLayer(uint32_t layer_index, uint32_t row);
  // residual += (post-normed) branch, for one row.
  void AddBranch(const std::vector<float>& post_norm, uint32_t row);
  // input = normed residual, for one row; quantised too where a matrix takes that.
  void NormAndQuantise(const std::vector<float>& norm, uint32_t row, bool quantise);
  void Quantise(const float* x, uint32_t row, uint32_t columns);
  // Every job's out = its weights times x, whose quantised form lies in the workspace; one fork-join for all jobs.
  void Multiply(std::span<const MatmulJob> jobs, const float* x, uint32_t rows);
  // Of no sequence: without pages.
  PageView ViewOf(uint32_t layer_index) const;
  kernels::AttentionShape ShapeOf(uint64_t window) const;

  const CpuModel& model_;
  std::byte* const arena_;
  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  const StepLimits limits_;
  Workspace workspace_;
  const uint32_t q_width_, kv_width_;
  std::vector<AttentionPlan> attention_plans_;  // by layer group
};

}  // namespace cachalot::exec
