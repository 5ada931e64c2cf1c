// NoExecutor is an Executor that computes nothing and says the same of every row: for counting what the engine itself
// costs.
// Threads:   as Executor.
// Ownership: owns the logits, which every Run gives again.
// Invariant: token 0 is the best.
// Cost:      that of counting rows.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/executor.h"
#include "exec/testing/fake_executor.h"

namespace cachalot::engine {

class NoExecutor final : public exec::Executor {
 public:
  static constexpr uint32_t kVocabulary = 8, kRows = 4096;

  NoExecutor() : layout_(exec::FakeExecutor::LayoutFor({.context_tokens = 100000})), logits_(kRows * kVocabulary) {}

  const KvLayout& layout() const override { return layout_; }
  uint32_t vocabulary() const override { return kVocabulary; }
  uint64_t context_tokens() const override { return 100000; }
  exec::StepLimits limits() const override { return {.rows = kRows, .logit_rows = kRows}; }
  Result<exec::Logits> Run(const exec::Batch& batch) override {
    uint32_t rows = 0;
    for (const exec::SequenceRows& sequence : batch.sequences) rows += sequence.logit_rows;
    return exec::Logits{.values = logits_.data(), .rows = rows, .vocabulary = kVocabulary};
  }

 private:
  const KvLayout layout_;
  const std::vector<float> logits_;
};

}  // namespace cachalot::engine
