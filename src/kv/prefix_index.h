// PrefixIndex knows which prompts' KV is in the pool: a radix tree over token blocks whose nodes hold slots, with the
// writers that are about to fill more, the points from which a sliding model can go on, and what may be evicted.
// Threads:   owned by the engine thread.
// Ownership: holds one reference on every slot that a node lists; borrows the pool, which must outlive it.
// Invariant: every slot whose only reference is the index's can be evicted, whatever the order of calls; a slot that a
//            sequence refers to never is.
// Cost:      Find is one step per block; sealing, marking and evicting are O(log siblings), or O(window blocks) for
//            a resume point.
//
// What a node may be: sealed (lists slots), awaited (a running sequence, its writer, will fill it), open (its writer's
// own copy of the block already holds `written` tokens, which others may copy), or a ghost on the way to such nodes.
//
// Sliding groups keep only what some row may still see. A prefix of P tokens can be continued where every sliding group
// lists the blocks of its window before P. A resume point marks such a P as worth keeping: blocks that belong to none
// are loose, and leave first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <boost/intrusive/list.hpp>

#include "base/clock.h"
#include "cost/step_work.h"
#include "kv/eviction.h"
#include "kv/geometry.h"
#include "kv/prefix_tree.h"
#include "kv/residency.h"
#include "kv/shadow_index.h"

namespace cachalot::cost {
class StepCost;
}

namespace cachalot::kv {

class SlotPool;
struct ListedBlocks;

struct PrefixMatch {
  uint64_t tokens = 0;            // that need not be computed
  uint64_t awaited = 0;           // that will not have to be once running writers have come that far; >= tokens
  uint64_t full_tokens = 0;       // in whole blocks, that the groups of full attention have without a gap
  PrefixNode* pending = nullptr;  // of the last block that is awaited, if awaited > tokens
  PrefixNode* node = nullptr;     // of the last whole block among `tokens`; the root where there is none
  PrefixNode* partial = nullptr;  // of the block whose first tokens % block_tokens are to be copied, if any
};

class PrefixIndex {
 public:
  // `step_cost` says what evicted blocks would cost to have again; null: as much, each.
  PrefixIndex(const KvGeometry& geometry, SlotPool& pool, std::unique_ptr<EvictionPolicy> policy,
              const cost::StepCost* step_cost = nullptr);
  ~PrefixIndex();
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  void SetNow(Nanos now) { now_ = now; }
  Nanos now() const { return now_; }
  PrefixNode& root() { return tree_.root(); }
  const PrefixNode& root() const { return tree_.root(); }
  PrefixKey KeyOf(const PrefixScope& scope, uint64_t block, std::span<const TokenId> tokens) const;

  // The longest prefix of `tokens` that is there, and at most `limit` of it.
  PrefixMatch Find(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t limit);
  // Appends the leading blocks, of which the last may be short, that have a node.
  void List(const PrefixScope& scope, std::span<const TokenId> tokens, ListedBlocks* listed);
  // Begins to keep `watch`.
  void Watch(PrefixWatch& watch);
  // A request comes in, for which this was found; until EndVisit it is named with what it seals. Touch speaks of the
  // visit that was started last.
  VisitId StartVisit(const PrefixMatch& match, uint64_t prompt_tokens);
  void EndVisit(VisitId visit);
  // Tells the policy that a request came this way, and what it wishes; or what it wishes only.
  void Touch(PrefixNode& node, const Retention& wish);
  void Retain(PrefixNode& node, const Retention& wish);

  // A sequence has come as far as `node`; it will Leave.
  void Enter(PrefixNode& node);
  void Leave(PrefixNode& node);
  // Nothing of the node is evicted between the two.
  void Pin(PrefixNode& node);
  void Unpin(PrefixNode& node);

  // `writer` is going to compute the tokens after `from`, which stands before them. Nodes that nobody else writes get
  // it as their writer and are appended to `ahead`.
  void Announce(PrefixNode& from, const PrefixScope& scope, std::span<const TokenId> tokens, SequenceId writer,
                std::vector<PrefixNode*>* ahead);
  // The writer's copy of this block holds all of the node's tokens.
  void Open(PrefixNode& node);
  // `writer` will not fill the node, if it still is the writer.
  void Withdraw(PrefixNode& node, SequenceId writer);

  // The block after `parent` is complete, or ended short, and lies in `slots`, one per group (kNoSlot where it lacks
  // it). The node takes those that it lacks; its slots are then the ones to use. Null: a longer block that begins alike
  // is there already.
  PrefixNode* Seal(PrefixNode& parent, const PrefixKey& key, std::span<const uint32_t> slots, const EntryInfo& info);

  // The same for a whole block whose slots were given up, while copies out of them still run: it is there as before.
  PrefixNode* TakeBack(PrefixNode& parent, const PrefixKey& key, std::span<const uint32_t> slots,
                       const EntryInfo& info);
  // Null: it has no such child.
  PrefixNode* Child(PrefixNode& parent, const PrefixKey& key) const { return tree_.Find(parent, key); }

