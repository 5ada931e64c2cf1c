#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "engine/engine.h"

namespace cachalot::eval {
namespace {

// Running sums of the scored tokens' negative log-likelihoods.
class Tally {
 public:
  void Add(double logprob) {
    sum_ -= logprob;
    squares_ += logprob * logprob;
    ++count_;
  }
  void EndChunk() { ++chunks_; }

  Perplexity Result() const {
    const auto n = static_cast<double>(count_);
    const double mean = sum_ / n;
    const double variance = std::max(0.0, squares_ / n - mean * mean);
    const double perplexity = std::exp(mean);
    return {perplexity, count_ > 1 ? perplexity * std::sqrt(variance / (n - 1)) : 0, count_, chunks_};
  }

 private:
  double sum_ = 0, squares_ = 0;
  uint64_t count_ = 0;
  uint32_t chunks_ = 0;
};

engine::GenerateRequest ChunkRequest(std::span<const TokenId> chunk, uint32_t index, std::optional<TokenId> bos) {
  engine::GenerateRequest request;
  request.id = RequestId(index);
  request.prompt.assign(chunk.begin(), chunk.end());
  if (bos) request.prompt.front() = *bos;
  request.max_tokens = 0;
  request.prompt_logprobs = 0;
  return request;
}

}  // namespace

Result<Perplexity> MeasurePerplexity(std::span<const TokenId> tokens, const PerplexityOptions& options,
                                     engine::Engine& engine, const PerplexityProgress& progress) {
  if (options.context < 4) return Invalid("chunks of at least 4 tokens are needed");
  auto chunks = static_cast<uint32_t>(tokens.size() / options.context);
  if (chunks < 2) {
    return Invalid(
        fmt::format("the text has {} tokens; at least two chunks of {} are needed", tokens.size(), options.context));
  }
  if (options.max_chunks != 0) chunks = std::min(chunks, options.max_chunks);

  // Chunks end in any order; their scores are added in order, so that the sum does not depend on the batching.
  std::vector<std::vector<float>> scores(chunks);
  std::vector<bool> done(chunks);
  Tally tally;
  uint32_t submitted = 0, finished = 0, added = 0;
  while (added < chunks) {
    engine::StepInput input;
    for (; submitted < chunks && submitted - finished < std::max(1u, options.parallel); ++submitted) {
      input.arrivals.push_back(
          ChunkRequest(tokens.subspan(uint64_t{submitted} * options.context, options.context), submitted, options.bos));
    }
    const engine::StepOutput output = engine.Step(std::move(input));
    if (!output.rejections.empty()) return Invalid(output.rejections.front().message);
    for (const engine::PromptEvent& event : output.prompts) {
      for (const SampledToken& token : event.tokens) scores[event.id.value].push_back(token.logprob);
    }
    for (const engine::FinishEvent& finish : output.finishes) {
      if (!finish.error.ok()) return finish.error;
      done[finish.id.value] = true;
      ++finished;
    }
    for (; added < chunks && done[added]; ++added) {
      // scores[i] belongs to token i + 1.
      for (size_t i = options.context / 2; i < scores[added].size(); ++i) tally.Add(scores[added][i]);
      tally.EndChunk();
      scores[added] = {};
      if (progress) progress(tally.Result());
    }
  }
  return tally.Result();
}

}  // namespace cachalot::eval
