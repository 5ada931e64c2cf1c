#include "exec/cpu/cpu_executor.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/thread_pool.h"
#include "exec/cpu/cpu_model.h"
#include "exec/cpu/transformer.h"
#include "exec/cpu/workspace.h"
#include "exec/device_memory.h"

namespace cachalot::exec {
namespace {

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(const CpuModel& model, DeviceMemory& memory, const StepLimits& limits,
              const kernels::KernelTable& kernels, ThreadPool& pool)
      : model_(model), limits_(limits), transformer_(model, memory.arena(), limits, kernels, pool) {
    CACHALOT_CHECK(memory.slot_bytes() == model.layout().slot_bytes);
    rows_.reserve(limits.rows);
    logit_rows_.reserve(limits.logit_rows);
  }

  const KvLayout& layout() const override { return model_.layout(); }
  uint32_t vocabulary() const override { return model_.spec().vocabulary; }
  uint64_t context_tokens() const override { return model_.context_tokens(); }
  StepLimits limits() const override { return limits_; }

  Result<Logits> Run(const Batch& batch) override {
    CACHALOT_RETURN_IF_ERROR(Flatten(batch));
    transformer_.Forward(batch.sequences, rows_, logit_rows_);
    return Logits{transformer_.logits(), static_cast<uint32_t>(logit_rows_.size()), vocabulary()};
  }

 private:
  // Fills rows_ and logit_rows_, or says what is wrong with the batch.
  Status Flatten(const Batch& batch) {
    rows_.clear();
    logit_rows_.clear();
    for (uint32_t s = 0; s < batch.sequences.size(); ++s) {
      const SequenceRows& sequence = batch.sequences[s];
      const size_t end = rows_.size() + sequence.tokens.size();
      if (end > limits_.rows) return Invalid(fmt::format("step of more than {} rows", limits_.rows));
      if (sequence.first_position + sequence.tokens.size() > context_tokens()) {
        return Invalid(fmt::format("position {} is beyond the context of {} tokens",
                                   sequence.first_position + sequence.tokens.size() - 1, context_tokens()));
      }
      if (sequence.logit_rows > sequence.tokens.size() || sequence.pages.size() != layout().groups.size()) {
        return Internal("a batch names more logit rows than rows, or not one page table per layer group");
      }
      uint64_t position = sequence.first_position;
      for (TokenId token : sequence.tokens) {
        if (token >= vocabulary()) {
          return Invalid(fmt::format("token {} is outside the vocabulary of {}", token, vocabulary()));
        }
        rows_.push_back({token, s, position++});
      }
      for (size_t r = end - sequence.logit_rows; r < end; ++r) logit_rows_.push_back(static_cast<uint32_t>(r));
    }
    if (logit_rows_.size() > limits_.logit_rows) {
      return Invalid(fmt::format("step of more than {} rows with logits", limits_.logit_rows));
    }
    return OkStatus();
  }

  const CpuModel& model_;
  const StepLimits limits_;
  Transformer transformer_;
  std::vector<StepRow> rows_;
  std::vector<uint32_t> logit_rows_;
};

}  // namespace

uint64_t CpuWorkspaceBytes(const CpuModel& model, const StepLimits& limits) {
  return CpuWorkspaceBytes(model.spec(), limits, model.context_tokens());
}

uint64_t CpuWorkspaceBytes(const model::ModelSpec& spec, const StepLimits& limits, uint64_t context_tokens) {
  return Workspace::BytesFor(spec, limits, context_tokens);
}

std::unique_ptr<Executor> MakeCpuExecutor(const CpuModel& model, DeviceMemory& memory, const StepLimits& limits,
                                          const kernels::KernelTable& kernels, ThreadPool& pool) {
  return std::make_unique<CpuExecutor>(model, memory, limits, kernels, pool);
}

}  // namespace cachalot::exec
