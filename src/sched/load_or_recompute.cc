#include "sched/load_or_recompute.h"

#include <algorithm>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "cost/step_cost.h"
#include "cost/step_work.h"

namespace cachalot::sched {
namespace {

using TierBytes = std::array<uint64_t, kTierNames.size()>;

constexpr double kNever = std::numeric_limits<double>::infinity();

// What the ways of one view cost.
class Estimator {
 public:
  Estimator(const ResumeView& view, const cost::WorkShape& shape, const cost::StepCost& cost)
      : view_(view),
        shape_(shape),
        cost_(cost),
        step_rows_(std::max(view.step_rows, 1u)),
        block_tokens_(std::max(view.block_tokens, 1u)),
        step_overhead_(cost.Predict({}) + view.running_seconds) {}

  // The first `met_from` spans are loaded before anything is computed, those up to `end` are met.
  ResumeEstimate Of(size_t met_from, size_t end) const;
  double StepSeconds() const {
    const uint64_t rows =
        std::min<uint64_t>(step_rows_, view_.prompt_tokens - std::min(view_.hot_tokens, view_.prompt_tokens));
    return step_overhead_ + OwnSeconds(view_.hot_tokens, rows, 0);
  }

 private:
  uint64_t EndOf(size_t spans) const {
    uint64_t tokens = view_.hot_tokens;
    for (const TierSpan& span : std::span(view_.spans).first(spans)) tokens += span.tokens;
    return tokens;
  }
  // What these rows add to steps, and so to whoever runs beside them.
  double OwnSeconds(uint64_t first, uint64_t rows, uint64_t logit_rows) const {
    return cost_.Added(shape_.Rows(first, rows, logit_rows));
  }
  double ComputeSeconds(uint64_t first, uint64_t rows, uint64_t logit_rows) const {
    const uint64_t steps = rows / step_rows_ + (rows % step_rows_ != 0 ? 1 : 0);
    return OwnSeconds(first, rows, logit_rows) + static_cast<double>(steps) * step_overhead_;
  }
  // Each tier moves its bytes one after the other, the tiers at the same time.
  double LoadSeconds(const TierBytes& bytes) const {
    double longest = 0;
    for (size_t tier = 0; tier < bytes.size(); ++tier) {
      if (bytes[tier] == 0) continue;
      const LinkView& link = view_.links[tier];
      longest = std::max(longest, TransferSeconds(link.rate, bytes[tier], link.queued_bytes));
    }
    return longest;
  }
  // To be loaded of the spans [from, end) when the front has come to `front`, and of the windows before the end.
  TierBytes BytesAfter(size_t from, size_t end, uint64_t front) const;
  void Meet(size_t met_from, size_t end, ResumeEstimate& estimate) const;

