// KvManager gives sequences their blocks: page tables, growth, forks with copy-on-write, sliding windows, and the
// blocks of earlier prompts that begin alike. Arithmetic only: it never sees a tensor.
// Threads:   owned by the engine thread; no method may be called from another.
// Ownership: owns the slot pool, every page table and the prefix index. A StepReservation must end before the manager.
// Invariant: free + idle + deferred + in-use slots == all slots, where idle ones are held by the index alone and can be
//            evicted; a slot's reference count is the number of page-table entries that name it, plus one if the index
//            lists it; a block that two hold is never written.
// Cost:      O(blocks touched); no heap allocation per block in steady state.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/block_copy.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/hit_account.h"
#include "base/ids.h"
#include "base/kv_ledger.h"
#include "base/page_view.h"
#include "base/prefix_scope.h"
#include "base/retention.h"
#include "base/status.h"
#include "kv/eviction.h"
#include "kv/geometry.h"
#include "kv/residency.h"

namespace cachalot {
struct KvLayout;
}
namespace cachalot::cost {
class StepCost;
}

namespace cachalot::kv {

enum class Loss : uint8_t;
struct KvSnapshot;
struct PrefixNode;
class KvManager;
class PrefixWatch;

// Growth of one sequence in one step.
struct Growth {
  SequenceId sequence;
  uint32_t tokens = 0;
  std::span<const TokenId> ids;  // the tokens; may be empty where there is no prefix index
};

// A block that a running sequence was about to fill.
struct PendingBlock {
  const PrefixNode* node = nullptr;  // null: none
  SequenceId writer{0};
};

// What is resident of a prompt.
struct PrefixView {
  uint64_t tokens = 0;           // that need not be computed
  uint64_t awaited = 0;          // that will not have to be once running sequences have come that far; >= tokens
  uint64_t full_tokens = 0;      // in whole blocks, that full attention has without a gap
  uint64_t full_slots = 0;       // of full attention that would be shared
  uint64_t idle_full_slots = 0;  // of them: those that nobody uses now
  PendingBlock pending;          // the last of what is awaited, where awaited > tokens
};

// A group's part of a block, whose slot is to be filled from a lower tier.
struct LoadCell {
  uint32_t block = 0;
  uint32_t group = 0;
  SlotId slot;
};

// A block of the index that gives way to others, and whose content is worth having elsewhere.
struct LeavingBlock {
  Digest key{};                     // kv/identity.h
  uint64_t position = 0;            // of its first token
  uint32_t tokens = 0;              // fewer than a block's where it was sealed short
  std::span<const uint32_t> slots;  // by group; kNoSlot: not that one's
  Nanos wanted_until{0};            // then nobody wishes to have it any more; kNever
};

// A block that gave way while copies out of its slots run: until they have ended it can be taken back.
struct GivenUpBlock {
  Digest key{};
  std::vector<uint32_t> slots;  // by group; kNoSlot: no copy of that one's was begun
  Nanos wanted_until{0};
};

// Leading blocks of a history that the index knows.
struct ListedBlocks {
  std::vector<uint32_t> slots;      // [block][group]; kNoSlot where a group's part is not resident
  std::vector<Nanos> wanted_until;  // [block]: as of a LeavingBlock; 0 where it is to be nowhere else
};

struct AttachedPrefix {
  uint64_t tokens = 0;                // the sequence's length
  std::span<const BlockCopy> copies;  // to be started before anything else is; valid until the next call
  HitAccount account;                 // all zero without a shadow index
};

// The blocks of one step: page tables already show them, so that the step can run. Commit makes the growth last;
// destruction without Commit puts every page table back as it was.
class StepReservation {
 public:
  StepReservation(StepReservation&& other) noexcept;
  StepReservation& operator=(StepReservation&&) = delete;
  ~StepReservation();

  // Copies that must be done before the step runs (copy-on-write of shared, unfilled tails).
  std::span<const BlockCopy> copies() const;
  // Slots of full attention taken, per growth.
  std::span<const uint32_t> full_slots_taken() const;
  // Lengths grow; filled blocks are sealed, and shared with equal ones; blocks that left their window are released.
  void Commit() &&;

