// WorkloadMaker is what made-up traces are made with: draws, text that grows, and requests about it.
// Threads:   one.
// Ownership: borrows the sink, and the trace that its texts are kept in; owns requests that are not due yet.
// Invariant: the same seed and the same calls give the same trace.
// Cost:      linear in the tokens of the trace; memory for the requests of what has begun and not ended.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/random.h"
#include "sim/trace.h"
#include "sim/trace_text.h"
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
  // The sink gets the requests; words of their text go to the trace, where they are kept.
  WorkloadMaker(const WorkloadOptions& options, Kept kept, Trace& trace, const RequestSink& sink);

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

  // Whether more are wanted. Conversations are made one by one: no request that is made from now on comes before that
  // moment, so those before it are given to the sink.
  bool GoesOn(double seconds);
  // Gives the rest, and drops what is too much.
  Status Finish() &&;

 private:
  void GiveUntil(Nanos moment);

  const WorkloadOptions options_;
  const RequestSink& sink_;
  Trace& trace_;
  TextKeeper keeper_;
  SplitMix64 random_;
  std::multimap<Nanos, TraceRequest> due_;  // by arrival, those of one moment as they were made
  uint64_t made_ = 0;
  uint64_t given_ = 0;
  Status status_;  // of the sink
  uint64_t sources_ = 0;
  uint64_t sessions_ = 0;
  std::vector<double> shares_;  // see Popular: of the first so many, not yet divided by the last
};

}  // namespace cachalot::sim
