// EvictionPolicy decides which cached blocks go first. The prefix index tells it what is there, what is used and what
// may go; it answers with a victim.
// Threads:   owned by the engine thread.
// Ownership: knows entries by number only; the prefix index owns what they stand for.
// Invariant: a victim is a candidate, and it stays one until told otherwise. The same calls give the same victims.
// Cost:      O(1) or O(log candidates) per call, amortised; memory per entry and visit, none per call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/retention.h"
#include "base/status.h"

namespace cachalot::kv {

using EntryId = uint32_t;  // something that can be evicted as one; dense, used again after Remove
using VisitId = uint32_t;  // one request's way through the index, from StartVisit to EndVisit

inline constexpr VisitId kNoVisit = 0;
inline constexpr Nanos kNever = Nanos::max();

// What one user of an entry wishes for it. Of all wishes whose deadlines have not passed the highest priority holds;
// once all have passed, the entry goes before all others.
struct Retention {
  RetentionPriority priority = RetentionPriority::kNormal;
  Nanos deadline = kNever;
};

struct EntryInfo {
  uint32_t slots = 1;            // that its eviction gives back
  uint64_t position = 0;         // tokens from the beginning to its end
  double recompute_seconds = 1;  // what it would cost to have it again
  bool short_block = false;      // sealed before it was full
  VisitId visit = kNoVisit;      // that it is part of
  Retention retention;
};

struct Arrival {
  Nanos now{0};
  std::optional<EntryId> deepest;  // the last entry on its way, and where that ends
  uint64_t known_tokens = 0;
  uint64_t prompt_tokens = 0;
  uint64_t whole_tokens = 0;  // of the prompt, in full blocks
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // A request comes in. Touch() speaks of the visit that was started last; Insert() names one.
  virtual VisitId StartVisit(const Arrival&) { return kNoVisit; }
  // It ended: idle time counts from now. Once per visit; no entry is inserted under it any more.
  virtual void EndVisit(VisitId, Nanos) {}

  virtual void Insert(EntryId entry, const EntryInfo& info, Nanos now) = 0;
  // A request uses the entry. A request's entries are touched last block first, so that tails leave first.
  virtual void Touch(EntryId entry, Nanos now) = 0;
  // Somebody wishes this for the entry, whoever has wished for what before.
  virtual void Retain(EntryId, const Retention&, Nanos) {}

  // Nothing stands in the way of its eviction: no reference and no entry that needs it; or something does again.
  virtual void BecomeCandidate(EntryId entry) = 0;
  virtual void NotCandidate(EntryId entry) = 0;
  // It is there no longer, but its number still stands for it: Insert() may follow. Ends candidacy.
  virtual void Evict(EntryId entry) { NotCandidate(entry); }
  // Forgotten. Ends candidacy.
  virtual void Remove(EntryId entry) = 0;

  // Requires that time does not go back.
  virtual std::optional<EntryId> Victim(Nanos now) = 0;
  // A candidate past its deadline, for those who want it gone without need.
  virtual std::optional<EntryId> Expired(Nanos) { return std::nullopt; }
  // Expired() names none before; nothing: never, as things are.
  virtual std::optional<Nanos> NextExpiry() const { return std::nullopt; }
};

// Names of policies, the default first.
std::span<const std::string_view> EvictionPolicyNames();
// kInvalid, with the names, for any other.
Result<std::unique_ptr<EvictionPolicy>> MakeEvictionPolicy(std::string_view name);

}  // namespace cachalot::kv
