// SimulateServing runs the real engine over a made-up model in virtual time, against clients that hold conversations:
// each sends the next turn some time after it got the answer, so slow answers slow the load (a closed loop).
// Threads:   a pure function.
// Ownership: none.
// Invariant: equal options give equal reports. Every request that arrives in the measured time is answered.
// Cost:      that of the engine's steps, and a few bytes per slot.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/engine.h"
#include "exec/sim/sim_executor.h"
#include "sim/sim_server.h"

namespace cachalot::sim {

// Uniform in [least, most].
struct TokenRange {
  uint32_t least = 1;
  uint32_t most = 1;
};

// What clients do. A conversation begins with the system prompt, the same for all, and text of its own; each turn sends
// all that was said so far. When one ends, its client begins another.
struct ClientOptions {
  uint32_t clients = 16;
  uint32_t system_tokens = 512;
  TokenRange first{100, 1000};  // of the first turn, after the system prompt
  TokenRange next{50, 250};     // of each turn after it
  TokenRange output{50, 250};
  TokenRange turns{4, 16};
  uint32_t max_tokens = 512;        // that each request asks for; the answer ends when it ends
  Nanos shortest_think{0};          // after an answer
  Nanos mean_think{2'000'000'000};  // of the rest, which is exponential
};

struct ServingOptions {
  uint64_t seed = 1;
  ClientOptions clients;
  engine::EngineOptions engine;
  exec::SimOptions model;
  uint32_t slots = 4096;
  SimTierOptions tiers;
  Nanos warm_up{0};
  Nanos measured{600'000'000'000};
  Nanos sample_every{0};  // 0: no samples
  // Told of the engine at the end of each step. May be empty.
  std::function<void(Nanos now, const engine::EngineStats& stats)> observe;
  // Whether a client may send the turn that it has ready, which may begin a conversation; else it is asked again with
  // the next step. When all are held back, nothing runs and nobody thinks, the time is over. Empty: all may.
  std::function<bool(uint32_t client, bool begins)> may_ask;
};

struct ServedRequest {
  uint32_t client = 0;
  uint32_t turn = 0;
  Nanos arrival{0};
  Nanos first_token{0};
  Nanos finish{0};
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;
  uint32_t recomputed_tokens = 0;  // of the prompt: computed, though they had been computed before
  uint32_t output_tokens = 0;
  Nanos ttft() const { return first_token - arrival; }
  bool operator==(const ServedRequest&) const = default;
};

// What the server had done by then.
struct LoadSample {
  Nanos at{0};
  TimeSpent time;
  BytesMoved moved;
};

struct ServingReport {
  std::vector<ServedRequest> requests;  // those that arrived in the measured time, by arrival
  Nanos measured{0};
  // In the measured time.
  uint64_t tokens_computed = 0;  // of prompts and outputs
  uint64_t tokens_recomputed = 0;
  uint64_t tokens_generated = 0;
  uint64_t preemptions = 0;
  TimeSpent time;
  BytesMoved moved;
  engine::EngineStats last;         // at its end
  std::vector<LoadSample> samples;  // from the beginning on

  // The time to first token that a share of the requests does not exceed; 0 without requests.
  Nanos Ttft(double share) const;
  // Requests per second that had their first token within `target`.
  double Goodput(Nanos target) const;
  double TokensPerSecond() const;
  double RecomputedShare() const;
  // Of the time in which somebody wanted something: that the model ran.
  double ComputeShare() const;
};

// kInvalid when the options make no sense together.
Result<ServingReport> SimulateServing(const ServingOptions& options);

}  // namespace cachalot::sim
