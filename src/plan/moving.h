// Moving: loading a session's KV over a link against computing it again, as the server's own policy weighs them.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: estimates are those of sched::ChooseResume for one idle session and nobody else running.
// Cost:      O(log tokens) estimates per link.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/step_curve.h"
#include "base/tier_rate.h"
#include "plan/machine.h"
#include "plan/model_shape.h"
#include "plan/sizing.h"

namespace cachalot::plan {

// All devices of a group move their parts over links of their own, at the same time.
struct MovedSession {
  KvSizes sizes;  // of one device
  StepCurve curve{};
  uint32_t context_shards = 1;
  std::vector<uint32_t> windows;  // of all attention layers, those that keep no KV of their own too
};

MovedSession SessionOf(const ModelShape& model, const Format& weights, const KvSizes& on_device,
                       const Machine& machine);

struct Move {
  uint64_t bytes = 0;  // over one device's link
  double load_seconds = 0;
  double recompute_seconds = 0;
  std::optional<double> both_seconds;         // computing from the front, loading from the back
  std::string_view choice;                    // of the policy: "load", "recompute" or "both"
  std::optional<uint64_t> break_even_tokens;  // from here on loading is sooner; none up to the limit
};

double RecomputeSeconds(const MovedSession& session, uint64_t tokens);
Move PlanMove(const MovedSession& session, const TierRate& rate, uint64_t tokens, uint64_t limit_tokens);

}  // namespace cachalot::plan
