// BenchMeasurement runs requests of random tokens through an engine and times a part of their way.
// Threads:   main thread, which steps the engine.
// Ownership: borrows the model.
// Invariant: no request is left in the engine between two calls.
// Cost:      that of the work measured, and of the tokens before it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "cli/bench_plan.h"
#include "cli/loaded_model.h"

namespace cachalot::cli {

class BenchMeasurement {
 public:
  explicit BenchMeasurement(LoadedModel& model) : model_(model) {}

  // Tokens per second of all of the row's sequences together. The error of whatever request was refused or failed.
  Result<double> Measure(const BenchRow& row);

 private:
  // What has been computed since the requests were submitted.
  struct Progress {
    uint64_t prompt_tokens = 0;
    uint64_t output_tokens = 0;
    uint32_t answering = 0;  // sequences that have a first token
    uint64_t tokens() const { return prompt_tokens + output_tokens; }
  };

  Result<double> Time(const BenchRow& row);
  // Makes the requests; the next step takes them.
  void Submit(const BenchRequests& asked);
  template <class Predicate>
  Status StepUntil(Predicate reached);
  void CancelAll();

  LoadedModel& model_;
  SplitMix64 random_{1};
  engine::StepInput pending_;
  Progress progress_;
  std::vector<bool> answered_;  // by request and choice
  uint32_t choices_ = 1;
  uint64_t prompt_tokens_before_ = 0;
  uint64_t first_id_ = 1, next_id_ = 1;
};

}  // namespace cachalot::cli
