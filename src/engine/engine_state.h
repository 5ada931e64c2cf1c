// The engine's private state, shared by engine.cc (arrivals, endings), admission.cc and step.cc (the transaction).
// Threads:   engine thread.
// Ownership: owns all requests; see engine.h.
// Invariant: `running` holds requests in the order of their admission; each has a promise for all that it may still
//            take. Whatever stands in `waiting` holds no KV.
// Cost:      none.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cost/step_cost.h"
#include "cost/step_work.h"
#include "cost/tier_rates.h"
#include "engine/engine.h"
#include "engine/engine_parts.h"
#include "engine/session_file.h"
#include "engine/session_move.h"
#include "engine/sessions.h"
#include "engine/way_down.h"
#include "engine/way_up.h"
#include "exec/device_memory.h"
#include "exec/executor.h"
#include "exec/sampler.h"
#include "kv/kv_snapshot.h"
#include "kv/pin_table.h"
#include "sched/fair_share.h"
#include "sched/places.h"
#include "sched/step_plan.h"
#include "sched/thrash.h"
#include "sched/waiting_order.h"
#include "tier/durable_sessions.h"
#include "tier/host_tier.h"
#include "tier/kv_store.h"
#include "tier/session_archive.h"

namespace cachalot::engine {

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
  void Start(Request& request, const SharedSlots& shared, std::unique_ptr<Loading> taken_over);
  kv::PrefixView FindFor(const Request& request);
  // With so many shared slots; exact for those that it has found. `freed`: by others, before it begins.
  bool Fits(const Request& request, const SharedSlots& shared, uint64_t freed = 0) const;
  SharedSlots SharedOf(const kv::PrefixView& found, const Loading* taken_over) const;
  bool FitsWithExpected(const Request& request, uint64_t more, uint64_t freed = 0) const;
  bool FitsBeside(uint64_t slots) const;
  uint64_t ExpectedGrowth(const Request& request, const SharedSlots& shared) const;
  sched::GrowthView GrowthOf(const Request& request) const;
  // What must be promised: full attention and the rest, each at its own worst moment. What is more can never run.
  kv::PromisedSlots DemandOf(const GenerateRequest& asked, uint32_t sequences) const;
  // The tokens that the choice has to have in the KV, and how many of them a hit may skip.
  std::span<const TokenId> HistoryOf(const Request& request, const Choice& choice);
  uint64_t SkippableOf(const Request& request, const Choice& choice) const;
  void Attach(Request& request, Choice& choice, Loading* loading = nullptr);
  void AttachParked();
  void NoteTaken(Request& request, uint64_t full_slots);
  void TrimPromise(Request& request);
  uint32_t RunningSequences() const;
  // Most rows of one sequence in a step.
  uint32_t step_tokens_limit() const { return std::min(options.step_rows, options.prefill_chunk); }

  // caps.cc
  const TenantTerms& TermsOf(TenantId tenant) const;
  Load LoadOf(const GenerateRequest& asked) const;
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
  void NoteLost(const Request& request, Choice& choice, const kv::AttachedPrefix& attached) const;
  void CountRepeats();
  void ObserveThrash();

  // hit_check.cc
  void SampleHit(const Request& request, uint64_t hit_tokens);
  void FinishCheck(Request& check, StepOutput* out);
  Result<bool> SameBlocks(SequenceId a, SequenceId b);
  void Poison(const Status& error, StepOutput* out);

  // session_history.cc
  std::optional<Rejection> RefuseBySession(const GenerateRequest& asked) const;
  void TakeFoundSessions();
  void BeginSession(Request& request);
  void UseSession(const SessionName& name);
  bool InUse(const SessionName& name) const;
  void KeepHistory(Request& request, const Choice& choice);
  bool PutSession(Session session, Nanos used_at, bool must = false);
  void EraseSession(const SessionName& name);
  Result<std::optional<tier::TransferId>> DeleteSession(const SessionName& name);
  void EndSessions();
  void PinSession(const SessionName& name);
  void LetGoOfPin(const SessionName& name);
  void EndSessionPins();
  uint64_t SharedTokens(const SessionName& name, const Session& session, bool hot_only) const;

