#include "kv/prefix_tree.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cachalot::kv {
namespace {

constexpr size_t kChunkNodes = 256;

}  // namespace

PrefixTree::PrefixTree(uint32_t block_tokens, uint32_t groups) : block_tokens_(block_tokens), groups_(groups) {
  CACHALOT_CHECK(block_tokens > 0 && groups > 0);
  AddChunk();
  spare_.pop_back();  // the root
}

PrefixTree::~PrefixTree() {
  for (PrefixNode* node : nodes_) node->children.clear();
}

void PrefixTree::AddChunk() {
  Chunk& chunk = chunks_.emplace_back();
  chunk.nodes = std::vector<PrefixNode>(kChunkNodes);
  chunk.tokens.resize(kChunkNodes * block_tokens_);
  chunk.slots.resize(kChunkNodes * groups_, kNoSlot);
  const size_t first = nodes_.size();
  for (size_t i = 0; i < kChunkNodes; ++i) {
    PrefixNode& node = chunk.nodes[i];
    node.id = static_cast<uint32_t>(first + i);
    node.tokens = chunk.tokens.data() + i * block_tokens_;
    node.slots = chunk.slots.data() + i * groups_;
    nodes_.push_back(&node);
  }
  for (size_t i = kChunkNodes; i > 0; --i) spare_.push_back(nodes_[first + i - 1]);
}

PrefixNode* PrefixTree::Find(PrefixNode& parent, const PrefixKey& key) const {
  const auto found = parent.children.find(key, PrefixNode::ByKey());
  return found == parent.children.end() ? nullptr : &*found;
}

PrefixNode& PrefixTree::Add(PrefixNode& parent, const PrefixKey& key) {
  CACHALOT_CHECK(!key.tokens.empty() && key.tokens.size() <= block_tokens_);
  CACHALOT_CHECK(&parent == &root() || parent.count == block_tokens_);
  if (spare_.empty()) AddChunk();
  PrefixNode& node = *spare_.back();
  spare_.pop_back();
  node.parent = &parent;
  node.chain = ExtendChain(parent.chain, key.tokens, key.salt);
  node.salt = key.salt;
  node.block = &parent == &root() ? 0 : parent.block + 1;
  node.count = static_cast<uint32_t>(key.tokens.size());
  std::copy(key.tokens.begin(), key.tokens.end(), node.tokens);
  CACHALOT_CHECK(parent.children.insert(node).second);
  return node;
}

void PrefixTree::Remove(PrefixNode& node) {
  CACHALOT_CHECK(node.parent != nullptr && node.children.empty());
  node.parent->children.erase(node.parent->children.iterator_to(node));
  node.parent = nullptr;
  node.count = 0;
  std::fill_n(node.slots, groups_, kNoSlot);
  node.writer = SequenceId(0);
  node.written = node.cursors = node.covers = node.listed_children = 0;
  node.resume = node.ranked = node.returns = false;
  node.wanted_until = Nanos(0);
  node.digest.reset();
  spare_.push_back(&node);
}

}  // namespace cachalot::kv
