#include "base/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace cachalot {
namespace {

constexpr uint32_t kVocabulary = 1000;

std::vector<std::string> ProblemsOf(const std::function<void(SamplingParams&)>& change) {
  SamplingParams params;
  change(params);
  return Problems(params, kVocabulary);
}

// One problem, which names all of `words`.
void ExpectProblem(const std::function<void(SamplingParams&)>& change, const std::vector<std::string>& words) {
  const std::vector<std::string> problems = ProblemsOf(change);
  ASSERT_EQ(problems.size(), 1u) << words[0];
  for (const std::string& word : words) EXPECT_NE(problems[0].find(word), std::string::npos) << problems[0];
}

TEST(SamplingProblems, DefaultsAndBoundsAreValid) {
  EXPECT_TRUE(Problems({}, kVocabulary).empty());
  SamplingParams params;
  params.temperature = 0;
  params.top_k = kVocabulary + 5;
  params.min_p = 1;
  params.presence_penalty = -2;
  params.frequency_penalty = 2;
  params.logit_bias = {{0, -100.0f}, {kVocabulary - 1, 100.0f}};
  params.logprobs = 20;
  EXPECT_TRUE(Problems(params, kVocabulary).empty());
}

TEST(SamplingProblems, NameTheFieldItsValueAndWhatIsAllowed) {
  ExpectProblem([](auto& p) { p.temperature = -0.5f; }, {"temperature", "-0.5", "between 0 and 100"});
  ExpectProblem([](auto& p) { p.temperature = 101; }, {"temperature", "101"});
  ExpectProblem([](auto& p) { p.top_p = 0; }, {"top_p", "is 0", "above 0 and at most 1"});
  ExpectProblem([](auto& p) { p.top_p = 1.25f; }, {"top_p", "1.25"});
  ExpectProblem([](auto& p) { p.min_p = -0.25f; }, {"min_p", "-0.25", "between 0 and 1"});
  ExpectProblem([](auto& p) { p.repetition_penalty = 0; }, {"repetition_penalty", "above 0"});
  ExpectProblem([](auto& p) { p.presence_penalty = 2.5f; }, {"presence_penalty", "2.5", "between -2 and 2"});
  ExpectProblem([](auto& p) { p.frequency_penalty = -3; }, {"frequency_penalty", "-3", "between -2 and 2"});
  ExpectProblem([](auto& p) { p.logprobs = 21; }, {"logprobs", "21", "20"});
  ExpectProblem([](auto& p) { p.logprobs = -2; }, {"logprobs", "-2", "-1"});
  ExpectProblem([](auto& p) { p.logit_bias = {{1000, 1.0f}}; }, {"logit_bias", "1000", "0 to 999"});
  ExpectProblem([](auto& p) { p.logit_bias = {{7, 100.5f}}; }, {"logit_bias", "token 7", "100.5", "-100 and 100"});
  ExpectProblem([](auto& p) { p.logit_bias = {{7, 1.0f}, {7, 2.0f}}; }, {"logit_bias", "token 7", "once"});
  ExpectProblem([](auto& p) { p.logit_bias = {{9, 1.0f}, {7, 2.0f}}; }, {"logit_bias", "token 7", "ascending"});
}

TEST(SamplingProblems, NanAndInfinityAreProblems) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    ExpectProblem([=](auto& p) { p.temperature = bad; }, {"temperature"});
    ExpectProblem([=](auto& p) { p.top_p = bad; }, {"top_p"});
    ExpectProblem([=](auto& p) { p.min_p = bad; }, {"min_p"});
    ExpectProblem([=](auto& p) { p.repetition_penalty = bad; }, {"repetition_penalty"});
    ExpectProblem([=](auto& p) { p.presence_penalty = bad; }, {"presence_penalty"});
    ExpectProblem([=](auto& p) { p.frequency_penalty = bad; }, {"frequency_penalty"});
    ExpectProblem([=](auto& p) { p.logit_bias = {{3, bad}}; }, {"logit_bias", "token 3"});
  }
}

TEST(SamplingProblems, ListsAllAtOnce) {
  EXPECT_EQ(ProblemsOf([](auto& p) {
              p.temperature = -1;
              p.top_p = 2;
              p.logprobs = 99;
            }).size(),
            3u);
}

}  // namespace
}  // namespace cachalot
