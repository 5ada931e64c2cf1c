#include "sim/workload_maker.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "sim/trace_text.h"

namespace cachalot::sim {
namespace {

constexpr double kMinTokens = 1, kMaxTokens = 120'000;

}  // namespace

void Text::Add(const TextRun& run) {
  if (run.tokens == 0) return;
  runs.push_back(run);
  tokens += run.tokens;
}

void Text::Add(const Text& text) {
  for (const TextRun& run : text.runs) Add(run);
}

void Text::CutTo(uint64_t length) {
  while (tokens > length) {
    const uint64_t cut = std::min(runs.back().tokens, tokens - length);
    tokens -= cut;
    runs.back().tokens -= cut;
    if (runs.back().tokens == 0) runs.pop_back();
  }
}

WorkloadMaker::WorkloadMaker(const WorkloadOptions& options) : options_(options), random_(options.seed) {
  trace_.block_tokens = options.block_tokens;
}

double WorkloadMaker::Wait(double mean_seconds) { return -mean_seconds * std::log1p(-random_.Uniform()); }

double WorkloadMaker::Skewed(double median, double spread) {
  const double radius = std::sqrt(-2 * std::log1p(-random_.Uniform()));
  return median * std::exp(spread * radius * std::cos(2 * std::numbers::pi * random_.Uniform()));
}

uint64_t WorkloadMaker::Tokens(double median, double spread) {
  return static_cast<uint64_t>(std::clamp(Skewed(median, spread), kMinTokens, kMaxTokens));
}

size_t WorkloadMaker::Popular(size_t count) {
  constexpr double kExponent = -0.9;
  while (shares_.size() < count) {
    const double before = shares_.empty() ? 0 : shares_.back();
    shares_.push_back(before + std::pow(static_cast<double>(shares_.size() + 1), kExponent));
  }
  const auto end = shares_.begin() + static_cast<ptrdiff_t>(count);
  return static_cast<size_t>(std::lower_bound(shares_.begin(), end, Uniform() * shares_[count - 1]) - shares_.begin());
}

void WorkloadMaker::Append(Text& text, uint64_t tokens) {
  text.Add({.source = sources_++, .begin = 0, .tokens = tokens});
}

Text WorkloadMaker::Shared(uint64_t tokens) {
  Text text;
  Append(text, (tokens + options_.block_tokens - 1) / options_.block_tokens * options_.block_tokens);
  return text;
}

void WorkloadMaker::Request(double seconds, Text& text, uint64_t output_tokens, const Asker& asker) {
  TraceRequest request;
  request.arrival = Nanos(std::llround(seconds * 1e3) * 1'000'000);
  request.input_tokens = text.tokens;
  request.output_tokens = output_tokens;
  request.session = asker.session;
  request.tenant = asker.tenant;
  Append(text, output_tokens);
  request.text = text.runs;
  trace_.requests.push_back(std::move(request));
}

Trace WorkloadMaker::Take() && {
  std::ranges::stable_sort(trace_.requests, {}, &TraceRequest::arrival);
  trace_.requests.resize(std::min<size_t>(trace_.requests.size(), options_.requests));
  TextKeeper keeper(trace_);
  for (TraceRequest& request : trace_.requests) {
    const std::vector<uint32_t> words = WordsOf(trace_, request);
    keeper.NameBlocks(std::span(words).first(request.input_tokens), &request);
  }
  return std::move(trace_);
}

}  // namespace cachalot::sim
