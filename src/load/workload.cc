#include "load/workload.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "sim/read_trace.h"

namespace cachalot::load {

Session SyntheticWorkload::Make(uint64_t index) const {
  Session session;
  const TextKey key{.seed = options_.seed, .kind = TextKind::kTurn, .index = index, .part = 0};
  SplitMix64 random(~BitsOf(key));
  if (options_.prefixes > 0) {
    const uint64_t prefix = random.Below(options_.prefixes);
    AppendWords({.seed = options_.seed, .kind = TextKind::kPrefix, .index = prefix, .part = 0},
                WordsFor(options_.prefix_tokens, fit_), &session.prefix);
  }
  for (uint32_t i = 0; i < options_.turns; ++i) {
    Turn turn{.text = {}, .max_tokens = options_.max_tokens, .think = Nanos(0)};
    const double tokens = options_.prompt_tokens - (i == 0 ? fit_.extra_tokens : 0);
    AppendWords({.seed = options_.seed, .kind = TextKind::kTurn, .index = index, .part = i}, WordsFor(tokens, fit_),
                &turn.text);
    const double wait = -std::log1p(-random.Uniform()) * static_cast<double>(options_.mean_think.count());
    if (i > 0) turn.think = Nanos(static_cast<Nanos::rep>(wait));
    session.turns.push_back(std::move(turn));
  }
  return session;
}

Result<sim::Trace> ParseLoadTrace(std::string_view text) {
  constexpr sim::TraceLimits kLimits{.least_tokens = 1, .most_tokens = 4'000'000};
  CACHALOT_ASSIGN_OR_RETURN(
      sim::TraceFile file,
      sim::ReadTrace(text, {.format = "mooncake", .block_tokens = kTraceBlockTokens, .limits = kLimits}));
  return std::move(file.trace);
}

Session TraceWorkload::Make(uint64_t index) const {
  const sim::TraceRequest& request = trace_.requests.at(index);
  const uint64_t scaled = request.input_tokens * options_.block_tokens / kTraceBlockTokens;
  uint64_t tokens = std::max<uint64_t>(1, scaled);
  if (options_.max_prompt_tokens > 0) tokens = std::min<uint64_t>(tokens, options_.max_prompt_tokens);
  Turn turn;
  for (size_t i = 0; i < request.blocks.size() && tokens > 0; ++i) {
    const uint64_t of_block = std::min<uint64_t>(tokens, options_.block_tokens);
    AppendWords({.seed = options_.seed, .kind = TextKind::kTraceBlock, .index = request.blocks[i], .part = 0},
                WordsFor(static_cast<double>(of_block), fit_), &turn.text);
    tokens -= of_block;
  }
  const uint64_t most = options_.max_tokens == 0 ? UINT32_MAX : options_.max_tokens;
  turn.max_tokens = static_cast<uint32_t>(std::min(request.output_tokens, most));
  Session session;
  session.turns.push_back(std::move(turn));
  return session;
}

std::vector<Nanos> TraceWorkload::Times(double speed) const {
  std::vector<Nanos> times;
  for (const sim::TraceRequest& request : trace_.requests) {
    times.push_back(Nanos(static_cast<Nanos::rep>(static_cast<double>(request.arrival.count()) / speed)));
  }
  return times;
}

}  // namespace cachalot::load
