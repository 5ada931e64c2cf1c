#include "sim/papers/closed_loop.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/sim_server.h"

namespace cachalot::sim {

uint32_t LengthLaw::Draw(SplitMix64& random, uint32_t most) const {
  const double spread = std::sqrt(std::log1p(variation * variation));
  const double radius = std::sqrt(-2 * std::log1p(-random.Uniform()));
  const double normal = radius * std::cos(2 * std::numbers::pi * random.Uniform());
  const double tokens = mean * std::exp(spread * normal - spread * spread / 2);
  return static_cast<uint32_t>(std::clamp(std::round(tokens), 1.0, static_cast<double>(most)));
}

Result<ClosedLoopReport> ServeClosedLoop(const ClosedLoopOptions& options) {
  if (const auto problems = engine::Problems(options.engine); !problems.empty()) {
    return Invalid(fmt::format("{}", fmt::join(problems, "; ")));
  }
  CACHALOT_ASSIGN_OR_RETURN(const auto server, SimServer::Make(options.engine, options.model, options.slots));
  struct Open {
    Nanos arrival{0};
    Nanos last_token{0};
    bool begun = false;
  };
  ClosedLoopReport report;
  std::unordered_map<uint64_t, Open> open;  // by request id
  SplitMix64 random(1);
  for (size_t next = 0; next < options.requests.size() || !open.empty();) {
    engine::StepInput input;
    const Nanos begun = server->now();
    for (; next < options.requests.size() && open.size() < options.concurrency; ++next) {
      const RequestLengths& lengths = options.requests[next];
      engine::GenerateRequest& asked = input.arrivals.emplace_back();
      asked.id = RequestId(next + 1);
      for (uint32_t i = 0; i < lengths.prompt_tokens; ++i) {
        asked.prompt.push_back(static_cast<TokenId>(random.Below(options.model.vocabulary)));
      }
      asked.max_tokens = std::max(options.max_tokens, lengths.output_tokens);
      asked.sampling.temperature = 0;
      asked.stop = EndAfter(lengths.output_tokens);
      open[asked.id.value].arrival = begun;
    }
    const engine::StepOutput output = server->Step(std::move(input));
    if (!output.rejections.empty()) return Invalid(output.rejections.front().message);
    for (const engine::TokenEvent& event : output.tokens) {
      Open& request = open.at(event.id.value);
      if (request.begun) {
        report.itl.Add(server->now() - request.last_token);
      } else {
        report.ttft.Add(server->now() - request.arrival);
      }
      request.begun = true;
      request.last_token = server->now();
      ++report.output_tokens;
    }
    for (const engine::FinishEvent& event : output.finishes) open.erase(event.id.value);
    if (options.on_step) options.on_step(begun, server->now(), output.stats);
    report.last = output.stats;
  }
  report.duration = server->now();
  return report;
}

}  // namespace cachalot::sim
