// Request and what else the engine keeps of those that wait and run.
// Threads:   engine thread.
// Ownership: a request owns its promise, its load and its stop conditions; sequences are the KvManager's.
// Invariant: until its prompt was computed to the end a request has one choice.
// Cost:      none.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/expected_blocks.h"
#include "engine/loading.h"
#include "kv/kv_manager.h"
#include "kv/prefix_watch.h"
#include "kv/slot_budget.h"
#include "sched/future_peak.h"
#include "sched/places.h"

namespace cachalot::engine {

// One sequence of a request. Its history is the prompt, then `output`, whose last token is not in the KV yet.
struct Choice {
  SequenceId sequence{0};  // 0: holds no KV
  std::vector<TokenId> output;
  std::unique_ptr<StopCondition> stop;
  bool finished = false;
  uint64_t computed = 0;       // tokens of its history that were in the KV when it was preempted
  uint64_t recomputes_to = 0;  // those up to here were computed before, by whomever, and lost not long ago
};

inline constexpr uint32_t kPatience = 16;  // how often a request is overtaken before it is next

// Slots of full attention that it would share.
struct SharedSlots {
  uint64_t all = 0;
  uint64_t idle = 0;  // that nobody uses now
};

// What those that run have, as admission sees it.
struct RunningLoad {
  uint32_t sequences = 0;
  std::vector<Load> held;  // by tenant

  // Of those that may be preempted, and those that have a guarantee.
  bool any_expected = false;
  uint64_t promised = 0;         // slots: the former's sliding ones, all of the latter's
  uint64_t largest = 0;          // slots of full attention that one of the former may take
  uint64_t held_slots = 0;       // of full attention, the former's
  sched::FuturePeakWith growth;  // of the former
};

// A tenant's waiting requests, while they are tried.
struct TenantQueue {
  TenantId tenant;
  std::span<const uint32_t> order;  // indices into waiting, from `first` on
  uint32_t first = 0;
  size_t next = 0;
  uint32_t admitted_end = 0;        // one past the last one admitted
  std::optional<uint32_t> refused;  // the first for which there was no room
  bool passed = false;              // after that, another tenant's was admitted
};

// A request's conversation among those that take part.
struct Place {
  sched::Places::Key key = 0;    // 0: the prompt has no whole block
  uint64_t slots = 0;            // that its KV takes, as far as it was said
  uint64_t resident_tokens = 0;  // that were there when it came back
  bool taken = false;
  Nanos since{0};
  Nanos started{0};  // when the request began to run
};

// A request that waits or runs. Until its prompt was computed to the end it has one choice, whose output is empty; then
// n, forked from the first.
struct Request {
  GenerateRequest asked;
  std::vector<Choice> choices;
  bool forked = false;
  uint32_t cached_tokens = 0;  // of the prompt, when it was first admitted
  uint32_t host_tokens = 0;    // of them: loaded from host memory
  uint32_t disk_tokens = 0;
  uint32_t overtaken = 0;  // while it waited
  bool awaits = false;     // a running request computes more of its prompt
  bool capped = false;     // its tenant has to end something first
  uint64_t arrival = 0;    // counts arrivals
  uint32_t preemptions = 0;
  uint32_t scored = 0;  // prompt tokens whose logprobs were told
  bool guaranteed = true;
  kv::PromisedSlots demand;  // when it was last admitted
  bool is_check = false;     // nobody asked for it: it computes again what `checked` holds
  SequenceId checked{0};
  kv::SlotPromise promise;
  Load load;
  Place place;
  std::optional<SessionReport> session;  // where it names one

  std::unique_ptr<Loading> loading;  // into its first sequence, which meanwhile grows up to what is loaded at most
  bool load_failed = false;          // once: it computes what it lacks
  Nanos arrived{0};
  uint64_t decision = 0;         // number of the last one of which no outcome is known; 0: none
  uint64_t loaded_tokens = 0;    // since then
  uint64_t computed_tokens = 0;  // rows that ran, whatever has become of them
  uint64_t failed_blocks = 0;

  // While it waits.
  bool fetched_ahead = false;
  std::optional<ExpectedBlocks::Hold> expected;  // once it is among the next, so far as it was to be found
  std::vector<TokenId> history;            // of one that came back: what its first open choice has to have in the KV
  std::unique_ptr<kv::PrefixWatch> watch;  // how much of that is resident
  kv::PendingBlock pending;                // that it awaited when it was last looked for

  uint64_t history_tokens(const Choice& choice) const { return asked.prompt.size() + choice.output.size(); }
  uint32_t open_choices() const;
  // That it has, or will have once it is forked.
  uint32_t sequences() const { return forked ? open_choices() : asked.n; }
  Choice& first_open() { return *std::ranges::find(choices, false, &Choice::finished); }
};

// A sequence that could run in this step.
struct Candidate {
  uint32_t request = 0;  // index into running
  uint32_t choice = 0;
};

enum class Admission : uint8_t {
  kAdmitted,
  kAwaits,   // a running request is computing more of its prompt
  kCapped,   // its tenant has all that it may have
  kOutside,  // its conversation has no place
  kNoRoom,
};

}  // namespace cachalot::engine
