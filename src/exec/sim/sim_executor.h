// SimExecutor is an Executor that computes nothing: a step takes the time that a cost curve says, on a virtual clock,
// and the next token is a hash of the last one and its position. So the real engine runs on a machine that has neither
// the model nor its memory.
// Threads:   as Executor.
// Ownership: borrows the clock, which Run advances.
// Invariant: equal batches take equal times and give equal logits. KV is neither read nor written.
// Cost:      linear in the rows with logits.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/step_curve.h"
#include "exec/executor.h"
#include "exec/sampler.h"

namespace cachalot::cost {
class StepCost;
class WorkShape;
}  // namespace cachalot::cost

namespace cachalot::exec {

struct SimOptions {
  uint32_t vocabulary = 256;
  uint64_t context_tokens = 131072;
  StepLimits limits;
  std::vector<uint32_t> windows = {0};  // one per layer: 0 for full attention
  uint32_t block_tokens = 16;
  StepCurve curve{};  // how long its steps take
};

// A sampler for engines over it.
Sampler SimSampler();

class SimExecutor final : public Executor {
 public:
  // The layout of memory for it: a few bytes per slot.
  static KvLayout LayoutFor(const SimOptions& options);

  SimExecutor(SimOptions options, ManualClock& clock);
  ~SimExecutor() override;

  const KvLayout& layout() const override { return layout_; }
  uint32_t vocabulary() const override { return options_.vocabulary; }
  uint64_t context_tokens() const override { return options_.context_tokens; }
  StepLimits limits() const override { return options_.limits; }
  Result<Logits> Run(const Batch& batch) override;

 private:
  const SimOptions options_;
  const KvLayout layout_;
  const std::unique_ptr<const cost::WorkShape> shape_;
  const std::unique_ptr<const cost::StepCost> cost_;
  ManualClock& clock_;
  std::vector<float> logits_;
  std::vector<size_t> raised_;  // indices into logits_ of all that are not 0
};

}  // namespace cachalot::exec
