#include "sched/fair_share.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace cachalot::sched {

FairShare::FairShare(uint64_t quantum_tokens) : quantum_(static_cast<int64_t>(quantum_tokens)) {
  CACHALOT_CHECK(quantum_tokens > 0);
}

FairShare::Share& FairShare::At(TenantId tenant) {
  if (tenant.value >= shares_.size()) shares_.resize(tenant.value + 1);
  return shares_[tenant.value];
}

void FairShare::SetWeight(TenantId tenant, uint32_t weight) {
  CACHALOT_CHECK(weight > 0);
  At(tenant).weight = weight;
}

uint64_t FairShare::waiting(TenantId tenant) const {
  return tenant.value < shares_.size() ? shares_[tenant.value].waiting : 0;
}

void FairShare::Enter(TenantId tenant) {
  Share& share = At(tenant);
  if (share.waiting++ > 0) return;
  ++waiting_tenants_;
  if (share.in_round) return;
  share.in_round = true;
  round_.push_back(tenant);
}

void FairShare::Leave(TenantId tenant) {
  Share& share = At(tenant);
  CACHALOT_CHECK(share.waiting > 0);
  if (--share.waiting > 0) return;
  share.deficit = std::min<int64_t>(share.deficit, 0);
  if (--waiting_tenants_ == 0) {
    for (const TenantId each : round_) {
      Share& ended = At(each);
      ended.deficit = 0;
      ended.in_round = ended.in_turn = false;
    }
    round_.clear();
  } else if (share.deficit == 0) {
    share.in_round = share.in_turn = false;
    round_.erase(std::ranges::find(round_, tenant));
  }
}

void FairShare::Charge(TenantId tenant, uint64_t tokens) {
  Share& share = At(tenant);
  if (tokens == 0 || round_.size() == (share.in_round ? 1 : 0)) return;
  share.deficit -= static_cast<int64_t>(tokens);
  const bool turn_ends = share.in_turn && share.deficit <= 0;
  if (share.in_round && !turn_ends) return;
  if (turn_ends) round_.erase(std::ranges::find(round_, tenant));
  share.in_turn = false;
  share.in_round = true;
  round_.push_back(tenant);
}

void FairShare::Give(Share& share, int64_t turns) const {
  const int64_t most = share.waiting > 0 ? QuantumOf(share) : 0;
  share.deficit = std::min(share.deficit + turns * QuantumOf(share), most);
}

std::optional<TenantId> FairShare::Next(FunctionRef<bool(TenantId)> can_run) {
  for (;;) {
    size_t at = 0;  // those before it cannot run now
    bool any = false;
    for (size_t visits = round_.size(); visits > 0; --visits) {
      const TenantId tenant = round_[at];
      Share& share = At(tenant);
      if (share.waiting > 0 && !can_run(tenant)) {
        ++at;
        continue;
      }
      any |= share.waiting > 0;
      if (!share.in_turn) Give(share, 1);
      share.in_turn = true;
      if (share.waiting > 0 && share.deficit > 0) return tenant;
      share.in_turn = false;
      round_.erase(round_.begin() + static_cast<ptrdiff_t>(at));
      share.in_round = share.waiting > 0 || share.deficit < 0;
      if (share.in_round) round_.push_back(tenant);
    }
    if (!any) return std::nullopt;
    SkipTurns(can_run);
  }
}

// All turns in which nobody would come out of debt, at once. Requires that all who can run owe.
void FairShare::SkipTurns(FunctionRef<bool(TenantId)> can_run) {
  int64_t turns = std::numeric_limits<int64_t>::max();
  for (const TenantId tenant : round_) {
    const Share& share = At(tenant);
    if (share.waiting > 0 && can_run(tenant)) turns = std::min(turns, -share.deficit / QuantumOf(share));
  }
  if (turns == 0) return;
  for (const TenantId tenant : round_) {
    Share& share = At(tenant);
    if (share.waiting == 0 || can_run(tenant)) Give(share, turns);
  }
  std::erase_if(round_, [&](TenantId tenant) {
    Share& share = At(tenant);
    share.in_round = share.waiting > 0 || share.deficit < 0;
    return !share.in_round;
  });
}

}  // namespace cachalot::sched