  // session_commands.cc
  void TakeSessionCommands(std::vector<SessionCommand> commands, StepOutput* out);
  void BeginCommand(const SessionCommand& command, SessionMove* move);
  void ListSessions(const SessionCommand& command, SessionAnswer* answer) const;
  void BeginFork(const std::string& id, SessionMove* move);
  void BeginPin(bool pinned, SessionMove* move);

  // session_view.cc
  SessionView ViewOf(const SessionName& name, const Session& session) const;
  void AddPlaces(const Session& session, SessionView* view) const;
  uint32_t GroupsListed(std::span<const uint32_t> slots, size_t block) const;

  // session_files.cc
  void BeginSave(const std::string& file_name, SessionMove* move);
  void StartSave(SessionMove* move);
  void BeginRestore(const SessionCommand& command, SessionMove* move);
  void PollFile();
  uint64_t PartBlocks() const;
  Status SaveOn();
  Result<std::vector<uint32_t>> NextPart();
  Status RestoreOn(const tier::SessionArchive::Ended& ended, SessionMove* move);
  Status PutRestored(const tier::ArchiveHeader& header, SessionMove* move);
  bool BeginFill(const tier::ArchiveHeader& header);
  Status FillOn(const tier::SessionArchive::Ended& part);
  void EndFile(const Status& status, SessionMove* move);

  // session_moves.cc
  void PollSessions(StepOutput* out);
  void NoteSessionHealth();
  void NoteSynced(const tier::DurableSessions::Ended& ended);
  void NoteWritten(SessionMove& move);
  void NoteErased(const tier::KvStore::Ended& ended);
  void EndSuspend(SessionMove* move);
  void HandDownIdle();
  void AwaitSync(SessionMove* move);
  void BeginSuspend(SessionMove* move);
  void SetSuspended(const SessionName& name, bool suspended);
  void BeginResume(const SessionCommand& command, SessionMove* move);
  void NotePrefetched(const PrefetchEnd& ended);
  bool IsMoving(const SessionName& name) const;
  void FailMoves(const SessionName& name, const Status& status);
  void EndMove(SessionMove move, StepOutput* out);
  std::optional<Nanos> NextSessionDue() const;
  void AddSessionStats(SessionStats* stats) const;

  // retention.cc
  RetentionHints HintsOf(const GenerateRequest& asked) const;
  void EndRetention();
  std::optional<Nanos> NextRetentionEnd() const;
  RetentionReport Retain(const Request& request, const Choice& choice, uint64_t computed);
  void ScrubFreed();

  // preemption.cc
  void PreemptForGrowth();
  void Preempt(uint32_t index);
  void Requeue(uint32_t index);

  // tiers_up.cc
  bool HasLowerTiers() const;
  TierRate RateOf(TierId tier) const;
  uint64_t QueuedBytes(TierId tier, tier::TransferPriority priority) const;
  bool AppendStored(const Digest& key, StoredBlocks* stored) const;
  StoredBlocks FindStored(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t first) const;
  std::vector<sched::TierSpan> SpansOf(const StoredBlocks& stored, const sched::Meeting* meeting) const;
  sched::Decision Decide(const Request* request, uint64_t tokens, const StoredBlocks& stored,
                         const sched::Meeting* meeting = nullptr) const;
  std::unique_ptr<Loading> PlanLoad(Request& request, const Choice& choice);
  void Schedule(Loading& loading, const sched::Decision& decision, bool at_once) const;
  std::unique_ptr<Loading> MakeLoading(std::span<const TokenId> tokens, StoredBlocks stored) const;
  static kv::SlotPromise* PromiseOf(Request& request);
  void StartLoad(Request& request, const Choice& choice, std::unique_ptr<Loading> loading);
  void SettleLoads();
  void EndLoadOf(Request& request);
  void AbandonLoad(Request& request);
  void PollStore();
  void NoteStoreHealth();
  // Leading tokens that could be loaded if nothing were resident.
  uint64_t StoredTokens(const PrefixScope& scope, std::span<const TokenId> tokens) const;
  std::optional<Nanos> NextDue() const;
  Status ClearStore();
  void AddTierStats(TierStats* stats) const;
  uint64_t BlocksOfRun(std::span<const uint32_t> groups) const;
  tier::KvRun RunOf(std::span<const TokenId> tokens, std::span<const Digest> keys, uint64_t first,
                    std::span<const uint32_t> groups) const;

