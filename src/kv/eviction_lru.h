// LruPolicy lets the candidate go that was used longest ago.
// Threads:   owned by the engine thread.
// Ownership: none.
// Invariant: as EvictionPolicy; entries touched in one instant go in the order of their touches.
// Cost:      O(log candidates) per call.
#pragma once

#include <map>
#include <vector>

#include "kv/eviction.h"

namespace cachalot::kv {

class LruPolicy final : public EvictionPolicy {
 public:
  void Insert(EntryId entry, const EntryInfo& info, Nanos now) override;
  void Touch(EntryId entry, Nanos now) override;
  void BecomeCandidate(EntryId entry) override;
  void NotCandidate(EntryId entry) override;
  void Remove(EntryId entry) override;
  std::optional<EntryId> Victim(Nanos now) override;

 private:
  struct Entry {
    uint64_t used = 0;  // counts uses of all entries
    bool candidate = false;
  };
  std::vector<Entry> entries_;
  std::map<uint64_t, EntryId> candidates_;  // by last use
  uint64_t uses_ = 0;
};

}  // namespace cachalot::kv
