// AnyVictim is an eviction policy that lets any candidate go, by a seeded choice: whatever a real policy may do, it
// does some day. It checks that it is told everything in order.
// Threads:   one.
// Ownership: none.
// Invariant: equal seeds and calls give equal victims.
// Cost:      O(log candidates).
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "kv/eviction.h"

namespace cachalot::kv {

class AnyVictim final : public EvictionPolicy {
 public:
  explicit AnyVictim(uint64_t seed) : random_(seed) {}

  void Insert(EntryId entry, const EntryInfo& info, Nanos) override {
    CACHALOT_CHECK(entries_.insert(entry).second && info.slots > 0);
  }
  void Touch(EntryId entry, Nanos) override { CACHALOT_CHECK(entries_.contains(entry)); }
  void BecomeCandidate(EntryId entry) override {
    CACHALOT_CHECK(entries_.contains(entry) && candidates_.insert(entry).second);
  }
  void NotCandidate(EntryId entry) override { CACHALOT_CHECK(candidates_.erase(entry) == 1); }
  void Remove(EntryId entry) override {
    CACHALOT_CHECK(entries_.erase(entry) == 1);
    candidates_.erase(entry);
  }
  std::optional<EntryId> Victim(Nanos) override {
    if (candidates_.empty()) return std::nullopt;
    const auto from = candidates_.lower_bound(static_cast<EntryId>(random_.Below(*candidates_.rbegin() + uint64_t{1})));
    return *from;
  }

 private:
  SplitMix64 random_;
  std::set<EntryId> entries_;
  std::set<EntryId> candidates_;
};

}  // namespace cachalot::kv
