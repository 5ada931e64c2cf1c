#include "kv/prefix_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cost/step_cost.h"
#include "kv/kv_manager.h"
#include "kv/slot_pool.h"

namespace cachalot::kv {
namespace {

// What is not thought to be used again is kept nowhere else.
bool Returns(const Retention& wish) { return wish.priority != RetentionPriority::kLow; }

}  // namespace

PrefixIndex::PrefixIndex(const KvGeometry& geometry, SlotPool& pool, std::unique_ptr<EvictionPolicy> policy,
                         const cost::StepCost* step_cost)
    : geometry_(geometry),
      pool_(pool),
      policy_(std::move(policy)),
      step_cost_(step_cost),
      work_shape_(geometry.windows),
      tree_(geometry.block_tokens, static_cast<uint32_t>(geometry.windows.size())),
      listings_(geometry.slots) {
  for (uint32_t group = 0; group < geometry.windows.size(); ++group) {
    const uint32_t window = geometry.windows[group];
    auto found = std::ranges::find(classes_, window, &Class::window);
    if (found == classes_.end()) found = classes_.insert(classes_.end(), Class{window, {}});
    found->groups.push_back(group);
    all_groups_.push_back(group);
    if (window != 0) sliding_groups_.push_back(group);
    widest_window_ = std::max(widest_window_, window);
  }
  std::ranges::sort(classes_, {}, &Class::window);
}

PrefixIndex::~PrefixIndex() {
  loose_.clear();
  for (PrefixNode* node : tree_.nodes()) {
    for (uint32_t group = 0; group < geometry_.windows.size(); ++group) {
      if (node->slots[group] != kNoSlot) pool_.RemoveFromIndex(SlotId(node->slots[group]));
    }
  }
}

PrefixKey PrefixIndex::KeyOf(const PrefixScope& scope, uint64_t block, std::span<const TokenId> tokens) const {
  return {SaltAt(scope, (block + 1) * geometry_.block_tokens), tokens};
}

bool PrefixIndex::Lists(const PrefixNode& node, const Class& c) const {
  return std::ranges::all_of(c.groups, [&](uint32_t group) { return node.slots[group] != kNoSlot; });
}

bool PrefixIndex::ListsAll(const PrefixNode& node) const {
  return std::ranges::all_of(classes_, [&](const Class& c) { return Lists(node, c); });
}

bool PrefixIndex::ListsAny(const PrefixNode& node) const {
  return std::any_of(node.slots, node.slots + geometry_.windows.size(), [](uint32_t slot) { return slot != kNoSlot; });
}

bool PrefixIndex::Idle(const PrefixNode& node, uint32_t group) const {
  return node.slots[group] != kNoSlot && pool_.references(SlotId(node.slots[group])) == 1;
}

// Matching.

void PrefixIndex::Advance(const PrefixNode& node, Reach* now, Reach* later) const {
  const bool awaited = node.writer.value != 0;
  for (size_t c = 0; c < classes_.size(); ++c) {
    const bool there = Lists(node, classes_[c]);
    now->run[c] = there ? now->run[c] + 1 : 0;
    later->run[c] = there || awaited ? later->run[c] + 1 : 0;
  }
}

bool PrefixIndex::Reaches(const Reach& reach, uint64_t blocks, uint64_t tokens) const {
  for (size_t c = 0; c < classes_.size(); ++c) {
    if (reach.run[c] + FirstBlockKept(classes_[c].window, tokens, geometry_.block_tokens) < blocks) return false;
  }
  return true;
}

// Tokens of its block that can be copied now.
uint32_t PrefixIndex::Usable(const PrefixNode& node) const {
  return node.writer.value != 0 && node.written > 0 ? node.written : ListsAll(node) ? node.count : 0;
}

PrefixMatch PrefixIndex::Find(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t limit) {
  const uint64_t block_tokens = geometry_.block_tokens;
  limit = std::min<uint64_t>(limit, tokens.size());
  now_reach_.run.assign(classes_.size(), 0);
  later_reach_.run.assign(classes_.size(), 0);
  PrefixMatch match{.node = &root()};
  PrefixNode* node = &root();
  PrefixNode* written = nullptr;  // the last on the way that has a writer
  uint64_t blocks = 0;
  for (; (blocks + 1) * block_tokens <= limit; ++blocks) {
    const PrefixKey key = KeyOf(scope, blocks, tokens.subspan(blocks * block_tokens, block_tokens));
    PrefixNode* const child = tree_.Find(*node, key);
    if (child == nullptr) break;
    if (match.tokens == blocks * block_tokens && !ListsAll(*child)) {
      FindPartial(*node, key, now_reach_, later_reach_, &match);  // in case that nothing deeper is there
    }
    node = child;
    if (node->writer.value != 0) written = node;
    Advance(*node, &now_reach_, &later_reach_);
    const uint64_t reached = (blocks + 1) * block_tokens;
    if (Reaches(now_reach_, blocks + 1, reached)) {
      match.tokens = reached;
      match.node = node;
      match.partial = nullptr;
    }
    if (Reaches(later_reach_, blocks + 1, reached)) {
      match.awaited = reached;
      match.pending = written;
    }
    if (classes_.front().window == 0 && now_reach_.run.front() == blocks + 1) match.full_tokens = reached;
  }
  const uint64_t done = blocks * block_tokens;
  const uint64_t rest = std::min(block_tokens, limit - done);
  if (rest > 0) FindPartial(*node, KeyOf(scope, blocks, tokens.subspan(done, rest)), now_reach_, later_reach_, &match);
  match.awaited = std::max(match.awaited, match.tokens);
  return match;
}

void PrefixIndex::List(const PrefixScope& scope, std::span<const TokenId> tokens, ListedBlocks* listed) {
  const uint64_t block_tokens = geometry_.block_tokens;
  PrefixNode* node = &root();
  for (uint64_t block = 0; block * block_tokens < tokens.size(); ++block) {
    const uint64_t count = std::min(block_tokens, tokens.size() - block * block_tokens);
    node = tree_.Find(*node, KeyOf(scope, block, tokens.subspan(block * block_tokens, count)));
    if (node == nullptr) return;
    const std::span<const uint32_t> slots(node->slots, geometry_.windows.size());
    listed->slots.insert(listed->slots.end(), slots.begin(), slots.end());
    const auto scrubbed = [this](uint32_t slot) { return slot != kNoSlot && pool_.to_scrub(SlotId(slot)); };
    listed->wanted_until.push_back(std::ranges::any_of(slots, scrubbed) ? Nanos(0) : node->wanted_until);
  }
}

void PrefixIndex::FindPartial(PrefixNode& node, const PrefixKey& rest, const Reach& now, const Reach& later,
                              PrefixMatch* match) {
  const uint64_t blocks = node.end_block(), done = blocks * geometry_.block_tokens;
  VisitLikest(node, rest, [&](PrefixNode& child, uint32_t common) {
    const uint64_t there = done + std::min(common, Usable(child));
    if (there > match->tokens && there > done && Reaches(now, blocks, there)) {
      match->tokens = there;
      match->node = &node;
      match->partial = &child;
    }
    const uint64_t awaited = done + common;
    if (child.writer.value != 0 && awaited > match->awaited && Reaches(later, blocks, awaited)) {
      match->awaited = awaited;
      match->pending = &child;
    }
    return there == done + common;  // no other has more
  });
}

// Watches.

void PrefixIndex::Watch(PrefixWatch& watch) {
  CACHALOT_CHECK(!watch.is_linked());
  if (classes_.front().window == 0) MoveOn(watch, root());
}

// As far as it can go, from a node that it has reached.
void PrefixIndex::MoveOn(PrefixWatch& watch, PrefixNode& from) {
  const Class& full = classes_.front();
  const uint64_t block_tokens = geometry_.block_tokens;
  PrefixNode* node = &from;
  for (;;) {
    const uint64_t begin = uint64_t{node->end_block()} * block_tokens;
    const uint64_t count = std::min<uint64_t>(block_tokens, watch.tokens_.size() - begin);
    watch.next_ = KeyOf(watch.scope_, node->end_block(), watch.tokens_.subspan(begin, count));
    PrefixNode* const child = count == block_tokens ? tree_.Find(*node, watch.next_) : nullptr;
    if (child == nullptr || !Lists(*child, full)) break;
    node = child;
  }
  watch.resident_ = uint64_t{node->end_block()} * block_tokens;
  node->watches.insert(watch);
}

// The block of `to` is there now.
void PrefixIndex::PassOnWatches(PrefixNode& from, PrefixNode& to) {
  if (from.watches.empty() || to.count < geometry_.block_tokens || !Lists(to, classes_.front())) return;
  for (;;) {
    const auto found = from.watches.find(to.key(), PrefixWatch::ByNext());
    if (found == from.watches.end()) return;
    PrefixWatch& watch = *found;
    watch.unlink();
    MoveOn(watch, to);
  }
}

// The block of `node` is going; what it followed, full attention still has.
void PrefixIndex::PullBackWatches(PrefixNode& node) {
  while (!node.watches.empty()) {
    PrefixWatch& watch = *node.watches.begin();
    watch.unlink();
    watch.resident_ = uint64_t{node.block} * geometry_.block_tokens;
    watch.next_ = KeyOf(watch.scope_, node.block, watch.tokens_.subspan(watch.resident_, geometry_.block_tokens));
    node.parent->watches.insert(watch);
  }
}

VisitId PrefixIndex::StartVisit(const PrefixMatch& match, uint64_t prompt_tokens) {
  Arrival arrival{.now = now_,
                  .known_tokens = match.tokens,
                  .prompt_tokens = prompt_tokens,
                  .whole_tokens = prompt_tokens - prompt_tokens % geometry_.block_tokens};
  const PrefixNode& deepest = match.partial != nullptr && ListsAny(*match.partial) ? *match.partial : *match.node;
  if (ListsAny(deepest)) arrival.deepest = BlockEntry(deepest);
  return policy_->StartVisit(arrival);
}

void PrefixIndex::EndVisit(VisitId visit) {
  if (visit != kNoVisit) policy_->EndVisit(visit, now_);
}

void PrefixIndex::Touch(PrefixNode& node, const Retention& wish) {
  if (ListsAny(node)) {
    policy_->Touch(BlockEntry(node), now_);
    residency_.OnUsed(node.id, now_);
  }
  if (node.resume) policy_->Touch(ResumeEntry(node), now_);
  Retain(node, wish);
}

void PrefixIndex::Retain(PrefixNode& node, const Retention& wish) {
  node.wanted_until = std::max(node.wanted_until, wish.deadline);
  node.returns |= Returns(wish);
  if (ListsAny(node)) policy_->Retain(BlockEntry(node), wish, now_);
  if (node.resume) policy_->Retain(ResumeEntry(node), wish, now_);
}

void PrefixIndex::EndUse(const PrefixNode& last) {
  for (const PrefixNode* node = &last; node->parent != nullptr; node = node->parent) {
    if (ListsAny(*node)) residency_.OnLeft(node->id, now_);
  }
}

// Cursors and writers.

void PrefixIndex::Enter(PrefixNode& node) {
  ++node.cursors;
  UpdateRank(node);
}

void PrefixIndex::Pin(PrefixNode& node) {
  ++node.covers;
  Enter(node);
}

void PrefixIndex::Unpin(PrefixNode& node) {
  --node.covers;
  NoteIfLoose(node);
  Leave(node);
}

void PrefixIndex::Leave(PrefixNode& node) {
  CACHALOT_CHECK(node.cursors > 0);
  --node.cursors;
  UpdateRank(node);
  Tidy(&node);
}

void PrefixIndex::Announce(PrefixNode& from, const PrefixScope& scope, std::span<const TokenId> tokens,
                           SequenceId writer, std::vector<PrefixNode*>* ahead) {
  PrefixNode* node = &from;
  for (size_t begin = 0; begin < tokens.size(); begin += geometry_.block_tokens) {
    const size_t count = std::min<size_t>(geometry_.block_tokens, tokens.size() - begin);
    const PrefixKey key = KeyOf(scope, node->end_block(), tokens.subspan(begin, count));
    PrefixNode* child = tree_.Find(*node, key);
    if (child == nullptr) child = &tree_.Add(*node, key);
    if (child->writer.value == 0 && !ListsAll(*child)) {
      child->writer = writer;
      ahead->push_back(child);
    }
    node = child;
  }
}

void PrefixIndex::Open(PrefixNode& node) { node.written = node.count; }

void PrefixIndex::Withdraw(PrefixNode& node, SequenceId writer) {
  if (node.writer != writer) return;
  node.writer = SequenceId(0);
  node.written = 0;
  Tidy(&node);
}

// Sealing.

PrefixNode* PrefixIndex::Seal(PrefixNode& parent, const PrefixKey& key, std::span<const uint32_t> slots,
                              const EntryInfo& info) {
  PrefixNode* node = tree_.Find(parent, key);
  if (node == nullptr) {
    bool longer = false;
    if (key.tokens.size() < geometry_.block_tokens) {
      VisitLikest(parent, key, [&](PrefixNode& child, uint32_t common) {
        longer = common == key.tokens.size() && child.written == 0 && ListsAll(child);
        return longer;
      });
    }
    if (longer) return nullptr;
    node = &tree_.Add(parent, key);
  }
  const bool listed = ListsAny(*node);
  for (uint32_t group = 0; group < slots.size(); ++group) {
    if (node->slots[group] == kNoSlot && slots[group] != kNoSlot) List(*node, group, slots[group]);
  }
  node->writer = SequenceId(0);
  node->written = 0;
  const auto slots_listed =
      static_cast<uint32_t>(slots.size() - std::count(node->slots, node->slots + slots.size(), kNoSlot));
  if (!listed && slots_listed > 0) {
    EntryInfo entry = info;
    entry.slots = slots_listed;
    policy_->Insert(BlockEntry(*node), entry, now_);
    node->wanted_until = info.retention.deadline;
    node->returns = Returns(info.retention);
    residency_.OnSealed(node->id, now_);
    UpdateRank(*node);
    if (parent.parent != nullptr) {
      ++parent.listed_children;
      UpdateRank(parent);
    }
  } else if (listed) {
    Retain(*node, info.retention);
  }
  DropShorter(*node);
  PassOnWatches(parent, *node);
  return node;
}

PrefixNode* PrefixIndex::TakeBack(PrefixNode& parent, const PrefixKey& key, std::span<const uint32_t> slots,
                                  const EntryInfo& info) {
  for (const uint32_t slot : slots) {
    if (slot != kNoSlot) pool_.TakeBack(SlotId(slot));
  }
  PrefixNode* const node = Seal(parent, key, slots, info);
  for (const uint32_t slot : slots) {
    if (slot != kNoSlot) pool_.Release(SlotId(slot));
  }
  NoteIfLoose(*node);
  if (shadow_ != nullptr) shadow_->OnEvicted(node->chain, Loss::kNone);  // it was not lost
  return node;
}

// A short block that `node` continues gives nothing more than `node` does.
void PrefixIndex::DropShorter(PrefixNode& node) {
  auto& siblings = node.parent->children;
  for (;;) {
    const auto at = siblings.iterator_to(node);
    if (at == siblings.begin()) return;
    PrefixNode& shorter = *std::prev(at);
    const bool begins_it = shorter.salt == node.salt && shorter.count < node.count &&
                           CommonTokens(shorter.key().tokens, node.key().tokens) == shorter.count;
    if (!begins_it || !shorter.ranked || shorter.writer.value != 0 || !ListsAll(node)) return;
    EvictNode(shorter, Loss::kNone);
  }
}

void PrefixIndex::List(PrefixNode& node, uint32_t group, uint32_t slot) {
  pool_.AddToIndex(SlotId(slot));
  node.slots[group] = slot;
  listings_[slot] = {&node, group, node.count};
}

void PrefixIndex::Unlist(PrefixNode& node, uint32_t group) {
  const uint32_t slot = std::exchange(node.slots[group], kNoSlot);
  if (slot == kNoSlot) return;
  listings_[slot] = {};
  pool_.RemoveFromIndex(SlotId(slot));
  if (geometry_.windows[group] == 0) PullBackWatches(node);
}

double PrefixIndex::RecomputeSeconds(uint64_t begin, uint64_t end) const {
  return step_cost_ == nullptr ? 1 : step_cost_->Added(work_shape_.Rows(begin, end - begin));
}

// Resume points.

uint32_t PrefixIndex::FirstCovered(const PrefixNode& node) const {
  return static_cast<uint32_t>(
      FirstBlockKept(widest_window_, node.end_position(geometry_.block_tokens), geometry_.block_tokens));
}

void PrefixIndex::MarkResume(PrefixNode& node, const Retention& wish) {
  if (sliding_groups_.empty() || node.parent == nullptr) return;
  if (node.resume) return policy_->Retain(ResumeEntry(node), wish, now_);
  const uint32_t first = FirstCovered(node);
  if (first > node.block) return;  // the window ends with the last token: nothing need be kept
  node.resume = true;
  uint32_t slots = 0;
  for (PrefixNode* at = &node; at->parent != nullptr && at->block >= first; at = at->parent) {
    ++at->covers;
    slots += static_cast<uint32_t>(sliding_groups_.size());
  }
  const EntryId entry = ResumeEntry(node);
  const uint64_t position = node.end_position(geometry_.block_tokens);
  policy_->Insert(entry,
                  {.slots = slots,
                   .position = position,
                   .recompute_seconds = RecomputeSeconds(uint64_t{first} * geometry_.block_tokens, position),
                   .retention = wish},
                  now_);
  policy_->BecomeCandidate(entry);
}

void PrefixIndex::ForgetResume(PrefixNode& node) {
  if (!node.resume) return;
  node.resume = false;
  policy_->Remove(ResumeEntry(node));
  const uint32_t first = FirstCovered(node);
  for (PrefixNode* at = &node; at->parent != nullptr && at->block >= first; at = at->parent) {
    --at->covers;
    NoteIfLoose(*at);
  }
}

void PrefixIndex::NoteIfLoose(PrefixNode& node) {
  if (node.covers > 0 || node.loose_hook.is_linked()) return;
  if (std::ranges::any_of(sliding_groups_, [&](uint32_t group) { return Idle(node, group); })) loose_.push_back(node);
}

void PrefixIndex::OnReleased(uint32_t slot) {
  PrefixNode* const node = listings_[slot].node;
  if (node != nullptr && !sliding_groups_.empty()) NoteIfLoose(*node);
}

// Eviction.

void PrefixIndex::UpdateRank(PrefixNode& node) {
  const bool rank = node.parent != nullptr && node.cursors == 0 && node.listed_children == 0 && ListsAny(node);
  if (rank == node.ranked) return;
  node.ranked = rank;
  if (rank) {
    policy_->BecomeCandidate(BlockEntry(node));
  } else {
    policy_->NotCandidate(BlockEntry(node));
  }
}

bool PrefixIndex::EvictOne(Loss loss) {
  while (!EvictLoose(loss)) {
    const std::optional<EntryId> expired = policy_->Expired(now_);
    const std::optional<EntryId> victim = expired ? expired : policy_->Victim(now_);
    if (!victim) return false;
    if (EvictEntry(*victim, expired ? Loss::kExpired : loss)) break;
  }
  return true;
}

void PrefixIndex::EvictExpired(uint32_t limit) {
  for (; limit > 0; --limit) {
    const std::optional<EntryId> expired = policy_->Expired(now_);
    if (!expired) break;
    EvictEntry(*expired, Loss::kExpired);
  }
}

// False where nothing is free for it: a resume point, whose blocks may be loose now.
bool PrefixIndex::EvictEntry(EntryId entry, Loss loss) {
  PrefixNode& node = *tree_.nodes()[entry / 2];
  if (entry != BlockEntry(node)) {
    if (loss == Loss::kCapacity) TellWindowLeaving(&node, node);
    ForgetResume(node);
    return false;
  }
  const uint32_t before = pool_.given_up_count();
  EvictNode(node, loss);
  evicted_slots_ += pool_.given_up_count() - before;
  if (loss == Loss::kExpired) expired_slots_ += pool_.given_up_count() - before;
  return true;
}

bool PrefixIndex::EvictLoose(Loss loss) {
  while (!loose_.empty()) {
    PrefixNode& node = loose_.front();
    loose_.pop_front();
    if (node.covers > 0) continue;
    const uint32_t before = pool_.given_up_count();
    for (const uint32_t group : sliding_groups_) {
      if (Idle(node, group)) Unlist(node, group);
    }
    if (pool_.given_up_count() == before) continue;
    evicted_slots_ += pool_.given_up_count() - before;
    if (!ListsAny(node)) ForgetEntry(node, loss);
    return true;
  }
  return false;
}

void PrefixIndex::EvictIdle(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t from, Loss loss) {
  PrefixNode* node = &root();
  for (PrefixNode* child = node; child != nullptr;) {
    node = child;
    const uint64_t begin = uint64_t{node->end_block()} * geometry_.block_tokens;
    if (begin >= tokens.size() || node->count % geometry_.block_tokens != 0) break;
    const uint64_t count = std::min<uint64_t>(geometry_.block_tokens, tokens.size() - begin);
    child = tree_.Find(*node, KeyOf(scope, node->end_block(), tokens.subspan(begin, count)));
  }
  while (node->parent != nullptr && uint64_t{node->block} * geometry_.block_tokens >= from) {
    PrefixNode& leaving = *node;
    node = node->parent;
    if (!leaving.ranked) continue;
    const uint32_t before = pool_.given_up_count();
    EvictNode(leaving, loss);
    evicted_slots_ += pool_.given_up_count() - before;
  }
}

void PrefixIndex::TellLeaving(PrefixNode& node, std::span<const uint32_t> groups) {
  if (!leaving_ || !node.returns || node.wanted_until <= now_) return;
  leaving_slots_.assign(all_groups_.size(), kNoSlot);
  bool any = false;
  for (const uint32_t group : groups) {
    if (!Idle(node, group) || pool_.to_scrub(SlotId(node.slots[group]))) continue;
    leaving_slots_[group] = node.slots[group];
    any = true;
  }
  if (any) leaving_(node, leaving_slots_);
}

// What this resume point alone keeps of its window, from node `from` back.
void PrefixIndex::TellWindowLeaving(PrefixNode* from, const PrefixNode& resume) {
  if (!leaving_ || !resume.resume) return;
  const uint32_t first = FirstCovered(resume);
  for (; from->parent != nullptr && from->block >= first; from = from->parent) {
    if (from->covers == 1) TellLeaving(*from, sliding_groups_);
  }
}

void PrefixIndex::EvictNode(PrefixNode& node, Loss loss) {
  if (loss == Loss::kCapacity) {
    TellLeaving(node, all_groups_);
    TellWindowLeaving(node.parent, node);
  }
  ForgetResume(node);
  for (uint32_t group = 0; group < geometry_.windows.size(); ++group) {
    CACHALOT_DCHECK(node.slots[group] == kNoSlot || Idle(node, group));
    Unlist(node, group);
  }
  ForgetEntry(node, loss);
}

// The node lists no slot any more.
void PrefixIndex::ForgetEntry(PrefixNode& node, Loss loss) {
  policy_->Remove(BlockEntry(node));
  node.ranked = false;
  if (loss != Loss::kNone) {
    residency_.OnEvicted(node.id, now_);
    if (shadow_ != nullptr) shadow_->OnEvicted(node.chain, loss);
  }
  PrefixNode* const parent = node.parent;
  if (parent->parent != nullptr) {
    --parent->listed_children;
    UpdateRank(*parent);
  }
  Tidy(&node);
}

void PrefixIndex::Tidy(PrefixNode* node) {
  while (node->parent != nullptr && node->children.empty() && node->cursors == 0 && node->writer.value == 0 &&
         !ListsAny(*node)) {
    ForgetResume(*node);
    if (node->loose_hook.is_linked()) loose_.erase(loose_.iterator_to(*node));
    PrefixNode* const parent = node->parent;
    tree_.Remove(*node);
    node = parent;
  }
}

}  // namespace cachalot::kv