  // loads.cc
  bool BeginLoad(Loading& loading, SequenceId sequence, uint64_t promised);
  void PumpLoad(Loading& loading, kv::SlotPromise* promise);
  uint64_t BlocksOfPart(const Loading& loading, uint64_t low) const;
  bool ClaimPart(Loading& loading, kv::SlotPromise* promise);
  bool BeginPart(Loading& loading, LoadPart* part);
  void PinHost(Loading& loading);
  bool BeginHostPart(Loading& loading, LoadPart* part);
  void DropBelow(Loading& loading, kv::SlotPromise* promise);
  void EndTransfers(Loading& loading);
  void DropLoad(Loading& loading);
  void EndPart(Loading& loading, const LoadPart& part, const Status& status, kv::SlotPromise* promise);
  LoadedTokens EndLoad(Loading& loading);
  uint64_t RowsToTakeOver(const Loading& loading) const;
  bool FrontMayRun(const Loading& loading) const;
  void PollLoad(Loading& loading, std::span<tier::KvStore::Ended> ended, kv::SlotPromise* promise);

  // arrivals.cc
  void BeginArrival(Loading& loading, LoadPart* part, tier::Staging staging);
  bool HasArrived(const LoadPart& part) const;
  bool HasArrived(const Loading& loading) const;
  void EndArrival(Loading& loading, const LoadPart& part, kv::SlotPromise* promise);
  bool MayJoin(const Request& request) const;
  void JoinLoads();
  std::vector<uint32_t> DropLost();
  void RequeueLost(std::span<const uint32_t> lost);
  void EndJoined();

  // decisions.cc
  void NoteDecision(Request& request, const sched::Decision& decision);
  void EndDecision(Request& request, sched::ResumeEnd end);
  void TellOutcomes(Nanos begun, Nanos duration);
  uint64_t NoteDown(DownRecord record);

  // prefetches.cc
  PrefetchId BeginPrefetch(const PrefixScope& scope, std::span<const TokenId> tokens, Nanos due, PrefetchFor whom);
  void AdvancePrefetches();
  bool AdvancePrefetch(Prefetch& prefetch);
  bool StartPrefetch(Prefetch& prefetch);
  bool GiveUp(Prefetch& prefetch);
  void Yield(Prefetch& prefetch);
  bool YieldLast();
  std::unique_ptr<Loading> TakeOver(Prefetch& prefetch, Request& request);
  void GoOnWith(Loading& loading, Request& request, const Choice& choice);
  void StopPrefetch(Prefetch& prefetch);
  void EndPrefetch(Prefetch& prefetch, bool whole);
  void PrefetchAhead();
  ExpectedBlocks::Hold Expect(const PrefixScope& scope, std::span<const TokenId> tokens);
  void PrefetchForReturn(const Request& request, const Choice& choice, uint64_t computed);
  std::optional<Nanos> NextPrefetch() const;

