// WorkloadMaker is what made-up traces are made with: draws, text that grows, and requests about it.
// Threads:   one.
// Ownership: owns the trace until Take().
// Invariant: the same seed and the same calls give the same trace.
// Cost:      linear in the tokens of the trace.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "sim/trace.h"
#include "sim/workload.h"

namespace cachalot::sim {

struct Text {
  std::vector<TextRun> runs;
  uint64_t tokens = 0;

  void Add(const TextRun& run);
  // All of the other text, behind this one.
  void Add(const Text& text);
  // Forgets what is behind so many tokens.
  void CutTo(uint64_t length);
};

// Who asks; 0 where that is not told.
struct Asker {
  uint64_t session = 0;
  uint64_t tenant = 0;
};

class WorkloadMaker {
 public:
  explicit WorkloadMaker(const WorkloadOptions& options);

  double Uniform() { return random_.Uniform(); }
  uint64_t Below(uint64_t limit) { return random_.Below(limit); }
  // Exponential with this mean.
  double Wait(double mean_seconds);
  // Log-normal: half of all lie below the median; `spread` is the deviation of the logarithm.
  double Skewed(double median, double spread);
  // The same as a number of tokens.
  uint64_t Tokens(double median, double spread);
  // Which of so many, when the one of rank i is wanted as often as i to the power of -0.9 (Zipf).
  size_t Popular(size_t count);

  // Text that was never there.
  void Append(Text& text, uint64_t tokens);
  // Such text alone, of so many tokens, but that it ends with a full block: all that follow it share all of it.
  Text Shared(uint64_t tokens);
  // Asks about the text, which the answer then belongs to.
  void Request(double seconds, Text& text, uint64_t output_tokens, const Asker& asker);
  uint64_t NewSession() { return ++sessions_; }

  bool done() const { return trace_.requests.size() >= options_.requests; }
  // Conversations were made one by one: puts their requests in order, drops what is too much, and names their blocks.
  Trace Take() &&;

 private:
  const WorkloadOptions options_;
  SplitMix64 random_;
  Trace trace_;
  uint64_t sources_ = 0;
  uint64_t sessions_ = 0;
  std::vector<double> shares_;  // see Popular: of the first so many, not yet divided by the last
};

}  // namespace cachalot::sim
