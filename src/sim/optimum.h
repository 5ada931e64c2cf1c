// OptimumPolicy looks ahead: the candidate that is used again latest goes first (Belady, 1966).
// Threads:   one.
// Ownership: borrows the times of next use, by entry, which its user keeps up to date before each touch.
// Invariant: a candidate's next use changes only by a touch.
// Cost:      O(log candidates).
#pragma once

#include <vector>

#include "kv/eviction.h"
#include "kv/eviction_heap.h"

namespace cachalot::sim {

class OptimumPolicy final : public kv::EvictionPolicy {
 public:
  void Watch(const std::vector<uint64_t>* next_uses) { next_uses_ = next_uses; }

  void Insert(kv::EntryId entry, const kv::EntryInfo&, Nanos) override {
    if (entry >= candidate_.size()) candidate_.resize(entry + size_t{1});
  }
  void Touch(kv::EntryId entry, Nanos) override {
    if (!candidate_[entry]) return;
    heap_.Erase(entry);
    heap_.Push(entry, KeyOf(entry));
  }
  void BecomeCandidate(kv::EntryId entry) override {
    candidate_[entry] = true;
    heap_.Push(entry, KeyOf(entry));
  }
  void NotCandidate(kv::EntryId entry) override {
    candidate_[entry] = false;
    heap_.Erase(entry);
  }
  void Remove(kv::EntryId entry) override {
    if (candidate_[entry]) NotCandidate(entry);
  }
  std::optional<kv::EntryId> Victim(Nanos) override {
    if (heap_.empty()) return std::nullopt;
    return heap_.Min();
  }

 private:
  kv::CandidateHeap::Key KeyOf(kv::EntryId entry) const { return {UINT64_MAX - (*next_uses_)[entry], 0}; }

  const std::vector<uint64_t>* next_uses_ = nullptr;
  std::vector<bool> candidate_;
  std::vector<uint32_t> places_;
  kv::CandidateHeap heap_{&places_};
};

}  // namespace cachalot::sim
