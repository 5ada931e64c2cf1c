// ResumeReport sums up how soon conversations were answered when they came back, by what had happened meanwhile.
// Threads:   one thread.
// Ownership: owns its samples.
// Invariant: none.
// Cost:      some dozens of bytes per conversation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "load/prompt_text.h"
#include "load/resume_options.h"

namespace cachalot::load {

struct ResumeSample {
  Nanos ttft{0};     // what the client waits for its first token, `restore` included
  Nanos restore{0};  // of it: what the client has to ask for first
  Nanos per_token{0};
  uint64_t prompt_tokens = 0;
  std::optional<uint64_t> cached_tokens;  // absent: the server does not say
  std::string where;                      // its KV was, as the server said; may be empty
};

struct ResumeSetting {
  std::string url;
  std::string model;
  std::string way;
  ResumeOptions options;
  TokenFit fit;
};

class ResumeReport {
 public:
  explicit ResumeReport(ResumeSetting setting) : setting_(std::move(setting)) {}

  void Add(Rest rest, ResumeSample sample) { kinds_[rest].samples.push_back(std::move(sample)); }
  void AddSuspend(Rest rest, Nanos time) { kinds_[rest].suspends.push_back(time); }

  uint64_t count(Rest rest) const;
  // The middle one; of two, the lower.
  Nanos MedianTtft(Rest rest) const;

  std::string Table() const;
  std::string Json() const;

 private:
  struct Kind {
    std::vector<ResumeSample> samples;
    std::vector<Nanos> suspends;
  };
  // How many times sooner than the text that was never there; nothing without such a text.
  std::optional<double> TimesSooner(Rest rest) const;

  const ResumeSetting setting_;
  std::map<Rest, Kind> kinds_;
};

}  // namespace cachalot::load