 private:
  friend class KvManager;
  explicit StepReservation(KvManager* manager) : manager_(manager) {}
  KvManager* manager_;  // null once ended
};

class KvManager {
 public:
  // Without a policy nothing outlives its sequence and nothing is found again. `step_cost`, which must outlive the
  // manager, says what evicted blocks would cost to have again; null: as much, each. With a shadow index, what Attach
  // returns tells of each token why it is there or not.
  explicit KvManager(KvGeometry geometry, std::unique_ptr<EvictionPolicy> policy = nullptr,
                     const cost::StepCost* step_cost = nullptr, bool with_shadow = false);
  ~KvManager();

  const KvGeometry& geometry() const;
  uint32_t free_slots() const;
  // Free, or idle and thus free as soon as it is needed.
  uint32_t available_slots() const;
  // Slots of full attention that some sequence holds.
  uint32_t full_slots_in_use() const;
  uint64_t evicted_slots() const;
  ResidencyCounts residency() const;
  // Evicts all that only the index holds, and says how many slots that were. Requires that no reservation is open.
  uint32_t EvictAllIdle();
  // Evicts what is idle of these tokens' blocks from token `from` on, and says how many slots that were; kCapacity: as
  // if others needed the room. Requires that no reservation is open.
  uint32_t EvictIdle(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t from, Loss loss);
  // Evicts until about `slots` more are free or will be when copies end. Requires that no reservation is open.
  void EvictAhead(uint32_t slots);
  // `call` hears of blocks before they are evicted because others need the room, whoever asks for it. It may begin
  // copies out of their slots, and call nothing else.
  void OnLeaving(const Digest& identity, std::function<void(const LeavingBlock&)> call);
  // Whole blocks of these tokens that follow what is resident of them, or lack parts, are in the index again, as far as
  // `given_up` knows them by their keys, with slots out of which copies run. Returns whose. Requires that no
  // reservation is open.
  using GivenUpBlocks = std::function<std::optional<GivenUpBlock>(const Digest&)>;
  std::vector<Digest> TakeBack(const Digest& identity, const PrefixScope& scope, std::span<const TokenId> tokens,
                               const GivenUpBlocks& given_up);
  // Copies out of indexed slots: nobody else gets a slot before its copies have ended.
  void BeginCopyOut(SlotId slot);
  void EndCopyOut(SlotId slot);
  // Copies into slots that were claimed for a load: as long as they run nobody else gets the slot, and what they fill
  // is not sealed.
  void BeginCopyIn(SlotId slot);
  void EndCopyIn(SlotId slot);
  // Slots that are given up and come free when their copies end; and those with copies out that are not given up.
  uint32_t deferred_slots() const;
  uint32_t leaving_slots() const;
  // The time that the eviction policy sees, until the next call.
  void SetNow(Nanos now);
  // Evicts idle blocks that are past their deadline: about `limit` of them. Requires that no reservation is open.
  void EvictExpired(uint32_t limit);
  // When there may be some next.
  std::optional<Nanos> NextExpiry() const;
  uint64_t expired_slots() const;
  // Slots that became free since the last call and whose bytes are to be overwritten, before anything else is written.
  std::vector<SlotId> TakeToScrub();

