#include "sched/down_decision.h"

#include <fmt/format.h>

namespace cachalot::sched {
namespace {

std::string_view NameOf(WayDown way) { return kWayDownNames[static_cast<size_t>(way)]; }
std::string_view NameOf(DownReason reason) { return kDownReasonNames[static_cast<size_t>(reason)]; }

Json Count(uint64_t value) { return static_cast<int64_t>(value); }

}  // namespace

DownDecision DecideDown(const DownKv& kv, const DownView& view, DownReason reason) {
  DownDecision decision{.kv = kv, .view = view, .costs = ChooseWayDown(view), .reason = reason};
  decision.way = reason == DownReason::kAskedFor ? WayDown::kHandDown : decision.costs.least;
  return decision;
}

std::string DecisionLine(const DownDecision& decision) {
  const DownKv& kv = decision.kv;
  const DownCosts& costs = decision.costs;
  std::string line =
      fmt::format("{}: {} ({}): {} tokens from {}, {} blocks of {} bytes; used again with {:.4g}; keep {:.4g} s",
                  TierName(kv.tier), NameOf(decision.way), NameOf(decision.reason), kv.tokens, kv.first_token,
                  kv.blocks, kv.bytes, decision.view.reuse.probability, costs.keep);
  if (costs.hand_down) line += fmt::format(", hand down {:.4g} s", *costs.hand_down);
  return line + fmt::format(", drop {:.4g} s", costs.drop);
}

Json DecisionAsJson(const DownDecision& decision) {
  const DownKv& kv = decision.kv;
  const DownView& view = decision.view;
  const DownCosts& costs = decision.costs;
  const DownOutcome& outcome = decision.outcome;
  Json::Object inputs{{"first_token", Count(kv.first_token)},
                      {"tokens", Count(kv.tokens)},
                      {"blocks", Count(kv.blocks)},
                      {"bytes", Count(kv.bytes)},
                      {"return_probability", view.reuse.probability},
                      {"recompute_seconds", view.reuse.recompute_seconds},
                      {"load_seconds", view.reuse.load_seconds},
                      {"write_seconds", view.reuse.write_seconds},
                      {"write_price", view.write_price}};
  Json::Object estimates{
      {"keep", costs.keep}, {"hand_down", costs.hand_down ? Json(*costs.hand_down) : Json()}, {"drop", costs.drop}};
  const bool known = decision.way == WayDown::kHandDown && outcome.all() >= kv.blocks;
  Json ended = Json::Object{{"written_blocks", Count(outcome.written_blocks)},
                            {"failed_blocks", Count(outcome.failed_blocks)},
                            {"skipped_blocks", Count(outcome.skipped_blocks)}};
  return Json::Object{{"tier", std::string(TierName(kv.tier))},
                      {"way", std::string(NameOf(decision.way))},
                      {"reason", std::string(NameOf(decision.reason))},
                      {"inputs", std::move(inputs)},
                      {"estimates", std::move(estimates)},
                      {"outcome", known ? std::move(ended) : Json()}};
}

}  // namespace cachalot::sched
