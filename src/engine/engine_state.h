// The engine's private state, shared by engine.cc (arrivals, endings), admission.cc and step.cc (the transaction).
// Threads:   engine thread.
// Ownership: owns all requests; see engine.h.
// Invariant: `running` holds requests in the order of their admission; each has a promise for all that it may still
//            take. Whatever stands in `waiting` holds no KV.
// Cost:      none.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cost/step_cost.h"
#include "cost/step_work.h"
#include "engine/engine.h"
#include "exec/device_memory.h"
#include "exec/executor.h"
#include "exec/sampler.h"
#include "kv/kv_manager.h"
#include "kv/kv_snapshot.h"
#include "kv/pin_table.h"
#include "kv/prefix_watch.h"
#include "kv/slot_budget.h"
#include "sched/fair_share.h"
#include "sched/future_peak.h"
#include "sched/load_or_recompute.h"
#include "sched/places.h"
#include "sched/step_plan.h"
#include "sched/thrash.h"
#include "sched/waiting_order.h"
#include "tier/kv_store.h"

namespace cachalot::engine {

// One sequence of a request. Its history is the prompt, then `output`, whose last token is not in the KV yet.
struct Choice {
  SequenceId sequence{0};  // 0: holds no KV
  std::vector<TokenId> output;
  std::unique_ptr<StopCondition> stop;
  bool finished = false;
  uint64_t computed = 0;  // tokens of its history that were in the KV when it was preempted
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

// KV that comes from a lower tier into a request's first sequence.
struct Loading {
  struct Part {
    tier::TransferId id;
    uint64_t first = 0;  // of the load's blocks
    uint64_t blocks = 0;
  };
  std::vector<kv::LoadCell> cells;  // by block, then by group
  std::vector<Digest> keys;         // of the history's blocks, from its beginning
  std::vector<uint32_t> groups;     // that the store has of each block of the load
  uint64_t first = 0;               // logical block of the load's first
  Nanos deadline{0};                // then it is late, and computed
  uint64_t started = 0;             // blocks of it that are or were under way
  uint64_t arrived = 0;
  std::vector<Part> under_way;
};

// A history whose KV is to be written to lower tiers.
struct Unwritten {
  PrefixScope scope;
  std::vector<TokenId> tokens;
  std::vector<Digest> keys;    // of its whole blocks
  uint64_t prompt_tokens = 0;  // of them
  uint64_t done = 0;           // blocks
};

// A request that waits or runs. Until its prompt was computed to the end it has one choice, whose output is empty; then
// n, forked from the first.
struct Request {
  GenerateRequest asked;
  std::vector<Choice> choices;
  bool forked = false;
  uint32_t cached_tokens = 0;  // of the prompt, when it was first admitted
  uint32_t overtaken = 0;      // while it waited
  bool awaits = false;         // a running request computes more of its prompt
  bool capped = false;         // its tenant has to end something first
  uint64_t arrival = 0;        // counts arrivals
  uint32_t preemptions = 0;
  uint32_t scored = 0;  // prompt tokens whose logprobs were told
  bool guaranteed = true;
  kv::PromisedSlots demand;  // when it was last admitted
  bool is_check = false;     // nobody asked for it: it computes again what `checked` holds
  SequenceId checked{0};
  kv::SlotPromise promise;
  Load load;
  Place place;
  uint64_t recomputes_to = 0;  // tokens of its history that it computes again, or had computed before

  std::unique_ptr<Loading> loading;  // while its first sequence is being filled: it takes no part in steps
  bool load_failed = false;          // once: it computes what it lacks

  // While it waits.
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

struct Engine::State {
  State(const EngineOptions& options_in, exec::Executor& executor_in, exec::DeviceMemory& memory_in,
        exec::Sampler& sampler_in, const ModelFacts& facts_in, std::unique_ptr<kv::EvictionPolicy> policy);

  // engine.cc
  void TakeCancels(const std::vector<RequestId>& cancels, std::vector<GenerateRequest>* arrivals, StepOutput* out);
  void TakeArrivals(std::vector<GenerateRequest> arrivals, StepOutput* out);
  std::optional<Rejection> Refuse(const GenerateRequest& asked) const;
  void Finish(Request& request, uint32_t choice, FinishReason reason, Status error, StepOutput* out);
  void DropFinished();
  void RenewLedger();
  EngineStats Stats() const;

  // inquiry.cc
  Answer AnswerTo(const Inquiry& inquiry);
  PrefixProbe Probe(const GenerateRequest& asked) const;

