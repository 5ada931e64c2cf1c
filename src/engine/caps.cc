// What the terms of a tenant refuse.
#include <fmt/format.h>

#include "engine/engine_state.h"
#include "sched/admission.h"

namespace cachalot::engine {
namespace {

Rejection RejectionOf(RequestId id, const sched::Excess& excess, std::string_view whose) {
  const auto refuse = [&](RejectReason reason, std::string_view amount) {
    return Rejection{
        id, reason,
        fmt::format("the request needs {} {}, but {} may have {}", excess.needed, amount, whose, excess.allowed),
        excess.needed, excess.allowed};
  };
  switch (excess.part) {
    case sched::LoadPart::kContext:
      return refuse(RejectReason::kContextLength, "tokens of context (prompt and answer)");
    case sched::LoadPart::kOutput: return refuse(RejectReason::kInvalid, "generated tokens (max_tokens, n times)");
    case sched::LoadPart::kSequences: return refuse(RejectReason::kInvalid, "sequences (n)");
    case sched::LoadPart::kBlocks: break;
  }
  return refuse(RejectReason::kTooLarge, "KV blocks");
}

}  // namespace

const TenantTerms& Engine::State::TermsOf(TenantId tenant) const {
  return tenant.value < options.tenants.size() ? options.tenants[tenant.value] : options.terms;
}

// Beyond the context its blocks are of no interest, and may be too many to compute.
Load Engine::State::LoadOf(const GenerateRequest& asked) const {
  const uint64_t tokens = asked.prompt.size() + uint64_t{asked.max_tokens};
  const uint64_t blocks = tokens <= executor.context_tokens() ? DemandOf(asked, asked.n).both() : 0;
  return {tokens, uint64_t{asked.max_tokens} * asked.n, asked.n, blocks};
}

// Of a request that its terms never allow, whatever runs.
std::optional<Rejection> Engine::State::RefuseByTerms(const GenerateRequest& asked, const Load& load) const {
  const TenantTerms& terms = TermsOf(asked.tenant);
  if (const auto excess = sched::FirstExcess(load, {}, terms.request)) {
    return RejectionOf(asked.id, *excess, "a request");
  }
  if (const auto excess = sched::FirstExcess(load, {}, terms.tenant)) {
    return RejectionOf(asked.id, *excess, "all of a tenant's running requests together");
  }
  return std::nullopt;
}

// Where several tenants share the queue, each may fill as many of its places as are free then: one that fills all it
// can leaves half for the others, two a third.
std::optional<Rejection> Engine::State::RefuseByQueue(const GenerateRequest& asked) const {
  const auto refuse = [&](uint64_t waiting_already, uint64_t allowed, std::string_view whose) {
    return Rejection{asked.id, RejectReason::kQueueFull,
                     fmt::format("{} requests{} are waiting already; at most {} may", waiting_already, whose, allowed),
                     waiting_already + 1, allowed};
  };
  if (waiting.size() >= options.max_queue) return refuse(waiting.size(), options.max_queue, "");
  const uint64_t own = fair_share.waiting(asked.tenant), cap = TermsOf(asked.tenant).queue;
  if (cap != 0) return own < cap ? std::nullopt : std::optional(refuse(own, cap, " of this tenant"));
  const uint64_t free = options.max_queue - waiting.size();
  if (options.tenants.size() < 2 || own < free) return std::nullopt;
  return refuse(own, own, " of this tenant");
}

}  // namespace cachalot::engine
