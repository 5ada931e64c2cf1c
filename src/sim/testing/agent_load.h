// AgentLoad is what thrash is measured with: agents of 8 to 24 steps with tools, on a model of about 8B parameters and
// a pool of 262,144 tokens, which holds some twelve of their contexts.
// Threads:   a pure function.
// Ownership: none.
// Invariant: equal arguments give equal options.
// Cost:      none.
#pragma once

#include "sim/serving.h"

namespace cachalot::sim {

// Their working sets are 0.5 times the pool for 7 agents, 1.5 times for 22, 3 times for 44.
inline ServingOptions AgentLoad(uint32_t agents, bool thrash_control) {
  ServingOptions options;
  options.clients = {.clients = agents,
                     .system_tokens = 4096,
                     .first = {2000, 8000},
                     .next = {400, 2400},
                     .output = {50, 250},
                     .turns = {8, 24},
                     .max_tokens = 512,
                     .shortest_think = std::chrono::milliseconds(500),
                     .mean_think = std::chrono::milliseconds(1500)};
  // 10 ms for a step, 20,000 prompt tokens per second in short contexts, 7,000 at 25,000 tokens.
  options.model.curve = {0.01, 5e-5, 4e-9, 0, 2e-5};
  options.slots = 16384;
  options.engine.thrash_control = thrash_control;
  options.warm_up = std::chrono::seconds(400);
  options.measured = std::chrono::seconds(600);
  return options;
}

// 100 s of warm-up and as many measured.
inline ServingOptions Short(ServingOptions options) {
  options.warm_up = options.measured = std::chrono::seconds(100);
  return options;
}

inline ServingReport Served(const ServingOptions& options) { return std::move(SimulateServing(options)).value(); }

inline double MeanTtft(const ServingReport& report) {
  double sum = 0;
  for (const ServedRequest& request : report.requests) sum += ToSeconds(request.ttft());
  return sum / static_cast<double>(report.requests.size());
}

}  // namespace cachalot::sim
