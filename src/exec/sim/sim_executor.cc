#include "exec/sim/sim_executor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/random.h"
#include "cost/step_cost.h"
#include "cost/step_work.h"
#include "kernels/kernel_table.h"

namespace cachalot::exec {
Sampler SimSampler() { return Sampler(*kernels::RunnableTables().back()); }

KvLayout SimExecutor::LayoutFor(const SimOptions& options) {
  KvShape shape;
  shape.type = KvType::kF16;
  shape.block_tokens = options.block_tokens;
  for (const uint32_t window : options.windows) {
    shape.layers.push_back({.kv_heads = 1, .k_dim = 2, .v_dim = 0, .window = window});
  }
  Result<KvLayout> layout = PlanKvLayout(shape, options.context_tokens);
  CACHALOT_CHECK(layout.ok());
  return std::move(layout).value();
}

SimExecutor::SimExecutor(SimOptions options, ManualClock& clock)
    : options_(std::move(options)),
      layout_(LayoutFor(options_)),
      shape_(std::make_unique<cost::WorkShape>(options_.windows)),
      cost_(std::make_unique<cost::StepCost>(options_.curve)),
      clock_(clock) {
  CACHALOT_CHECK(options_.vocabulary > 0);
}

SimExecutor::~SimExecutor() = default;

Result<Logits> SimExecutor::Run(const Batch& batch) {
  cost::StepWork work;
  for (const SequenceRows& sequence : batch.sequences) {
    work += shape_->Rows(sequence.first_position, sequence.tokens.size(), sequence.logit_rows);
  }
  if (work.rows > options_.limits.rows || work.logit_rows > options_.limits.logit_rows) {
    return Invalid(fmt::format("batch of {} rows, {} with logits; at most {} and {} are allowed", work.rows,
                               work.logit_rows, options_.limits.rows, options_.limits.logit_rows));
  }
  for (const size_t at : raised_) logits_[at] = 0;
  raised_.clear();
  logits_.resize(std::max(logits_.size(), work.logit_rows * options_.vocabulary));
  for (const SequenceRows& sequence : batch.sequences) {
    for (size_t i = sequence.tokens.size() - sequence.logit_rows; i < sequence.tokens.size(); ++i) {
      const uint64_t next = SplitMix64((sequence.first_position + i) << 32 | sequence.tokens[i])();
      raised_.push_back(raised_.size() * options_.vocabulary + next % options_.vocabulary);
      logits_[raised_.back()] = 1;
    }
  }
  clock_.Advance(Nanos(std::llround(cost_->Predict(work) * 1e9)));
  return Logits{logits_.data(), static_cast<uint32_t>(work.logit_rows), options_.vocabulary};
}

}  // namespace cachalot::exec
