#include "sim/workload_maker.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>

namespace cachalot::sim {
namespace {

constexpr double kMinTokens = 1, kMaxTokens = 120'000;

// Traces count milliseconds.
Nanos MomentOf(double seconds) { return Nanos(std::llround(seconds * 1e3) * 1'000'000); }

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

WorkloadMaker::WorkloadMaker(const WorkloadOptions& options, Kept kept, Trace& trace, const RequestSink& sink)
    : options_(options), sink_(sink), trace_(trace), keeper_(trace, kept), random_(options.seed) {
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
  request.arrival = MomentOf(seconds);
  request.input_tokens = text.tokens;
  request.output_tokens = output_tokens;
  request.session = asker.session;
  request.tenant = asker.tenant;
  Append(text, output_tokens);
  request.text = text.runs;
  ++made_;
  due_.emplace(request.arrival, std::move(request));
}

bool WorkloadMaker::GoesOn(double seconds) {
  GiveUntil(MomentOf(seconds));
  return status_.ok() && made_ < options_.requests;
}

Status WorkloadMaker::Finish() && {
  GiveUntil(Nanos::max());
  return status_;
}

void WorkloadMaker::GiveUntil(Nanos moment) {
  while (!due_.empty() && due_.begin()->first <= moment && given_ < options_.requests && status_.ok()) {
    TraceRequest request = std::move(due_.extract(due_.begin()).mapped());
    const std::vector<uint32_t> words = WordsOf(trace_, request);
    keeper_.NameBlocks(std::span(words).first(request.input_tokens), &request);
    ++given_;
    status_ = sink_(std::move(request), trace_.block_tokens);
  }
}

}  // namespace cachalot::sim