  // admission.cc
  // Puts a request among those that wait, by arrival.
  void Enqueue(Request request);
  // Tries those that wait, if anything has changed since they were last tried; or only those from `first` on.
  void AdmitWaiting();
  void TryWaiting(size_t first);
  void SurveyRunning();
  std::span<TenantQueue> QueueUp(size_t first);
  void TakeFrom(TenantQueue& queue, std::span<TenantQueue> all);
  void NoteOvertaken(std::span<const TenantQueue> queues);
  void NoteRefused(std::span<const TenantQueue> queues);
  void NotePassedBy(TenantId tenant);
  Admission TryAdmit(Request& request);
  void Start(Request& request, const SharedSlots& shared);
  kv::PrefixView FindFor(const Request& request);
  // With so many shared slots; exact for those that it has found.
  bool Fits(const Request& request, const SharedSlots& shared) const;
  bool FitsWithExpected(const Request& request, uint64_t more) const;
  uint64_t ExpectedGrowth(const Request& request, const SharedSlots& shared) const;
  sched::GrowthView GrowthOf(const Request& request) const;
  // What must be promised: full attention and the rest, each at its own worst moment. What is more can never run.
  kv::PromisedSlots DemandOf(const GenerateRequest& asked, uint32_t sequences) const;
  // The tokens that the choice has to have in the KV, and how many of them a hit may skip.
  std::span<const TokenId> HistoryOf(const Request& request, const Choice& choice);
  uint64_t SkippableOf(const Request& request, const Choice& choice) const;
  void Attach(Request& request, Choice& choice, bool whole = false);
  void AttachParked();
  void NoteTaken(Request& request, uint64_t full_slots);
  void TrimPromise(Request& request);
  uint32_t RunningSequences() const;
  // Sequences that may run at once.
  uint32_t sequence_limit() const { return options.max_sequences; }
  // Most rows of one sequence in a step.
  uint32_t step_tokens_limit() const { return std::min(options.step_rows, options.prefill_chunk); }

  // caps.cc
  const TenantTerms& TermsOf(TenantId tenant) const;
  Load LoadOf(const GenerateRequest& asked) const;
  // Of a request that its terms never allow, whatever runs.
  std::optional<Rejection> RefuseByTerms(const GenerateRequest& asked, const Load& load) const;
  std::optional<Rejection> RefuseByQueue(const GenerateRequest& asked) const;

  // places.cc
  void FindPlace(Request& request);
  bool MayGoOn(const Request& request, bool kept, uint64_t known_tokens);
  void GivePlaces();
  void TakeBackPlaces();
  void LeavePlace(const Request& request);
  std::optional<uint64_t> PlaceLimit() const;  // slots
  bool HasPlaceFor(const Request& request) const;
  uint64_t TakenSlots() const;
  uint32_t Outside() const;  // requests that wait for a place
  void NoteRefaults(Request& request, const Choice& choice, const kv::AttachedPrefix& attached);
  void ObserveThrash();

  // hit_check.cc
  void SampleHit(const Request& request, uint64_t hit_tokens);
  void FinishCheck(Request& check, StepOutput* out);
  bool SameBlocks(SequenceId a, SequenceId b);
  void Poison(const Status& error, StepOutput* out);

  // retention.cc
  RetentionHints HintsOf(const GenerateRequest& asked) const;
  void EndRetention();
  std::optional<Nanos> NextRetentionEnd() const;
  RetentionReport Retain(const Request& request, const Choice& choice, uint64_t computed);
  void ScrubFreed();

  // preemption.cc
  // Makes room for the planned growth.
  void PreemptForGrowth();
  void Preempt(uint32_t index);
  void Requeue(uint32_t index);

  // tiers.cc
  std::unique_ptr<Loading> PlanLoad(const Request& request, const Choice& choice);
  void BeginLoad(Request& request, Choice& choice, std::unique_ptr<Loading> loading);
  sched::Decision WayOf(uint64_t prompt, uint64_t resident, uint64_t end, uint64_t bytes) const;
  void PumpLoad(Request& request, std::span<const TokenId> tokens);
  void PollStore();
  void NoteStoreHealth();
  void TakeLoaded(uint32_t index, const Loading::Part& part, const tier::KvStore::Ended& ended);
  void CopyIn(const Loading& loading, const Loading::Part& part, std::span<const std::byte> bytes);
  void FailLoad(uint32_t index);
  void AbandonLoad(Request& request);
  // Leading tokens that could be loaded if nothing were resident.
  uint64_t StoredTokens(const PrefixScope& scope, std::span<const TokenId> tokens) const;
  std::optional<Nanos> NextDue() const;
  void NoteUnwritten(const Request& request, const Choice& choice, uint64_t computed);
  void WriteBehind();
  Status ClearStore();
  void AddTierStats(TierStats* stats) const;
  bool WriteSome(Unwritten& item, uint32_t* runs);
  uint32_t GroupsToWrite(const Unwritten& item, uint64_t block, std::span<const uint32_t> slots) const;
  bool WriteRun(tier::KvRun run, std::span<const uint32_t> slots);
  uint64_t BlocksOfRun(std::span<const uint32_t> groups) const;
  tier::KvRun RunOf(std::span<const TokenId> tokens, std::span<const Digest> keys, uint64_t first,
                    std::span<const uint32_t> groups) const;

