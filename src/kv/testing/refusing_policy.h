// RefusingPolicy is another policy that once names no victim though there are candidates: an allocation that fails.
// Threads:   one.
// Ownership: owns the policy that it wraps.
// Invariant: all calls but one are passed on.
// Cost:      that of the wrapped policy.
#pragma once

#include <memory>
#include <utility>

#include "kv/eviction.h"

namespace cachalot::kv {

class RefusingPolicy final : public EvictionPolicy {
 public:
  // The `nth` call for a victim (1: the first) is refused. `calls` counts them and must outlive the policy.
  RefusingPolicy(std::unique_ptr<EvictionPolicy> policy, uint64_t nth, uint64_t* calls)
      : policy_(std::move(policy)), nth_(nth), calls_(*calls) {}

  VisitId StartVisit(const Arrival& arrival) override { return policy_->StartVisit(arrival); }
  void EndVisit(VisitId visit, Nanos now) override { policy_->EndVisit(visit, now); }
  void Insert(EntryId entry, const EntryInfo& info, Nanos now) override { policy_->Insert(entry, info, now); }
  void Touch(EntryId entry, Nanos now) override { policy_->Touch(entry, now); }
  void Retain(EntryId entry, const Retention& wish, Nanos now) override { policy_->Retain(entry, wish, now); }
  void BecomeCandidate(EntryId entry) override { policy_->BecomeCandidate(entry); }
  void NotCandidate(EntryId entry) override { policy_->NotCandidate(entry); }
  void Evict(EntryId entry) override { policy_->Evict(entry); }
  void Remove(EntryId entry) override { policy_->Remove(entry); }
  std::optional<EntryId> Victim(Nanos now) override { return ++calls_ == nth_ ? std::nullopt : policy_->Victim(now); }
  std::optional<EntryId> Expired(Nanos now) override { return policy_->Expired(now); }
  std::optional<Nanos> NextExpiry() const override { return policy_->NextExpiry(); }

 private:
  const std::unique_ptr<EvictionPolicy> policy_;
  const uint64_t nth_;
  uint64_t& calls_;
};

}  // namespace cachalot::kv
