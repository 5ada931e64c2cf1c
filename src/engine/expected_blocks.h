// ExpectedBlocks names the blocks that requests in the queue will read, so that lower tiers keep them.
// Threads:   engine thread.
// Ownership: a hold must not outlive what it was taken of.
// Invariant: contains exactly the keys of the holds that there are.
// Cost:      O(log keys) per key and call.
#pragma once

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace cachalot::engine {

class ExpectedBlocks {
 public:
  // Of one request.
  class Hold {
   public:
    Hold(Hold&& other) noexcept : keys_(other.keys_), held_(std::exchange(other.held_, {})) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(keys_, other.keys_);
      std::swap(held_, other.held_);
      return *this;
    }
    ~Hold() {
      for (const auto key : held_) keys_->erase(key);
    }

   private:
    friend class ExpectedBlocks;
    explicit Hold(std::multiset<Digest>* keys) : keys_(keys) {}
    std::multiset<Digest>* keys_;
    std::vector<std::multiset<Digest>::const_iterator> held_;
  };

  ExpectedBlocks() = default;
  ExpectedBlocks(const ExpectedBlocks&) = delete;
  ExpectedBlocks& operator=(const ExpectedBlocks&) = delete;

  Hold Take(std::span<const Digest> keys) {
    Hold hold(&keys_);
    hold.held_.reserve(keys.size());
    for (const Digest& key : keys) hold.held_.push_back(keys_.insert(key));
    return hold;
  }
  bool Contains(const Digest& key) const { return keys_.contains(key); }

 private:
  std::multiset<Digest> keys_;
};

}  // namespace cachalot::engine