  // An empty sequence. Its blocks are found by those whose scope says so, and kept as the hints say (but for `pin`),
  // and not beyond `until`, unless somebody else wishes it.
  SequenceId Create(const PrefixScope& scope = {}, const RetentionHints& hints = {}, Nanos until = kNever);
  // An empty sequence whose blocks nobody else finds, and which takes nobody's.
  SequenceId CreateUnindexed(const RetentionHints& hints = {});
  // A sequence that holds what is resident of these tokens in whole blocks, at most `limit` tokens, and never grows.
  // Nobody counts it as a use. Requires that no reservation is open.
  SequenceId Hold(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t limit);
  // What is resident of these tokens, at most `limit`.
  PrefixView Find(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t limit) const;
  // How much of it in whole blocks.
  uint64_t FindWhole(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t limit) const;
  // Where the leading blocks of these tokens lie that the index knows, whole ones and one that was sealed short where
  // they end. Nobody counts it as a use. Valid until the next call that changes anything.
  ListedBlocks Listed(const PrefixScope& scope, std::span<const TokenId> tokens) const;
  // It was not filled yet, and its writer has not given it up.
  bool IsPending(const PendingBlock& block) const;
  // From now on `watch` says how much of its prompt is resident.
  void Watch(PrefixWatch& watch);
  // Starts an empty sequence, which is going to compute `tokens`, with what is resident of them, at most `limit`, and
  // lets others wait for the rest. Requires that no reservation is open. `whole`: with whole blocks only.
  AttachedPrefix Attach(SequenceId sequence, std::span<const TokenId> tokens, uint64_t limit, bool whole = false);
  // Of an indexed sequence's tokens before `end` the last blocks are going to be loaded. Until EndLoad or Free it
  // grows no further than to the lowest block that was claimed, and has no fork. None of the calls up to EndLoad may
  // come while a reservation is open.
  void BeginLoad(SequenceId sequence, uint64_t end);
  // Claims the blocks from `first` to those claimed before: takes slots for what rows after the end will see of them,
  // evicting what must go, and says which, by block. Nothing: no room. Requires that none of them holds anything yet.
  std::optional<std::vector<LoadCell>> ClaimLoad(SequenceId sequence, uint64_t first);
  // The claimed blocks before `block` are to be computed after all. Returns the slots of full attention given up.
  uint32_t DropLoad(SequenceId sequence, uint64_t block);
  // The load of `from`, which ends, goes on into `to`: an empty sequence, which must Attach next, and find in whole
  // blocks as much as `from` had of the same tokens. Requires that `from` has computed nothing.
  void MoveLoad(SequenceId from, SequenceId to);
  // Computed and claimed blocks meet, and all cells are filled with these tokens: the sequence is as if it had computed
  // them.
  void EndLoad(SequenceId sequence, std::span<const TokenId> ids);
  // The same before all cells are filled: the sequence may take part in the next step, whose Commit seals them. They
  // must be filled by then, or the sequence be discarded.
  void JoinLoad(SequenceId sequence, std::span<const TokenId> ids);
  // Ends a sequence that has joined its load, in an open reservation too: nothing from token `from` on, the load's
  // beginning, is kept.
  void Discard(SequenceId sequence, uint64_t from);
  // A sequence with the parent's tokens, sharing all its blocks. Requires that no reservation is open.
  SequenceId Fork(SequenceId parent);
  // Drops the sequence's references; its blocks stay in the index. Requires that no reservation is open.
  void Free(SequenceId sequence);

  // Tokens committed.
  uint64_t Length(SequenceId sequence) const;
  // Free slots that growing by `tokens` would take now, copy-on-write included. Requires that no reservation is open.
  uint32_t SlotsToGrow(SequenceId sequence, uint32_t tokens) const;
  // The same for several that grow together.
  uint64_t SlotsToGrow(std::span<const Growth> growth) const;
  // Slots that no other sequence uses.
  uint32_t ExclusiveSlots(SequenceId sequence) const;

  // Reserves the growth of all sequences together, evicting what must go, or nothing: kOverloaded with numbers, or
  // kInternal where the policy names no victim though there is one. One
  // reservation may be open at a time; each sequence at most once in `growth`.
  Result<StepReservation> Reserve(std::span<const Growth> growth);

  // The sequence's blocks in one group, an open reservation's included. Valid until the next call that changes it.
  PageTableRef Pages(SequenceId sequence, uint32_t group) const;

  KvSnapshot Snapshot() const;
  // What every byte of the pool is used for, an open reservation's included: O(slots + page-table entries). Requires
  // that the layout is that of the geometry.
  KvLedger Ledger(const KvLayout& layout) const;

 private:
  friend class StepReservation;
  void Commit();
  void RollBack();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachalot::kv