  // step_time.cc
  // The step before this one took so long.
  void LearnStep(Nanos duration);
  cost::StepWork WorkOf(const exec::Batch& batch) const;
  // What it would take to have the request's KV again.
  double RecomputeSeconds(const Request& request) const;
  // Until all that runs and waits has been answered.
  double BacklogSeconds();

  // step.cc
  void RunStep(StepOutput* out);
  void PlanRows();
  void ListRows();
  exec::Batch BuildBatch();
  void ApplyLogits(const exec::Logits& logits, StepOutput* out);
  void AdvancePrompt(Request& request, const sched::PlannedRows& planned, const exec::Logits& logits,
                     uint32_t first_row, StepOutput* out);
  void ScorePrompt(Request& request, const sched::PlannedRows& planned, const exec::Logits& logits, uint32_t first_row,
                   StepOutput* out);
  void SampleNext(Request& request, uint32_t choice, std::span<const float> logits, StepOutput* out);
  void FailStep(const Status& error, StepOutput* out);

  const EngineOptions options;
  exec::Executor& executor;
  exec::DeviceMemory& memory;
  exec::Sampler& sampler;
  tier::KvStore* const store;  // null: there is no lower tier
  const Digest identity;
  cost::StepCost step_cost;
  kv::KvManager kv;
  const cost::WorkShape work_shape;
  const kv::KvGeometry full_part, sliding_part;  // of kv.geometry()
  kv::SlotBudget budget;
  kv::PinTable pins;
  std::deque<Request> waiting;  // by arrival
  std::deque<Request> running;
  sched::OutputLengths output_lengths;
  uint64_t last_arrival = 0;
  Status poison;  // kOk, unless a verified hit differed
  sched::FairShare fair_share;
  sched::Places places;
  sched::Thrash thrash{kv.geometry().slots};
  sched::ThrashInput since_observed;                      // requests that ended since thrash last observed
  uint64_t observed_computed = 0, observed_refaults = 0;  // tokens, when it last did
  bool admission_due = false;   // something came, or gave room, since waiting requests were last tried
  bool awaits_running = false;  // one of them waits for a running one: they are tried in every step
  bool settled = false;         // all that wait were tried in this step, and none was admitted since
  bool turn_kept = false;       // then: as many run as may, or one whose turn it is found no room and nobody passes it
  std::vector<uint64_t> refused_arrivals;  // of those that found no room when all were tried last; one per tenant
  bool draining = false;
  std::deque<Unwritten> unwritten;  // the oldest first
  bool store_is_full = false;       // until something that is under way ends
  bool store_was_well = true;       // when it was last looked at
  Nanos retry_store_at{0};
  Nanos now{0};  // of the step
  EngineStats totals;
  Nanos ledger_at{0};                         // when totals.ledger was made
  std::optional<exec::CopyTicket> last_copy;  // to be waited for before a step runs
  std::optional<cost::StepWork> last_work;    // of the last step, until its duration is known
  std::optional<double> backlog_seconds;      // in this step

  // Of the step in progress; kept to reuse their memory.
  std::vector<Candidate> candidates;
  std::vector<sched::RunnableView> runnable;
  std::vector<sched::PlannedRows> plan;  // index: into candidates
  std::vector<TokenId> step_tokens;      // rows of the plan, in its order
  std::vector<kv::Growth> growth;        // per planned sequence
  std::vector<PageTableRef> step_pages;
  std::vector<exec::SequenceRows> step_sequences;
  std::vector<TokenId> history;  // of HistoryOf

  // Of TryWaiting; kept to reuse their memory.
  RunningLoad survey;
  std::vector<sched::GrowthView> growth_views;
  std::vector<sched::WaitingView> waiting_views;
  sched::WaitingOrder waiting_order;
  std::vector<TenantQueue> tenant_queues;
  std::vector<uint32_t> admitted;  // indices into waiting
  std::vector<std::byte> zeros;    // a slot's, for ScrubFreed
};

}  // namespace cachalot::engine
