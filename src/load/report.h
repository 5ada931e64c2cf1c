// LoadReport sums up a run and prints it.
// Threads:   one thread.
// Ownership: owns its sums; keeps no record.
// Invariant: sent = ok + failed + aborted; latencies are those of ok requests.
// Cost:      Add is linear in the answer's pieces; memory does not grow with the run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration_histogram.h"
#include "load/prompt_text.h"
#include "load/record.h"

namespace cachalot::load {

// What the run was.
struct LoadSetting {
  std::string url;
  std::string endpoint;
  std::string model;
  std::string load;     // "closed loop, 8 clients"
  std::string prompts;  // "4 prefixes of 1,024 tokens + 128"
  uint64_t seed = 0;
  TokenFit fit;
};

// Zero: no limit.
struct GoodputLimits {
  Nanos ttft{0};
  Nanos time_per_token{0};
  Nanos end_to_end{0};
};

bool IsGood(const RequestRecord& record, const GoodputLimits& limits);

class LoadReport {
 public:
  LoadReport(LoadSetting setting, const GoodputLimits& limits) : setting_(std::move(setting)), limits_(limits) {}

  void Add(const RequestRecord& record);
  void NoteInFlight(uint32_t requests) { peak_in_flight_ = std::max(peak_in_flight_, requests); }
  // How long the run took.
  void Finish(Nanos elapsed) { elapsed_ = elapsed; }

  uint64_t sent() const;
  uint64_t count(Outcome outcome) const { return outcomes_[static_cast<size_t>(outcome)]; }
  uint64_t ok() const { return count(Outcome::kOk); }
  uint64_t failed() const { return sent() - ok() - count(Outcome::kAborted); }
  uint64_t good() const { return good_; }
  uint64_t prompt_tokens() const { return prompt_tokens_; }
  uint64_t cached_tokens() const { return cached_tokens_; }
  uint64_t output_tokens() const { return output_tokens_; }
  const std::map<int, uint64_t>& statuses() const { return statuses_; }
  // The first failures, one of a kind.
  const std::vector<std::string>& examples() const { return examples_; }

  std::string Table() const;
  std::string Json() const;

 private:
  void AddOk(const RequestRecord& record);
  void AddFailure(const RequestRecord& record);
  double PerSecond(uint64_t count) const;
  std::string CacheLine() const;
  std::string ErrorLines() const;

  const LoadSetting setting_;
  const GoodputLimits limits_;
  Nanos elapsed_{0};
  std::array<uint64_t, kOutcomes> outcomes_{};
  std::map<int, uint64_t> statuses_;  // other than 200
  std::vector<std::string> examples_;
  DurationHistogram ttft_, gaps_, time_per_token_, end_to_end_, lateness_;
  uint64_t good_ = 0;
  uint64_t prompt_tokens_ = 0, cached_tokens_ = 0, output_tokens_ = 0;
  uint64_t with_usage_ = 0, with_cached_ = 0;  // ok requests whose server said so
  double busy_seconds_ = 0;                    // of all requests together
  uint32_t peak_in_flight_ = 0;
};

}  // namespace cachalot::load