  // tiers_down.cc
  void NoteUnwritten(const Request& request, const Choice& choice, uint64_t computed);
  sched::ReuseView ReuseOf(const sched::DownKv& what, double returns) const;
  sched::DownDecision DecideToWrite(const Unwritten& item, double returns) const;
  // Begins to write what is hot or in host memory of the history, its unfilled block too, before what nobody awaits.
  WriteTicket WriteFirst(const SessionName& name, const PrefixScope& scope, std::span<const TokenId> tokens);
  // Once it has ended; OK: all of it is on disk and survives a crash. Then nobody may ask again.
  std::optional<Status> WriteFirstEnded(WriteTicket ticket);
  void WriteBehind();
  void AbandonUnwritten(const Status& why);
  void SyncAwaited();
  bool WriteSome(Unwritten& item, uint32_t* runs);
  uint32_t GroupsToWrite(const Unwritten& item, uint64_t block, std::span<const uint32_t> slots) const;
  bool CopyRun(tier::KvRun run, std::span<const uint32_t> slots, const DownOwner& owner);
  void StoreRun(SlotCopies& copies);
  void NoteStored(const tier::KvStore::Ended& ended);
  // Returns what is under way on disk; before that has ended, a crash may bring it back.
  Result<std::optional<tier::TransferId>> ForgetKv(const PrefixScope& scope, std::span<const TokenId> tokens,
                                                   uint64_t from);

  // tiers_host.cc
  void TakeLeaving(const kv::LeavingBlock& block);
  void TakeBack(const PrefixScope& scope, std::span<const TokenId> tokens);
  sched::DownDecision DecideLeaving(const kv::LeavingBlock& block, uint64_t cells, sched::DownReason reason) const;
  void CopySlotOut(SlotId slot, std::span<std::byte> to, SlotCopies* copies);
  void EndCopies();
  Status StatusOf(std::span<const exec::CopyTicket> tickets);
  void AwaitCopy();
  void AwaitCopies(uint64_t slots);
  void HandDownAhead();
  uint64_t FreeForLoad(uint64_t slots);
  uint64_t HandDown(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t from);
  // Bit g of each: host memory has group g of that block.
  std::vector<uint32_t> HostGroups(std::span<const Digest> keys) const;
  std::optional<tier::HostPin> HostFind(const Digest& key, uint32_t group);
  void HostCameUp(const Digest& key, uint32_t group);
  TierRate HostRate() const;
  void HostObserve(Arrival* arrival);
  void AddHostStats(TierStats* stats) const;

  // step_time.cc
  void CountTime(const StepInput& input);
  void LearnStep(Nanos compute);
  cost::StepWork WorkOf(const exec::Batch& batch) const;
  double RecomputeSeconds(const Request& request) const;
  double BacklogSeconds();

  // step.cc
  void RunStep(StepOutput* out);
  void PlanRows();
  void AddFront(uint32_t index);
  void NoteFronts();
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
  tier::KvStore* const store;  // null: there is no disk tier
  tier::HostTier* const host;  // null: there is no host tier
  cost::TierRates host_rates;
  tier::DurableSessions* const session_store;  // null: sessions end with the process
  tier::SessionArchive* const archive;         // null: none is saved by name
  const Digest identity;
  cost::StepCost step_cost;
  kv::KvManager kv;
  const cost::WorkShape work_shape;
  const kv::KvGeometry full_part, sliding_part;  // of kv.geometry()
  kv::SlotBudget budget;
  kv::PinTable pins;
  WayUp up;                     // goes after the requests that it knows
  std::deque<Request> waiting;  // by arrival
  std::deque<Request> running;
  sched::OutputLengths output_lengths;
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
  Sessions sessions;
  std::vector<SessionMove> moves;                       // under way, the oldest first
  std::optional<SessionFile> file;                      // that is being saved or restored
  uint64_t last_arrival = 0, unix_seconds = 0;          // the latter at this step
  std::deque<SlotCopies> slot_copies;                   // under way
  bool found_taken = false, sessions_were_well = true;  // the store's sessions; when it was last looked at
  WayDown down;
  bool store_was_well = true;  // when it was last looked at
  Nanos now{0};                // of the step
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