  const ResumeView& view_;
  const cost::WorkShape& shape_;
  const cost::StepCost& cost_;
  const uint64_t step_rows_, block_tokens_;
  const double step_overhead_;
};

TierBytes Sum(const TierBytes& a, const TierBytes& b) {
  TierBytes sum = a;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

TierBytes Estimator::BytesAfter(size_t from, size_t end, uint64_t front) const {
  TierBytes bytes{};
  uint64_t first = EndOf(from);
  for (size_t i = from; i < end; ++i) {
    const TierSpan& span = view_.spans[i];
    const uint64_t passed = std::min(front - std::min(front, first), span.tokens);
    if (passed < span.tokens) {
      const double left = static_cast<double>(span.tokens - passed) / static_cast<double>(span.tokens);
      bytes[TierIndex(span.tier)] += static_cast<uint64_t>(static_cast<double>(span.full_bytes) * left);
    }
    first += span.tokens;
  }
  if (end > from && front < first) bytes[TierIndex(view_.spans[end - 1].tier)] += view_.spans[end - 1].window_bytes;
  return bytes;
}

// Where what is computed below takes as long as what is loaded above, in whole blocks.
void Estimator::Meet(size_t met_from, size_t end, ResumeEstimate& estimate) const {
  const uint64_t first = estimate.meets_from;
  const TierBytes before = BytesAfter(0, met_from, 0);
  const auto front_at = [&](uint64_t blocks) { return std::min(first + blocks * block_tokens_, estimate.end_token); };
  const auto computed = [&](uint64_t front) { return estimate.wait_seconds + ComputeSeconds(first, front - first, 0); };
  const auto loaded = [&](uint64_t front) { return LoadSeconds(Sum(before, BytesAfter(met_from, end, front))); };
  const auto met = [&](uint64_t front) { return std::max(computed(front), loaded(front)); };

  const uint64_t blocks = (estimate.end_token - first + block_tokens_ - 1) / block_tokens_;
  uint64_t low = 0, high = blocks;  // the first at which the front is not the earlier one
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (computed(front_at(middle)) >= loaded(front_at(middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  uint64_t front = front_at(low);
  if (low > 0 && met(front_at(low - 1)) <= met(front)) front = front_at(low - 1);
  const TierBytes bytes = Sum(before, BytesAfter(met_from, end, front));
  estimate.meets_at = front;
  estimate.computed_tokens = front - first;
  estimate.load_seconds = LoadSeconds(bytes);
  estimate.ttft_seconds = met(front);
  estimate.delay_seconds = OwnSeconds(first, front - first, 0);
  for (const uint64_t b : bytes) estimate.load_bytes += b;
}

ResumeEstimate Estimator::Of(size_t met_from, size_t end) const {
  ResumeEstimate estimate{.end_token = EndOf(end), .meets_from = EndOf(met_from)};
  const TierBytes before = BytesAfter(0, met_from, 0);
  estimate.meets_at = estimate.meets_from;
  estimate.wait_seconds = estimate.load_seconds = estimate.ttft_seconds = LoadSeconds(before);
  if (met_from < end) {
    Meet(met_from, end, estimate);
  } else {
    for (const uint64_t b : before) estimate.load_bytes += b;
  }
  // The last row is always computed, for its logits.
  const uint64_t rest_from =
      std::min(estimate.end_token, view_.prompt_tokens - std::min<uint64_t>(view_.prompt_tokens, 1));
  const uint64_t rest = view_.prompt_tokens - rest_from;
  estimate.computed_tokens += rest;
  estimate.ttft_seconds += ComputeSeconds(rest_from, rest, std::min<uint64_t>(rest, 1));
  estimate.delay_seconds += OwnSeconds(rest_from, rest, std::min<uint64_t>(rest, 1));
  estimate.cost_seconds = estimate.ttft_seconds + static_cast<double>(view_.running) * estimate.delay_seconds;
  return estimate;
}

// Those before the end that are neither hot nor computed by the front.
uint64_t LoadedTokens(const ResumeView& view, const ResumeEstimate& estimate) {
  return estimate.end_token - view.hot_tokens - (estimate.meets_at - estimate.meets_from);
}

bool Meets(const ResumeEstimate& estimate, const std::optional<double>& target) {
  return !target || estimate.ttft_seconds <= *target;
}

// Whether `a` is to be preferred: it meets the target, and costs less; where neither meets it, it is sooner.
bool Better(const ResumeEstimate& a, const ResumeEstimate& b, const std::optional<double>& target) {
  if (Meets(a, target) != Meets(b, target)) return Meets(a, target);
  return Meets(a, target) ? a.cost_seconds < b.cost_seconds : a.ttft_seconds < b.ttft_seconds;
}

// Keeps the better of the two.
void Consider(std::optional<ResumeEstimate>& best, const ResumeEstimate& estimate,
              const std::optional<double>& target) {
  if (!best || Better(estimate, *best, target)) best = estimate;
}

struct Candidates {
  std::array<std::optional<ResumeEstimate>, kResumeWayNames.size()> best;  // of those that may be chosen, by way
  std::optional<ResumeEstimate> patient;                                   // the best load, however long it takes
  double least_cost = kNever;                                              // of those that may be chosen
};

Candidates EstimateAll(const ResumeView& view, const Estimator& estimator, double patience_seconds) {
  Candidates all;
  const auto add = [&](ResumeWay way, const ResumeEstimate& estimate) {
    Consider(all.best[static_cast<size_t>(way)], estimate, view.ttft_target_seconds);
    all.least_cost = std::min(all.least_cost, estimate.cost_seconds);
  };
  add(ResumeWay::kRecompute, estimator.Of(0, 0));
  for (size_t end = 1; end <= view.spans.size(); ++end) {
    if (!view.spans[end - 1].resumable) continue;
    const ResumeEstimate load = estimator.Of(end, end);
    Consider(all.patient, load, view.ttft_target_seconds);
    if (load.wait_seconds <= patience_seconds) {
      add(ResumeWay::kLoad, load);
      continue;
    }
    for (size_t met_from = 0; met_from < end; ++met_from) {
      if (met_from > 0 && !view.spans[met_from - 1].resumable) continue;
      const ResumeEstimate both = estimator.Of(met_from, end);
      if (both.wait_seconds <= patience_seconds) add(ResumeWay::kBoth, both);
    }
  }
  return all;
}

ResumeReason ReasonFor(const ResumeEstimate& chosen, const Candidates& all, const std::optional<double>& target) {
  if (!all.patient) return ResumeReason::kNothingToLoad;
  if (!Meets(chosen, target)) return ResumeReason::kNearestTarget;
  if (all.least_cost < chosen.cost_seconds) return ResumeReason::kMeetsTarget;
  return Better(*all.patient, chosen, target) ? ResumeReason::kLoadExceedsStep : ResumeReason::kLeastDelay;
}

}  // namespace

Decision ChooseResume(const ResumeView& view, const cost::WorkShape& shape, const cost::StepCost& cost) {
  const Estimator estimator(view, shape, cost);
  Decision decision{.view = view, .step_seconds = estimator.StepSeconds()};
  const Candidates all = EstimateAll(view, estimator, view.patience_steps * decision.step_seconds);
  for (const ResumeWay way : {ResumeWay::kLoad, ResumeWay::kBoth}) {
    const std::optional<ResumeEstimate>& estimate = all.best[static_cast<size_t>(way)];
    const ResumeEstimate& best = *all.best[static_cast<size_t>(decision.way)];
    if (estimate && Better(*estimate, best, view.ttft_target_seconds)) decision.way = way;
  }
  decision.estimates = all.best;
  std::optional<ResumeEstimate>& load = decision.estimates[static_cast<size_t>(ResumeWay::kLoad)];
  if (!load) load = all.patient;
  decision.reason = ReasonFor(decision.chosen(), all, view.ttft_target_seconds);
  return decision;
}

bool LoadPays(const Decision& decision) {
  const auto& load = decision.estimates[static_cast<size_t>(ResumeWay::kLoad)];
  return load && load->cost_seconds < decision.estimates[static_cast<size_t>(ResumeWay::kRecompute)]->cost_seconds;
}

std::string DecisionLine(const Decision& decision) {
  const ResumeView& view = decision.view;
  const ResumeEstimate& chosen = decision.chosen();
  std::string line = fmt::format(
      "{} ({}): of {} prompt tokens {} are hot and {} loaded, {} are computed; {:.4g} s to the first token",
      kResumeWayNames[static_cast<size_t>(decision.way)], kResumeReasonNames[static_cast<size_t>(decision.reason)],
      view.prompt_tokens, view.hot_tokens, LoadedTokens(view, chosen), chosen.computed_tokens, chosen.ttft_seconds);
  for (size_t way = 0; way < decision.estimates.size(); ++way) {
    if (way == static_cast<size_t>(decision.way) || !decision.estimates[way]) continue;
    line += fmt::format(", {} {:.4g} s", kResumeWayNames[way], decision.estimates[way]->ttft_seconds);
  }
  line += fmt::format("; {} running, delayed by {:.4g} s each; a step takes {:.4g} s", view.running,
                      chosen.delay_seconds, decision.step_seconds);
  if (view.ttft_target_seconds) line += fmt::format("; target {:.4g} s", *view.ttft_target_seconds);
  if (decision.outcome && decision.outcome->ttft_seconds) {
    line += fmt::format("; it took {:.4g} s", *decision.outcome->ttft_seconds);
  }
  return line;
}

namespace {

Json Count(uint64_t value) { return static_cast<int64_t>(value); }

Json InputsAsJson(const Decision& decision) {
  const ResumeView& view = decision.view;
  Json::Array spans;
  for (const TierSpan& span : view.spans) {
    spans.push_back(Json::Object{{"tier", std::string(TierName(span.tier))},
                                 {"tokens", Count(span.tokens)},
                                 {"full_bytes", Count(span.full_bytes)},
                                 {"window_bytes", Count(span.window_bytes)},
                                 {"resumable", span.resumable}});
  }
  Json::Object links;
  for (size_t tier = 0; tier < view.links.size(); ++tier) {
    const LinkView& link = view.links[tier];
    links.emplace_back(std::string(kTierNames[tier]), Json::Object{{"latency", link.rate.latency_seconds},
                                                                   {"bytes_per_second", link.rate.bytes_per_second},
                                                                   {"queued_bytes", Count(link.queued_bytes)}});
  }
  return Json::Object{{"prompt_tokens", Count(view.prompt_tokens)},
                      {"hot_tokens", Count(view.hot_tokens)},
                      {"spans", std::move(spans)},
                      {"links", std::move(links)},
                      {"block_tokens", Count(view.block_tokens)},
                      {"step_rows", Count(view.step_rows)},
                      {"step_seconds", decision.step_seconds},
                      {"patience_steps", view.patience_steps},
                      {"running", Count(view.running)},
                      {"running_seconds", view.running_seconds},
                      {"ttft_target_seconds", view.ttft_target_seconds ? Json(*view.ttft_target_seconds) : Json()}};
}

Json EstimateAsJson(const ResumeEstimate& e) {
  return Json::Object{{"end_token", Count(e.end_token)},
                      {"meets_from", Count(e.meets_from)},
                      {"meets_at", Count(e.meets_at)},
                      {"load_bytes", Count(e.load_bytes)},
                      {"computed_tokens", Count(e.computed_tokens)},
                      {"load_seconds", e.load_seconds},
                      {"wait_seconds", e.wait_seconds},
                      {"ttft_seconds", e.ttft_seconds},
                      {"delay_seconds", e.delay_seconds},
                      {"cost_seconds", e.cost_seconds}};
}

Json OutcomeAsJson(const ResumeOutcome& outcome) {
  return Json::Object{{"end", std::string(kResumeEndNames[static_cast<size_t>(outcome.end)])},
                      {"ttft_seconds", outcome.ttft_seconds ? Json(*outcome.ttft_seconds) : Json()},
                      {"loaded_tokens", Count(outcome.loaded_tokens)},
                      {"computed_tokens", Count(outcome.computed_tokens)},
                      {"failed_blocks", Count(outcome.failed_blocks)}};
}

}  // namespace

Json DecisionAsJson(const Decision& decision) {
  Json::Object estimates;
  for (size_t way = 0; way < decision.estimates.size(); ++way) {
    const std::optional<ResumeEstimate>& estimate = decision.estimates[way];
    estimates.emplace_back(std::string(kResumeWayNames[way]), estimate ? EstimateAsJson(*estimate) : Json());
  }
  return Json::Object{{"way", std::string(kResumeWayNames[static_cast<size_t>(decision.way)])},
                      {"reason", std::string(kResumeReasonNames[static_cast<size_t>(decision.reason)])},
                      {"inputs", InputsAsJson(decision)},
                      {"estimates", std::move(estimates)},
                      {"outcome", decision.outcome ? OutcomeAsJson(*decision.outcome) : Json()}};
}

}  // namespace cachalot::sched