  // What a step gets longer by when these tokens of a sequence are computed in it.
  double RecomputeSeconds(uint64_t begin, uint64_t end) const;

  // A prefix that ends with `node` is worth continuing. No effect without sliding groups.
  void MarkResume(PrefixNode& node, const Retention& wish);
  // A sequence has given up its reference on the slot.
  void OnReleased(uint32_t slot);

  // Gives up at least one slot, or says that nothing may go.
  bool EvictOne(Loss loss = Loss::kCapacity);
  // Lets go of what is past its deadline, at most `limit` entries.
  void EvictExpired(uint32_t limit);
  // When there may be something next.
  std::optional<Nanos> NextExpiry() const { return policy_->NextExpiry(); }

  // Who is told of blocks that are evicted; it must outlive the index.
  void Tell(ShadowIndex& shadow) { shadow_ = &shadow; }
  // Is told of slots, by group (kNoSlot: not that one's), before the index gives them up because others need the room;
  // of those alone whose content is worth having elsewhere. It may begin copies out of them.
  using Leaving = std::function<void(PrefixNode&, std::span<const uint32_t>)>;
  void OnLeaving(Leaving leaving) { leaving_ = std::move(leaving); }
  // Lets go of what is idle of these tokens' blocks from `from` on, the last block first.
  void EvictIdle(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t from, Loss loss);
  // A request that came as far as `last` ends.
  void EndUse(const PrefixNode& last);
  const ResidencyCounts& residency() const { return residency_.counts(); }

  struct Listing {
    PrefixNode* node = nullptr;  // null: the slot is not in the index
    uint32_t group = 0;
    uint32_t tokens = 0;
  };
  const Listing& listing(uint32_t slot) const { return listings_[slot]; }

  uint64_t evicted_slots() const { return evicted_slots_; }  // expired ones included
  uint64_t expired_slots() const { return expired_slots_; }

 private:
  struct Class {  // groups of one window
    uint32_t window = 0;
    std::vector<uint32_t> groups;
  };
  struct Reach {
    std::vector<uint32_t> run;  // by class: whole blocks present without a gap, up to the present one
  };

  bool Lists(const PrefixNode& node, const Class& c) const;
  bool ListsAll(const PrefixNode& node) const;
  bool ListsAny(const PrefixNode& node) const;
  bool Idle(const PrefixNode& node, uint32_t group) const;
  bool Reaches(const Reach& reach, uint64_t blocks, uint64_t tokens) const;
  void Advance(const PrefixNode& node, Reach* now, Reach* later) const;
  void FindPartial(PrefixNode& node, const PrefixKey& rest, const Reach& now, const Reach& later, PrefixMatch* match);
  uint32_t Usable(const PrefixNode& node) const;
  uint32_t FirstCovered(const PrefixNode& node) const;

  void MoveOn(PrefixWatch& watch, PrefixNode& from);
  void PassOnWatches(PrefixNode& from, PrefixNode& to);
  void PullBackWatches(PrefixNode& node);
  void List(PrefixNode& node, uint32_t group, uint32_t slot);
  void Unlist(PrefixNode& node, uint32_t group);
  void UpdateRank(PrefixNode& node);
  void ForgetResume(PrefixNode& node);
  void NoteIfLoose(PrefixNode& node);
  bool EvictLoose(Loss loss);
  bool EvictEntry(EntryId entry, Loss loss);
  void EvictNode(PrefixNode& node, Loss loss);
  void ForgetEntry(PrefixNode& node, Loss loss);
  void TellLeaving(PrefixNode& node, std::span<const uint32_t> groups);
  void TellWindowLeaving(PrefixNode* from, const PrefixNode& resume);
  void DropShorter(PrefixNode& node);
  void Tidy(PrefixNode* node);

  static EntryId BlockEntry(const PrefixNode& node) { return 2 * node.id; }
  static EntryId ResumeEntry(const PrefixNode& node) { return 2 * node.id + 1; }

  const KvGeometry geometry_;
  SlotPool& pool_;
  const std::unique_ptr<EvictionPolicy> policy_;
  const cost::StepCost* const step_cost_;
  const cost::WorkShape work_shape_;
  PrefixTree tree_;
  std::vector<Class> classes_;  // ascending windows: full attention first
  std::vector<uint32_t> all_groups_, sliding_groups_;
  uint32_t widest_window_ = 0;
  std::vector<Listing> listings_;  // by slot
  using LooseHook =
      boost::intrusive::member_hook<PrefixNode, boost::intrusive::list_member_hook<>, &PrefixNode::loose_hook>;
  boost::intrusive::list<PrefixNode, LooseHook> loose_;  // may hold some that no longer are
  Reach now_reach_, later_reach_;                        // scratch of Find
  Nanos now_{0};
  Residency residency_;
  ShadowIndex* shadow_ = nullptr;
  Leaving leaving_;                      // may be empty
  std::vector<uint32_t> leaving_slots_;  // scratch
  uint64_t evicted_slots_ = 0;
  uint64_t expired_slots_ = 0;
};

}  // namespace cachalot::kv
