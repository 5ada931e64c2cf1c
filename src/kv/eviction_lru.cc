#include "kv/eviction_lru.h"

#include "base/check.h"

namespace cachalot::kv {

void LruPolicy::Insert(EntryId entry, const EntryInfo&, Nanos) {
  if (entry >= entries_.size()) entries_.resize(entry + 1);
  entries_[entry] = {++uses_, false};
}

void LruPolicy::Touch(EntryId entry, Nanos) {
  const bool candidate = entries_[entry].candidate;
  if (candidate) NotCandidate(entry);
  entries_[entry].used = ++uses_;
  if (candidate) BecomeCandidate(entry);
}

void LruPolicy::BecomeCandidate(EntryId entry) {
  entries_[entry].candidate = true;
  CACHALOT_CHECK(candidates_.emplace(entries_[entry].used, entry).second);
}

void LruPolicy::NotCandidate(EntryId entry) {
  entries_[entry].candidate = false;
  candidates_.erase(entries_[entry].used);
}

void LruPolicy::Remove(EntryId entry) {
  if (entries_[entry].candidate) NotCandidate(entry);
}

std::optional<EntryId> LruPolicy::Victim(Nanos) {
  if (candidates_.empty()) return std::nullopt;
  return candidates_.begin()->second;
}

}  // namespace cachalot::kv
