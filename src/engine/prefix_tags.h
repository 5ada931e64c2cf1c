// PrefixTags names the prefixes of a text by numbers that tell nothing of it, but which texts begin alike.
// Threads:   each belongs to one.
// Ownership: owns its chain.
// Invariant: two texts tagged under one key have equal tags up to token i iff their tokens are equal up to there and
//            the engine lets them share the KV of that block; but for chance, once in 2^32 tags and 2^53 block names.
//            Without the key nobody can tell which tokens a tag stands for, not even by trying.
// Cost:      a SHA-256 per token: about half a microsecond.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/prefix_scope.h"

namespace cachalot::engine {

using TagKey = Digest;  // secret

class PrefixTags {
 public:
  PrefixTags(const TagKey& key, const PrefixScope& scope, uint32_t block_tokens);

  // The tag of each token, and of all before it. A copy goes on from here another way.
  std::vector<uint32_t> Push(std::span<const TokenId> tokens);
  // Of the blocks so far, the last of which may be unfilled; below 2^53.
  std::vector<uint64_t> BlockNames() const;

 private:
  void Push(TokenId token);

  const uint32_t block_tokens_;
  const CacheSalt salt_;
  const uint64_t salted_from_;  // the first token of the first block that not everybody shares
  Digest state_;
  uint64_t count_ = 0;
  std::vector<uint64_t> filled_;  // names of blocks
};

// Names anything else under the same key; below 2^53.
uint64_t TagOf(const TagKey& key, std::string_view kind, std::string_view text);

}  // namespace cachalot::engine
