// LeversOf lists what can be changed about a way to serve, each as the setting with the change made: whether it helps,
// a simulation says.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: a lever differs from the present in what its name says and in nothing else; one that changes nothing is
//            not listed.
// Cost:      that of a few plans.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/setting.h"

namespace cachalot::plan {

// What it takes, cheapest first.
enum class Price : uint8_t { kFlag, kClients, kMemory, kModel, kNotHere };
// What it may do to answers.
enum class Risk : uint8_t {
  kNone,     // the same bits
  kRefuses,  // some requests are refused, or answers cut
  kQuality,  // other answers, perhaps worse
};
std::string_view NameOf(Price price);
std::string_view NameOf(Risk risk);

struct Lever {
  std::string name;
  std::string flags;  // of `cachalot serve`; empty where this server has none
  Setting setting;
  Price price = Price::kFlag;
  Risk risk = Risk::kNone;
  std::string note;
};

// What of the traffic levers depend on.
struct TrafficFacts {
  uint64_t context_p99 = 0, context_most = 0;  // tokens
  uint64_t output_p90 = 0, output_most = 0;
  uint64_t distinct_tokens = 0;  // KV of all text, each prefix once
  uint64_t asked_most = 0;       // tokens of output that a request asks for; 0: not known
  bool reorder = false;          // prompts have text in common that no prefix cache finds
  std::string reorder_note;
};

struct Present {
  Setting setting;
  PlanRequest request;    // of the model and machine; its shards are those in use
  uint64_t kv_bytes = 0;  // as given; 0: what the device has left
  TrafficFacts traffic;
};

std::vector<Lever> LeversOf(const Present& present);
// What is in use already: each with the setting without it.
std::vector<Lever> CreditsOf(const Present& present);

}  // namespace cachalot::plan
