#include "plan/moving.h"

#include <algorithm>

#include "cost/step_cost.h"
#include "cost/step_work.h"
#include "sched/load_or_recompute.h"

namespace cachalot::plan {
namespace {

uint64_t OnDevice(const MovedSession& session, uint64_t tokens) {
  return tokens / session.context_shards + (tokens % session.context_shards != 0 ? 1 : 0);
}

// The session's tokens are all in one lower tier; one more row is computed for its logits, whatever is loaded.
sched::ResumeView ViewOf(const MovedSession& session, const TierRate& rate, uint64_t tokens) {
  const uint64_t own = OnDevice(session, tokens);
  const kv::KvGeometry full = kv::FullPart(session.sizes.geometry);
  const kv::KvGeometry sliding = kv::SlidingPart(session.sizes.geometry);
  sched::TierSpan span{.tier = TierId::kHost, .tokens = tokens};
  span.full_bytes = kv::SlotsHeld(full, own) * session.sizes.slot_bytes;
  span.window_bytes = kv::SlotsHeld(sliding, own) * session.sizes.slot_bytes + session.sizes.state_bytes;
  sched::ResumeView view;
  view.prompt_tokens = tokens + 1;
  view.spans = {span};
  view.links[TierIndex(TierId::kHost)].rate = rate;
  view.block_tokens = session.sizes.geometry.block_tokens;
  view.step_rows = session.sizes.step_tokens;
  return view;
}

}  // namespace

MovedSession SessionOf(const ModelShape& model, const Format& weights, const KvSizes& on_device,
                       const Machine& machine) {
  MovedSession session{.sizes = on_device,
                       .curve = CurveOf(machine, model, weights),
                       .context_shards = machine.shards.context,
                       .windows = {}};
  for (const auto& [window, products] : model.position_products) session.windows.push_back(window);
  return session;
}

double RecomputeSeconds(const MovedSession& session, uint64_t tokens) {
  const cost::WorkShape work(session.windows);
  const cost::StepCost cost(session.curve);
  const uint64_t steps = std::max<uint64_t>(kv::BlocksFor(tokens, session.sizes.step_tokens), 1);
  return cost.Predict(work.Rows(0, tokens, 1)) + static_cast<double>(steps - 1) * cost.Predict({});
}

Move PlanMove(const MovedSession& session, const TierRate& rate, uint64_t tokens, uint64_t limit_tokens) {
  const sched::ResumeView view = ViewOf(session, rate, tokens);
  const cost::WorkShape work(session.windows);
  const sched::Decision decision = sched::ChooseResume(view, work, cost::StepCost(session.curve));
  const auto estimate = [&](sched::ResumeWay way) { return decision.estimates[static_cast<size_t>(way)]; };
  Move move;
  move.bytes = view.spans.front().full_bytes + view.spans.front().window_bytes;
  move.load_seconds = TransferSeconds(rate, move.bytes, 0);
  move.recompute_seconds = RecomputeSeconds(session, tokens);
  if (const auto both = estimate(sched::ResumeWay::kBoth)) move.both_seconds = both->ttft_seconds;
  move.choice = sched::kResumeWayNames[static_cast<size_t>(decision.way)];

  // Loading costs a latency and then less per token with every window that is full; recomputing ever more: they cross
  // once.
  const auto load_is_sooner = [&](uint64_t n) {
    return TransferSeconds(rate, PagedBytes(session.sizes, OnDevice(session, n)), 0) < RecomputeSeconds(session, n);
  };
  if (limit_tokens == 0 || !load_is_sooner(limit_tokens)) return move;
  uint64_t low = 0, high = limit_tokens;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (load_is_sooner(middle) ? high : low) = middle;
  }
  move.break_even_tokens = high;
  return move;
}

}  // namespace cachalot::plan
