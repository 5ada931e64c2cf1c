#include "sim/workload.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/random.h"

namespace cachalot::sim {
namespace {

constexpr uint32_t kMaxRequests = 10'000'000;
constexpr double kMinTokens = 1, kMaxTokens = 120'000;

// Text that grows: ids of its full blocks, and how many tokens it has.
struct Text {
  std::vector<uint64_t> full;
  uint64_t tokens = 0;
};

class Maker {
 public:
  explicit Maker(const WorkloadOptions& options) : options_(options), random_(options.seed) {
    trace_.block_tokens = options.block_tokens;
  }

  double Uniform() { return random_.Uniform(); }
  uint64_t Below(uint64_t limit) { return random_.Below(limit); }
  // Exponential with this mean.
  double Wait(double mean_seconds) { return -mean_seconds * std::log1p(-random_.Uniform()); }
  // Log-normal: half of all lie below the median; `spread` is the deviation of the logarithm.
  double Skewed(double median, double spread) {
    const double radius = std::sqrt(-2 * std::log1p(-random_.Uniform()));
    return median * std::exp(spread * radius * std::cos(2 * std::numbers::pi * random_.Uniform()));
  }
  uint64_t Tokens(double median, double spread) {
    return static_cast<uint64_t>(std::clamp(Skewed(median, spread), kMinTokens, kMaxTokens));
  }

  void Append(Text& text, uint64_t tokens) {
    text.tokens += tokens;
    while (text.full.size() < text.tokens / options_.block_tokens) text.full.push_back(next_id_++);
  }
  // Shared text ends with a full block, so that all that follow it share all of it.
  Text Shared(uint64_t tokens) {
    Text text;
    Append(text, (tokens + options_.block_tokens - 1) / options_.block_tokens * options_.block_tokens);
    return text;
  }
  void Request(double seconds, const Text& prompt, uint64_t output_tokens) {
    TraceRequest request{Nanos(std::llround(seconds * 1e3) * 1'000'000), prompt.tokens, output_tokens, prompt.full};
    if (prompt.tokens % options_.block_tokens != 0) request.blocks.push_back(next_id_++);
    trace_.requests.push_back(std::move(request));
  }

  bool done() const { return trace_.requests.size() >= options_.requests; }
  // Conversations were made one by one: puts their requests in order and drops what is too much.
  Trace Take() && {
    std::ranges::stable_sort(trace_.requests, {}, &TraceRequest::arrival);
    trace_.requests.resize(std::min<size_t>(trace_.requests.size(), options_.requests));
    return std::move(trace_);
  }

 private:
  const WorkloadOptions options_;
  SplitMix64 random_;
  Trace trace_;
  uint64_t next_id_ = 0;
};

// One talk that begins then: each turn the chance of another grows.
void Talk(Maker& make, Text text, double seconds) {
  for (int turn = 0;; ++turn) {
    make.Append(text, make.Tokens(turn == 0 ? 900 : 250, 1.2));
    const uint64_t output = make.Tokens(250, 0.8);
    make.Request(seconds, text, output);
    if (make.Uniform() > std::min(0.85, 0.4 + 0.1 * turn)) return;
    make.Append(text, output);
    seconds += make.Skewed(110, 0.9);
  }
}

void Chat(Maker& make) {
  std::vector<Text> systems;
  for (int i = 0; i < 4; ++i) systems.push_back(make.Shared(make.Tokens(800, 0.7)));
  for (double now = 0; !make.done(); now += make.Wait(0.5)) Talk(make, systems[make.Below(systems.size())], now);
}

void Agent(Maker& make) {
  std::vector<Text> tools;
  for (int i = 0; i < 3; ++i) tools.push_back(make.Shared(make.Tokens(5000, 0.4)));
  for (double now = 0; !make.done(); now += make.Wait(6)) {
    Text text = tools[make.Below(tools.size())];
    make.Append(text, make.Tokens(600, 0.8));
    double seconds = now;
    const uint64_t steps = 3 + make.Below(25);
    for (uint64_t step = 0; step < steps; ++step) {
      const uint64_t output = make.Tokens(120, 0.7);
      make.Request(seconds, text, output);
      make.Append(text, output + make.Tokens(500, 1.2));
      const bool asks_a_person = make.Uniform() < 0.08;
      seconds += 0.01 * static_cast<double>(output) + (asks_a_person ? make.Skewed(115, 1.0) : make.Skewed(1.5, 0.6));
    }
  }
}

void Rag(Maker& make) {
  const Text system = make.Shared(500);
  std::vector<Text> documents(2000);
  std::vector<double> share;  // of the first so many documents, not yet divided by the last
  double total = 0;
  for (size_t i = 0; i < documents.size(); ++i) {
    documents[i] = system;
    make.Append(documents[i], make.Tokens(4000, 0.7) / 512 * 512 + 512);
    share.push_back(total += std::pow(static_cast<double>(i + 1), -0.9));
  }
  for (double now = 0; !make.done(); now += make.Wait(0.4)) {
    const auto chosen = std::ranges::lower_bound(share, make.Uniform() * total) - share.begin();
    Text text = documents[static_cast<size_t>(chosen)];
    make.Append(text, make.Tokens(80, 0.8));
    make.Request(now, text, make.Tokens(200, 0.7));
  }
}

void Scan(Maker& make) {
  const Text system = make.Shared(1000);
  double burst = 120;
  for (double now = 0; !make.done(); now += make.Wait(1)) {
    Talk(make, system, now);
    if (now < burst) continue;
    for (int i = 0; i < 60; ++i) {
      Text text;
      make.Append(text, make.Tokens(16000, 0.5));
      make.Request(now + 0.2 * i, text, 20);
    }
    burst = now + make.Wait(300);
  }
}

using Workload = void (*)(Maker&);
constexpr std::string_view kNames[] = {"chat", "agent", "rag", "scan"};
constexpr Workload kWorkloads[] = {Chat, Agent, Rag, Scan};
static_assert(std::size(kNames) == std::size(kWorkloads));

}  // namespace

std::span<const std::string_view> WorkloadNames() { return kNames; }

Result<Trace> MakeWorkload(std::string_view name, const WorkloadOptions& options) {
  const auto found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) {
    return Invalid(fmt::format("unknown workload \"{}\": expected one of {}", name, fmt::join(kNames, ", ")));
  }
  if (options.block_tokens == 0 || options.requests > kMaxRequests) {
    return Invalid(fmt::format("{} requests in blocks of {} tokens: expected at most {}, and at least 1",
                               options.requests, options.block_tokens, kMaxRequests));
  }
  Maker make(options);
  kWorkloads[found - kNames](make);
  return std::move(make).Take();
}

}  // namespace cachalot::sim
