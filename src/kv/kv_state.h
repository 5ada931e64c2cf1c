// The private state of KvManager, shared by kv_manager.cc (sequences), kv_growth.cc (the step), kv_load.cc and
// kv_snapshot.cc.
// Threads:   engine thread.
// Ownership: see kv_manager.h.
// Invariant: `live` ascends by id; a sequence's page tables name the index's slots for every block that the index
//            lists on its way.
// Cost:      none.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kv/hit_account.h"
#include "kv/kv_manager.h"
#include "kv/page_table.h"
#include "kv/prefix_index.h"
#include "kv/shadow_index.h"
#include "kv/slot_pool.h"

namespace cachalot::kv {

// What a load brings into a sequence: the blocks before its end, claimed from there downward. What lies below them is
// computed meanwhile.
struct BlocksAbove {
  uint64_t end = 0;               // tokens; 0: there is no load
  uint32_t low = 0;               // the lowest block claimed
  std::vector<PageTable> tables;  // one per layer group; the i-th entry is the i-th block down from the end
};

struct Sequence {
  SequenceId id;
  uint64_t length = 0;
  uint32_t step_tokens = 0;  // of the open reservation
  bool in_step = false;
  BlocksAbove above;
  std::vector<PageTable> tables;  // one per layer group

  // Of those in the index.
  PrefixScope scope;
  PrefixNode* cursor = nullptr;    // the last whole block
  std::vector<TokenId> unsealed;   // the tokens after it, those of the open reservation included
  std::vector<PrefixNode*> ahead;  // that it said it would write
  uint64_t announced = 0;          // tokens up to the end of what it said
  PrefixNode* open = nullptr;      // its unfilled block, once all that was announced is written
  VisitId visit = kNoVisit;

  // Of those that the shadow index follows.
  ShadowVisit shadow = ShadowIndex::kNoVisit;
  BlockChain chain;  // up to the last whole block

  // kNoSlot for a block that a load left out, before its group's window.
  uint32_t SlotOf(uint32_t group, uint32_t block) const {
    return block < tables[group].first_block() ? kNoSlot : tables[group].slot(block);
  }
  bool keeps_tokens() const { return cursor != nullptr || shadow != ShadowIndex::kNoVisit; }
  RetentionHints hints;
  Nanos until = kNever;  // nothing is wished beyond
};

// A tail that the open reservation moved to a slot of its own.
struct MovedTail {
  const PageTable* table;
  SlotId original;
};

struct KvManager::State {
  State(KvGeometry geometry_in, std::unique_ptr<EvictionPolicy> policy, const cost::StepCost* step_cost,
        bool with_shadow);

  Sequence& At(SequenceId id) const;
  uint32_t groups() const { return static_cast<uint32_t>(geometry.windows.size()); }

  // kv_manager.cc
  PrefixMatch FindWhole(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t limit);
  void StartAt(Sequence& sequence, const PrefixMatch& match);
  void TouchPath(const Sequence& sequence);
  void RetainPath(const Sequence& sequence);
  void DropTables(Sequence& sequence);
  bool CopyPartial(Sequence& sequence, const PrefixMatch& match, std::span<const TokenId> tokens);
  void SealShort(Sequence& sequence);
  void CloseOpen(Sequence& sequence);
  void Withdraw(Sequence& sequence);
  void Free(Sequence& sequence);
  EntryInfo InfoOf(const Sequence& sequence, uint64_t position) const;
  // What the sequence wishes for what it uses now.
  Retention WishOf(const Sequence& sequence) const;
  // Its blocks from logical block `first` on are overwritten when they are free, if it wishes so.
  void NoteScrub(const Sequence& sequence, uint64_t first);
  // Evicts until there are that many free slots; false when that can't be.
  bool MakeFree(uint64_t slots);

  // kv_growth.cc
  uint64_t FreshBlocks(const Sequence& sequence, uint32_t tokens) const;
  bool WritesTail(const Sequence& sequence, uint32_t tokens) const;
  uint64_t SlotsNeeded(std::span<const Growth> growth);
  void Grow(Sequence& sequence, const Growth& growth);
  void UndoGrow(Sequence& sequence);
  void KeepGrowth(Sequence& sequence);
  void SealWhole(Sequence& sequence);
  void OpenTail(Sequence& sequence);
  // Gives up what no row from position `length` on sees.
  void DropWindows(Sequence& sequence, uint64_t length);
  void EndStep();
  // An inspection costs what the pool has slots: after every step of a small pool, after one in so many of a large one.
  bool SoundAfterStep();

  // kv_load.cc
  // The first block that whoever goes on at the load's end reads.
  uint64_t FirstAbove(const Sequence& sequence, uint32_t group) const;
  void DropAbove(Sequence& sequence, uint64_t block);

  // kv_leave.cc
  bool HasAll(const PrefixNode* node, std::optional<SlotUse> use = {}) const;
  bool MayTakeBack(const PrefixNode* node, std::vector<uint32_t>* slots) const;

  // kv_account.cc
  ShadowSight Arrive(Sequence& sequence, std::span<const TokenId> tokens);
  HitAccount AccountOf(const Sequence& sequence, const HitFacts& facts, const ShadowSight& sight) const;
  void ForkInShadow(const Sequence& parent, Sequence& child);
  void SealInShadow(Sequence& sequence, uint64_t block, const BlockChain& chain);
  void SealUnindexed(Sequence& sequence);
  void EndInShadow(Sequence& sequence);

  KvSnapshot Snapshot() const;

  KvGeometry geometry;
  SlotPool pool;
  std::unique_ptr<ShadowIndex> shadow;           // may be null
  std::unique_ptr<PrefixIndex> index;            // null: nothing is found again; ends before the pool
  std::vector<std::unique_ptr<Sequence>> live;   // ascending by id
  std::array<Sequence*, 4096> by_id{};           // of the live ones, the last with this remainder of its id; or null
  std::vector<std::unique_ptr<Sequence>> spare;  // freed: empty tables that keep their capacity
  uint64_t next_id = 1;
  uint64_t steps = 0;  // inspected or passed over

  bool open = false;             // whether a reservation is
  std::vector<Sequence*> grown;  // by it, in order
  std::vector<BlockCopy> copies;
  std::vector<MovedTail> moved;            // one per copy
  std::vector<uint32_t> full_slots_taken;  // per growth

  std::vector<uint32_t> unshared;       // scratch of SlotsNeeded, by slot: references that a step will move away
  std::vector<SlotId> touched;          // scratch: where it is not zero
  std::vector<PrefixNode*> path;        // scratch
  std::vector<PrefixNode*> chain_path;  // scratch of OnLeaving's call
  std::vector<uint32_t> block_slots;    // scratch: one block's slots, by group
};

}  // namespace cachalot::kv
