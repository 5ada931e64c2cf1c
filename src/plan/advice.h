// Advice: what holds a server back, and what to do about it in which order, by simulation.
// Threads:   plain data and pure functions; Simulate may use threads of its own.
// Ownership: none.
// Invariant: equal inputs give equal advice. What is advised was simulated, and was better by more than kLeastGain.
// Cost:      that of some thirty simulations.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/levers.h"
#include "plan/setting.h"

namespace cachalot::plan {

// One outcome per setting.
using Simulate = std::function<Result<std::vector<Outcome>>(std::span<const Setting>)>;

// What may hold a server back. Each is found by taking it away.
enum class Constraint : uint8_t {
  kCapacity,       // the pool is too small for those who are there at once
  kFragmentation,  // of what is allocated, too much holds no token
  kBandwidth,      // weights and KV are read too slowly
  kCompute,        // arithmetic
  kRecomputation,  // what is computed had been computed, and lost
};
inline constexpr std::array<std::string_view, 5> kConstraintNames = {"capacity", "fragmentation", "bandwidth",
                                                                     "compute", "recomputation"};

struct Probe {
  Constraint constraint;
  std::string what;  // was changed
  Setting setting;
  Outcome outcome;
  double gain = 1;  // times as good as the present
};

struct Advice {
  Lever lever;
  Outcome after;
  double gain = 1;
};

struct Diagnosis {
  Outcome present;
  Outcome alone;                    // each request without the others
  std::vector<Probe> probes;        // largest gain first
  bool waits = false;               // requests are held up by one another, or refused for want of what a probe adds
  std::optional<Constraint> binds;  // nothing, where they are not
  std::vector<Advice> advice;       // in the order in which to try them
  std::vector<Advice> rejected;     // no better, or worse
  std::vector<Advice> credits;      // what is in use: without it, and how many times as good it is with it
};

inline constexpr double kLeastGain = 1.05;

// How many times as good: more requests served (within the target, where there is one), and where as many are, the mean
// time from arrival to end.
double GainOf(const Outcome& before, const Outcome& after);

// What leaves the fewest requests unserved comes first; among those alike large gains: by steps of 2, 1.2 and
// kLeastGain; then what risks and costs least. What this server does not have comes last. kInvalid, with the first
// refusal, where no request is served.
Result<Diagnosis> Diagnose(const Present& present, const Simulate& simulate);

}  // namespace cachalot::plan
