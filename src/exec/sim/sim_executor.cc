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
namespace {

constexpr double kLongestStepSeconds = 1e6;

std::vector<uint32_t> WindowsOf(const KvShape& shape) {
  std::vector<uint32_t> windows;
  for (const LayerKvShape& layer : shape.layers) windows.push_back(layer.window);
  return windows;
}

}  // namespace

KvShape SmallestKv() {
  KvShape shape;
  shape.layers.resize(1);
  shape.layers[0].kv_heads = 1;
  shape.layers[0].k_dim = 2;
  return shape;
}

Sampler SimSampler() { return Sampler(*kernels::RunnableTables().front()); }

KvLayout SimExecutor::LayoutFor(const SimOptions& options) {
  Result<KvLayout> layout = PlanKvLayout(options.kv, options.context_tokens);
  CACHALOT_CHECK(layout.ok());
  return std::move(layout).value();
}

SimExecutor::SimExecutor(SimOptions options, ManualClock& clock)
    : options_(std::move(options)),
      layout_(LayoutFor(options_)),
      shape_(std::make_unique<cost::WorkShape>(WindowsOf(options_.kv))),
      cost_(std::make_unique<cost::StepCost>(options_.curve)),
      reading_(std::make_unique<cost::StepCost>(options_.reading)),
      clock_(clock) {
  CACHALOT_CHECK(options_.vocabulary > 0);
}

SimExecutor::~SimExecutor() = default;

Result<Logits> SimExecutor::Run(const Batch& batch) {
  cost::StepWork work, read;
  for (const SequenceRows& sequence : batch.sequences) {
    work += shape_->Rows(sequence.first_position, sequence.tokens.size(), sequence.logit_rows);
    read += shape_->Rows(sequence.first_position + sequence.tokens.size() - 1, 1);
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
  const double seconds = std::max(cost_->Predict(work), reading_->Predict(read));
  Spend(batch, Nanos(std::llround(std::min(seconds, kLongestStepSeconds) * 1e9)));
  return Logits{logits_.data(), static_cast<uint32_t>(work.logit_rows), options_.vocabulary};
}

// Layers take equal parts of it; what is not there yet is awaited layer by layer.
void SimExecutor::Spend(const Batch& batch, Nanos duration) {
  computed_ += duration;
  const bool gated =
      std::ranges::any_of(batch.sequences, [](const SequenceRows& rows) { return rows.gate != nullptr; });
  if (!gated) return clock_.Advance(duration);
  const auto layers = static_cast<uint32_t>(options_.kv.layers.size());
  for (uint32_t layer = 0; layer < layers; ++layer) {
    for (const SequenceRows& rows : batch.sequences) {
      if (rows.gate != nullptr) (void)rows.gate->Await(layer);
    }
    clock_.Advance(duration * (layer + 1) / layers - duration * layer / layers);
  }
}

}  // namespace cachalot::exec
