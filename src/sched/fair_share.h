// FairShare says whose turn it is: deficit round robin between tenants, by tokens (Shreedhar and Varghese, 1995).
// Threads:   owned by the engine thread.
// Ownership: none.
// Invariant: equal calls give equal answers. A turn ends when more tokens were charged than the tenant's quantum, times
//            its weight, and what was over from the turns before. Between two turns of a tenant that waits all the
//            time, each other one has at most one, whatever it has waiting. Who has nothing waiting loses what it has
//            left; what it owes is paid by the turns that it misses meanwhile. Nobody owes anything once nobody waits.
// Cost:      O(1) per change, but that leaving is linear in the tenants of the round; Next is linear in them, whatever
//            they owe.
//
// What a request will cost is not known when its turn comes, so it is charged as it goes on, and may take its tenant
// far below zero: whoever owes more than a quantum misses that many turns.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/function_ref.h"
#include "base/tenant.h"

namespace cachalot::sched {

class FairShare {
 public:
  explicit FairShare(uint64_t quantum_tokens);

  // 1 where it was not set. Requires at least that.
  void SetWeight(TenantId tenant, uint32_t weight);

  // One more of its requests waits, or one fewer.
  void Enter(TenantId tenant);
  void Leave(TenantId tenant);
  uint64_t waiting(TenantId tenant) const;
  uint32_t waiting_tenants() const { return waiting_tenants_; }

  // So much was computed for it. Free while nobody else waits or owes.
  void Charge(TenantId tenant, uint64_t tokens);

  // Whose turn it is among those that wait and for which `can_run` holds. The others keep their places in the round and
  // what they have left.
  std::optional<TenantId> Next(FunctionRef<bool(TenantId)> can_run);

 private:
  struct Share {
    uint32_t weight = 1;
    uint64_t waiting = 0;   // requests
    int64_t deficit = 0;    // tokens that it may still have in this turn; < 0: that it had too many
    bool in_round = false;  // waits, or owes
    bool in_turn = false;   // has been given the quantum of this turn
  };

  Share& At(TenantId tenant);
  int64_t QuantumOf(const Share& share) const { return quantum_ * share.weight; }
  // Adds the quanta of so many turns.
  void Give(Share& share, int64_t turns) const;
  void SkipTurns(FunctionRef<bool(TenantId)> can_run);

  const int64_t quantum_;
  std::vector<Share> shares_;   // by tenant
  std::deque<TenantId> round_;  // each once; the front is next
  uint32_t waiting_tenants_ = 0;
};

}  // namespace cachalot::sched
