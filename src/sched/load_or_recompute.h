// ChooseResume says how a sequence gets the KV of its prompt that the hot pool lacks: by loading it from lower tiers,
// by computing it again, or by both at once.
// Threads:   plain data and pure functions.
// Ownership: a Decision owns a copy of what it was made from.
// Invariant: equal inputs give equal decisions. What is awaited takes no longer than a step, as far as is known: past
//            that, computing starts at once.
// Cost:      O(spans^2 (spans + log blocks)); spans are few.
//
// A way costs what its sequence waits for its first token, plus what its rows delay each running sequence, times those.
// Where there is a TTFT target, only ways that meet it count; if none does, the soonest wins. What is available
// follows the hot tokens as spans in order of position, one or more per tier. A way takes the first spans, loads some
// of them before it computes anything, and lets the loader meet the computation in the others (sched/meeting.h): the
// front computes upward, the loader comes down from the end, as Cake does (Jin et al., 2024).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/tier_rate.h"

namespace cachalot::cost {
class StepCost;
class WorkShape;
}  // namespace cachalot::cost

namespace cachalot::sched {

// Consecutive tokens that a tier has.
struct TierSpan {
  TierId tier = TierId::kHost;
  uint64_t tokens = 0;
  uint64_t full_bytes = 0;    // of the groups that need every block
  uint64_t window_bytes = 0;  // of the sliding groups, to go on at its end: only the last window of each
  bool resumable = true;      // one can go on at its end: all windows before it are there
};

struct LinkView {
  TierRate rate;
  uint64_t queued_bytes = 0;  // that would be moved before
};

struct ResumeView {
  uint64_t prompt_tokens = 0;
  uint64_t hot_tokens = 0;                        // of them, resident; the spans follow
  std::vector<TierSpan> spans;                    // in order of position
  std::array<LinkView, kTierNames.size()> links;  // up, by TierIndex
  uint32_t block_tokens = 16;
  uint32_t step_rows = 512;                   // of a prompt in one step
  double patience_steps = 1;                  // a load that takes longer than so many steps is not awaited
  uint32_t running = 0;                       // sequences that generate
  double running_seconds = 0;                 // that their rows take in each step
  std::optional<double> ttft_target_seconds;  // what is left of it
};

enum class ResumeWay : uint8_t { kRecompute = 0, kLoad = 1, kBoth = 2 };
inline constexpr std::array<std::string_view, 3> kResumeWayNames = {"recompute", "load", "both"};

enum class ResumeReason : uint8_t {
  kNothingToLoad = 0,    // no tier has more
  kLeastDelay = 1,       // for the sequence and those that run
  kLoadExceedsStep = 2,  // loading alone would delay least, but takes longer than one waits without computing
  kMeetsTarget = 3,      // others delay less and miss the target
  kNearestTarget = 4,    // none meets it
};
inline constexpr std::array<std::string_view, 5> kResumeReasonNames = {
    "nothing to load", "least delay", "load exceeds a step", "meets the target", "nearest to the target"};

struct ResumeEstimate {
  uint64_t end_token = 0;   // before it all is hot, loaded or met; from it on it is computed
  uint64_t meets_from = 0;  // before it all is hot or loaded before anything is computed; end_token: nothing is met
  uint64_t meets_at = 0;    // where the front is then thought to meet the loader
  uint64_t load_bytes = 0;
  uint64_t computed_tokens = 0;
  double load_seconds = 0;  // until the last load has arrived
  double wait_seconds = 0;  // of them, before anything is computed
  double ttft_seconds = 0;
  double delay_seconds = 0;  // of each running sequence, in all
  double cost_seconds = 0;   // ttft + running * delay
  bool operator==(const ResumeEstimate&) const = default;
};

// What ended it.
enum class ResumeEnd : uint8_t {
  kFirstToken = 0,
  kDecidedAgain = 1,  // a part was there, the load was given up, or the request was preempted
  kRequestEnded = 2,  // before its first token
};
inline constexpr std::array<std::string_view, 3> kResumeEndNames = {"first token", "decided again", "request ended"};

// Until then.
struct ResumeOutcome {
  ResumeEnd end = ResumeEnd::kFirstToken;
  std::optional<double> ttft_seconds;  // of kFirstToken
  uint64_t loaded_tokens = 0;
  uint64_t computed_tokens = 0;
  uint64_t failed_blocks = 0;
};

struct Decision {
  ResumeView view;
  double step_seconds = 0;  // a step with a full chunk of this prompt
  ResumeWay way = ResumeWay::kRecompute;
  ResumeReason reason = ResumeReason::kNothingToLoad;
  // The best of each way; a load that takes too long to be awaited only where there is no other.
  std::array<std::optional<ResumeEstimate>, kResumeWayNames.size()> estimates;
  std::optional<ResumeOutcome> outcome;  // once it is known

  const ResumeEstimate& chosen() const { return *estimates[static_cast<size_t>(way)]; }
};

// Whether loading all of it, however long that takes, delays less than computing it: what comes up ahead comes alone.
bool LoadPays(const Decision& decision);

Decision ChooseResume(const ResumeView& view, const cost::WorkShape& shape, const cost::StepCost& cost);

// For the log, one line, e.g. "both (least delay): of 1025 prompt tokens 0 are hot and 512 loaded, ...".
std::string DecisionLine(const Decision& decision);
Json DecisionAsJson(const Decision& decision);

}  // namespace cachalot::sched
