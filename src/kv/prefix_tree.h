// PrefixTree orders token blocks by what precedes them: one node per block, children sorted by salt and tokens.
// Threads:   owned by the engine thread.
// Ownership: owns its nodes; their addresses are stable until Remove.
// Invariant: siblings differ in salt or tokens; only a node of block_tokens tokens has children.
// Cost:      Find, Add and Remove are O(log siblings) comparisons; no allocation once a tree of that size was seen.
//
// Tokens are compared, never hashes alone, so two prompts share a node only if they are equal up to its end.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include "base/clock.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/prefix_scope.h"
#include "kv/block_chain.h"
#include "kv/geometry.h"
#include "kv/prefix_watch.h"

namespace cachalot::kv {

struct PrefixNode : boost::intrusive::set_base_hook<> {
  struct ByKey {
    bool operator()(const PrefixNode& a, const PrefixNode& b) const { return Less(a.key(), b.key()); }
    bool operator()(const PrefixNode& a, const PrefixKey& b) const { return Less(a.key(), b); }
    bool operator()(const PrefixKey& a, const PrefixNode& b) const { return Less(a, b.key()); }
    static bool Less(const PrefixKey& a, const PrefixKey& b) { return PrefixKey::Less(a, b); }
  };
  using Children =
      boost::intrusive::set<PrefixNode, boost::intrusive::compare<ByKey>, boost::intrusive::constant_time_size<false>>;

  PrefixKey key() const { return {salt, {tokens, count}}; }
  // Blocks up to its end.
  uint32_t end_block() const { return parent == nullptr ? 0 : block + 1; }
  uint64_t end_position(uint32_t block_tokens) const { return uint64_t{block} * block_tokens + count; }

  uint32_t id = 0;  // dense; the root is 0
  PrefixNode* parent = nullptr;
  BlockChain chain;
  std::optional<Digest> digest;  // the block's key outside of this process, once somebody wanted it
  Children children;
  CacheSalt salt;
  uint32_t block = 0;         // its logical block; the root, which holds none, stands before block 0
  uint32_t count = 0;         // tokens
  TokenId* tokens = nullptr;  // [block_tokens]
  uint32_t* slots = nullptr;  // [group]; kNoSlot where that group's part is not resident
  boost::intrusive::list_member_hook<> loose_hook;  // of the index: see there
  PrefixWatch::Set watches;                         // of the index: that stand here

  // Kept by PrefixIndex.
  SequenceId writer{0};          // a running sequence that will fill the block or is filling it; 0: none
  uint32_t written = 0;          // tokens that the writer's own copy of the block holds for others to take
  uint32_t cursors = 0;          // sequences that have come this far and no further
  uint32_t covers = 0;           // resume points whose windows this block belongs to
  uint32_t listed_children = 0;  // that list slots
  bool resume = false;           // a resume point stands at its end
  bool ranked = false;           // the eviction policy may choose it
  bool returns = false;          // somebody thinks to use it again
  Nanos wanted_until{0};         // the last wish for it ends
};

class PrefixTree {
 public:
  PrefixTree(uint32_t block_tokens, uint32_t groups);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  PrefixNode& root() { return *nodes_.front(); }
  const PrefixNode& root() const { return *nodes_.front(); }
  // All nodes that are or were; those in use have a parent. By id.
  std::span<PrefixNode* const> nodes() const { return nodes_; }

  // Null when there is none.
  PrefixNode* Find(PrefixNode& parent, const PrefixKey& key) const;
  // Requires that there is none, and at most block_tokens tokens.
  PrefixNode& Add(PrefixNode& parent, const PrefixKey& key);
  // Requires that it has no children.
  void Remove(PrefixNode& node);

 private:
  void AddChunk();

  const uint32_t block_tokens_;
  const uint32_t groups_;
  struct Chunk {
    std::vector<PrefixNode> nodes;
    std::vector<TokenId> tokens;
    std::vector<uint32_t> slots;
  };
  std::deque<Chunk> chunks_;
  std::vector<PrefixNode*> nodes_;
  std::vector<PrefixNode*> spare_;
};

// Calls `visit(child, common tokens)` for children that share leading tokens with `key`, longest first, until it says
// true; looks at no more than kLookedAt. In the order of keys, likeness falls to both sides of where `key` belongs.
template <class Visit>
void VisitLikest(PrefixNode& parent, const PrefixKey& key, Visit visit) {
  constexpr int kLookedAt = 16;
  const auto likeness = [&](const PrefixNode& node) {
    return node.salt == key.salt ? CommonTokens(node.key().tokens, key.tokens) : 0;
  };
  auto after = parent.children.lower_bound(key, PrefixNode::ByKey());
  auto before = after;
  const auto begin = parent.children.begin(), end = parent.children.end();
  for (int looked = 0; looked < kLookedAt; ++looked) {
    const uint32_t like_after = after == end ? 0 : likeness(*after);
    const uint32_t like_before = before == begin ? 0 : likeness(*std::prev(before));
    if (like_after == 0 && like_before == 0) return;
    PrefixNode& next = like_after >= like_before ? *after++ : *--before;
    if (visit(next, std::max(like_after, like_before))) return;
  }
}

}  // namespace cachalot::kv
