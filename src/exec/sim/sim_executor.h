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
#include "base/kv_layout.h"
#include "base/step_curve.h"
#include "exec/executor.h"
#include "exec/sampler.h"

namespace cachalot::cost {
class StepCost;
class WorkShape;
}  // namespace cachalot::cost

namespace cachalot::exec {

// One layer of one head.
KvShape SmallestKv();

struct SimOptions {
  uint32_t vocabulary = 256;
  uint64_t context_tokens = 131072;
  StepLimits limits;
  KvShape kv = SmallestKv();
  StepCurve curve{};  // how long its steps compute
  // How long they read at least, where memory may be slower than arithmetic: the weights (per step), and KV per
  // position that the last row of each sequence sees. A step takes the longer of the two.
  StepCurve reading{};
};

// A sampler for engines over it.
Sampler SimSampler();

class SimExecutor final : public Executor {
 public:
  // The layout of memory for it. Requires a shape and a context that have one.
  static KvLayout LayoutFor(const SimOptions& options);

  SimExecutor(SimOptions options, ManualClock& clock);
  ~SimExecutor() override;

  const KvLayout& layout() const override { return layout_; }
  uint32_t vocabulary() const override { return options_.vocabulary; }
  uint64_t context_tokens() const override { return options_.context_tokens; }
  StepLimits limits() const override { return options_.limits; }
  Result<Logits> Run(const Batch& batch) override;
  // What its steps took, without waiting at gates.
  Nanos computed() const { return computed_; }

 private:
  void Spend(const Batch& batch, Nanos duration);

  const SimOptions options_;
  const KvLayout layout_;
  const std::unique_ptr<const cost::WorkShape> shape_;
  const std::unique_ptr<const cost::StepCost> cost_, reading_;
  ManualClock& clock_;
  Nanos computed_{0};
  std::vector<float> logits_;
  std::vector<size_t> raised_;  // indices into logits_ of all that are not 0
};

}  // namespace cachalot::exec
