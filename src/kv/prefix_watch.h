// PrefixWatch keeps count of how many whole blocks of a waiting prompt are resident, without looking it up again: it
// stands at the node of the last one, and the prefix index moves it on when the block after that is sealed, and back
// when the node's own leaves.
// Threads:   engine thread.
// Ownership: borrows the tokens, which must outlive it. It takes itself off the index when it ends; the index may end
//            before it.
// Invariant: tokens() is the `full_tokens` of PrefixIndex::Find for the same prompt and limit; 0 without an index, and
//            where no group has full attention.
// Cost:      O(log watches at the node) per block that it moves. Nothing for changes that are not on its way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <boost/intrusive/set.hpp>

#include "base/ids.h"
#include "base/prefix_scope.h"

namespace cachalot::kv {

struct PrefixNode;

struct PrefixKey {
  CacheSalt salt;
  std::span<const TokenId> tokens;

  static bool Less(const PrefixKey& a, const PrefixKey& b) {
    if (const auto order = a.salt <=> b.salt; order != 0) return order < 0;
    return std::ranges::lexicographical_compare(a.tokens, b.tokens);
  }
};

class PrefixWatch : public boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  struct ByNext {
    bool operator()(const PrefixWatch& a, const PrefixWatch& b) const { return PrefixKey::Less(a.next_, b.next_); }
    bool operator()(const PrefixWatch& a, const PrefixKey& b) const { return PrefixKey::Less(a.next_, b); }
    bool operator()(const PrefixKey& a, const PrefixWatch& b) const { return PrefixKey::Less(a, b.next_); }
  };
  using Set = boost::intrusive::multiset<PrefixWatch, boost::intrusive::compare<ByNext>,
                                         boost::intrusive::constant_time_size<false>>;

  // Blocks are looked for in the first `limit` tokens.
  PrefixWatch(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t limit)
      : scope_(scope), tokens_(tokens.first(std::min<size_t>(limit, tokens.size()))) {}
  PrefixWatch(const PrefixWatch&) = delete;
  PrefixWatch& operator=(const PrefixWatch&) = delete;

  // Of it, in whole blocks, that are resident.
  uint64_t tokens() const { return resident_; }

 private:
  friend class PrefixIndex;
  const PrefixScope scope_;
  const std::span<const TokenId> tokens_;
  uint64_t resident_ = 0;
  PrefixKey next_;  // of the block after it; shorter than a block where the tokens end
};

}  // namespace cachalot::kv
