// ServeTrace runs the real engine in virtual time against the requests of a trace, which arrive when the trace says (an
// open loop).
// Threads:   a pure function.
// Ownership: none.
// Invariant: the same trace and options give the same report. Every request is answered or refused, and its tokens are
//            hit or computed: of those that finished, prompt tokens = cached + computed.
// Cost:      that of the engine's steps; memory linear in the blocks that the engine knows, in the requests that run or
//            wait, and in the samples.
//
// Where a trace tells the text of a request (trace_text.h), its prompt and answer are that. Else the text of a block is
// a function of its id, so that equal ids are equal text, and answers are not what a later request of the trace says:
// they come back as blocks that nobody computed, unless a request before had them in its prompt.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration_histogram.h"
#include "base/status.h"
#include "engine/engine.h"
#include "exec/sim/sim_executor.h"
#include "sim/sim_server.h"
#include "sim/trace.h"

namespace cachalot::sim {

struct ReplayedRequest {
  uint64_t index = 0;  // in the trace
  Nanos arrival{0};
  Nanos first_token{0};
  Nanos finish{0};
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;  // of the prompt: not computed
  uint64_t host_tokens = 0;    // of them: that came from host memory when it was asked for
  uint64_t disk_tokens = 0;
  uint64_t output_tokens = 0;
  std::string refusal;  // why it was not served; empty: it was
};

// The engine at one moment.
struct ServingSample {
  Nanos time{0};
  uint32_t running = 0;  // sequences
  uint32_t waiting = 0;  // requests
  double in_use = 0;     // share of the pool
  double idle = 0;       // kept for later requests
  uint64_t prompt_tokens_cached = 0;
  uint64_t prompt_tokens_computed = 0;
  uint64_t tokens_generated = 0;
  uint64_t tokens_computed = 0;  // prompts' and answers'
  uint64_t refault_tokens = 0;   // of them: that had been computed before, and were lost for want of room
  double refault_share = 0;
  double pressure = 0;       // share of the last 10 s in which some waited for KV
  double waste = 0;          // share of the bytes in blocks that hold no token
  uint64_t host_blocks = 0;  // there
  uint64_t disk_blocks = 0;
  // Since the beginning.
  TimeSpent spent;
  BytesMoved moved;
};

struct TraceServingOptions {
  engine::EngineOptions engine;
  exec::SimOptions model;
  uint32_t slots = 4096;
  SimTierOptions tiers;
  uint32_t max_tokens = 0;  // that each request asks for at least; it does for what the trace says and its answer has
  double rate = 1;          // requests come so much faster than the trace says
  bool tenants = true;      // those that the trace tells apart take turns, all with engine.terms
  bool sessions = false;    // requests name the sessions that the trace knows of them, as `kv.session` does
  Nanos sample_every{0};    // 0: no samples
  Nanos ttft_target{0};     // of goodput; 0: none
  // Told of each request once it is over, in that order. May be empty.
  std::function<void(const ReplayedRequest&)> on_request;
};

struct TraceServingReport {
  uint64_t served = 0;
  uint64_t refused = 0;
  std::string first_refusal;   // why the first was not served that was not; empty: all were
  uint64_t within_target = 0;  // of the served ones
  Nanos duration{0};           // from the first arrival to the last answer
  DurationHistogram ttft, itl, e2e;
  uint64_t prompt_tokens = 0;  // of those served
  uint64_t cached_tokens = 0;
  uint64_t host_tokens = 0;
  uint64_t disk_tokens = 0;
  uint64_t output_tokens = 0;
  TimeSpent time;  // adds up to `duration`
  BytesMoved moved;
  double mean_in_use = 0;  // share of the pool, over time
  double mean_waste = 0;   // share of the bytes in blocks that hold no token, over time
  std::vector<ServingSample> samples;
  engine::EngineStats last;
};

// Of output, that the request asks for.
uint32_t AskedOf(const TraceRequest& request, const TraceServingOptions& options);

// kInvalid when the options make no sense together, or for a trace without requests.
Result<TraceServingReport> ServeTrace(const Trace& trace, const TraceServingOptions& options);

}  // namespace cachalot::sim
