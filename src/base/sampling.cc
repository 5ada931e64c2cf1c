#include "base/sampling.h"

#include <cmath>

#include <fmt/format.h>

namespace cachalot {
namespace {

// Lists what is wrong. A NaN fails every comparison, so ranges are tested as "inside", never as "outside".
class ProblemList {
 public:
  void Range(const char* field, float value, float low, float high) {
    if (!(value >= low && value <= high)) Add(field, value, fmt::format("must be between {} and {}", low, high));
  }
  void Above(const char* field, float value, float low, float high) {
    if (!(value > low && value <= high)) Add(field, value, fmt::format("must be above {} and at most {}", low, high));
  }
  void Add(const std::string& field, float value, const std::string& allowed) {
    list_.push_back(fmt::format("{} is {}; it {}", field, value, allowed));
  }
  void AddText(std::string problem) { list_.push_back(std::move(problem)); }
  std::vector<std::string> Take() && { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

void CheckBias(const SamplingParams& params, uint32_t vocabulary, ProblemList& problems) {
  for (size_t i = 0; i < params.logit_bias.size(); ++i) {
    const auto& [token, bias] = params.logit_bias[i];
    if (token >= vocabulary) {
      problems.AddText(fmt::format("logit_bias names token {}; the vocabulary has 0 to {}", token, vocabulary - 1));
    }
    if (i > 0 && params.logit_bias[i - 1].first >= token) {
      problems.AddText(fmt::format("logit_bias names token {} after token {}; each must be named once, ascending",
                                   token, params.logit_bias[i - 1].first));
    }
    problems.Range(fmt::format("logit_bias of token {}", token).c_str(), bias, -100.0f, 100.0f);
  }
}

}  // namespace

std::vector<std::string> Problems(const SamplingParams& params, uint32_t vocabulary) {
  ProblemList problems;
  problems.Range("temperature", params.temperature, 0.0f, 100.0f);
  problems.Above("top_p", params.top_p, 0.0f, 1.0f);
  problems.Range("min_p", params.min_p, 0.0f, 1.0f);
  problems.Above("repetition_penalty", params.repetition_penalty, 0.0f, 100.0f);
  problems.Range("presence_penalty", params.presence_penalty, -2.0f, 2.0f);
  problems.Range("frequency_penalty", params.frequency_penalty, -2.0f, 2.0f);
  CheckBias(params, vocabulary, problems);
  if (params.logprobs < -1 || params.logprobs > 20) {
    problems.AddText(fmt::format("logprobs is {}; it must be between -1 (none) and 20", params.logprobs));
  }
  return std::move(problems).Take();
}

}  // namespace cachalot
