// Workload says what the conversations are: a function of the seed and the conversation's number.
// Threads:   immutable; any.
// Ownership: a TraceWorkload owns its rows.
// Invariant: Make(i) gives the same conversation whenever it is called, whatever came before.
// Cost:      Make is linear in the text.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "load/prompt_text.h"
#include "sim/trace.h"

namespace cachalot::load {

struct Turn {
  std::string text;
  uint32_t max_tokens = 0;
  Nanos think{0};  // between the answer before and this turn
};

struct Session {
  std::string prefix;  // before the first turn; may be empty
  std::vector<Turn> turns;
};

class Workload {
 public:
  static constexpr uint64_t kEndless = std::numeric_limits<uint64_t>::max();

  virtual ~Workload() = default;
  virtual Session Make(uint64_t index) const = 0;
  // How many conversations there are.
  virtual uint64_t size() const = 0;
};

struct SyntheticOptions {
  uint64_t seed = 1;
  uint32_t prompt_tokens = 256;  // of a prompt, or of each turn
  uint32_t max_tokens = 64;
  uint32_t prefixes = 0;
  uint32_t prefix_tokens = 0;
  uint32_t turns = 1;
  Nanos mean_think{0};
};

// Unique prompts, behind shared prefixes or not, in one turn or several.
class SyntheticWorkload final : public Workload {
 public:
  SyntheticWorkload(const SyntheticOptions& options, const TokenFit& fit) : options_(options), fit_(fit) {}
  Session Make(uint64_t index) const override;
  uint64_t size() const override { return kEndless; }

 private:
  const SyntheticOptions options_;
  const TokenFit fit_;
};

inline constexpr uint32_t kTraceBlockTokens = 512;  // of Mooncake's traces

// A trace to be sent: with a request at least, each of which asks for something and is asked something. kInvalid, with
// the line's number, for any other.
Result<sim::Trace> ParseLoadTrace(std::string_view text);

struct TraceOptions {
  uint64_t seed = 1;
  uint32_t block_tokens = kTraceBlockTokens;  // made of each id; lengths shrink in proportion
  uint32_t max_prompt_tokens = 0;             // 0: no limit
  uint32_t max_tokens = 0;                    // 0: what the trace says
};

// One conversation of one turn per request; equal block ids have equal text.
class TraceWorkload final : public Workload {
 public:
  TraceWorkload(sim::Trace trace, const TraceOptions& options, const TokenFit& fit)
      : trace_(std::move(trace)), options_(options), fit_(fit) {}
  Session Make(uint64_t index) const override;
  uint64_t size() const override { return trace_.requests.size(); }
  std::vector<Nanos> Times(double speed) const;

 private:
  const sim::Trace trace_;
  const TraceOptions options_;
  const TokenFit fit_;
};

}  // namespace cachalot::load
