#include "plan/advice_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "plan/advice_tables.h"

namespace cachalot::plan {
namespace {

constexpr double kIdleMemory = 0.5;  // of the pool in use: below it, memory idles

const Probe& ProbeOf(const Diagnosis& diagnosis, Constraint constraint) {
  return *std::ranges::find(diagnosis.probes, constraint, &Probe::constraint);
}

std::string_view NameOf(Constraint constraint) { return kConstraintNames[static_cast<size_t>(constraint)]; }

std::string Seconds3(double seconds) { return FormatCell(Seconds(seconds)); }

std::string BindingSentence(const Diagnosis& diagnosis) {
  const Outcome& now = diagnosis.present;
  if (!diagnosis.binds) {
    return fmt::format("Nothing binds: a request takes {} on average, {} if it had the machine to itself.",
                       Seconds3(now.e2e_mean_seconds), Seconds3(diagnosis.alone.e2e_mean_seconds));
  }
  const Probe& first = diagnosis.probes.front();
  std::string text =
      fmt::format("{} binds first: with {}, {}.", NameOf(*diagnosis.binds), first.what, GainText(now, first.outcome));
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  const bool speed = *diagnosis.binds == Constraint::kCompute || *diagnosis.binds == Constraint::kBandwidth;
  const double more = ProbeOf(diagnosis, Constraint::kCapacity).gain;
  if (speed && more < kLeastGain && now.in_use < kIdleMemory) {
    text +=
        fmt::format(" {}-bound: more KV does nothing; {} of the pool is in use while requests wait.",
                    *diagnosis.binds == Constraint::kCompute ? "Compute" : "Bandwidth", FormatCell(Share(now.in_use)));
  }
  return text;
}

std::string RefusalSentence(const Outcome& now) {
  return fmt::format("{} of {} requests are refused, the first because: {}.", FormatCount(now.requests - now.served),
                     FormatCount(now.requests), now.first_refusal);
}

std::string LeverSentence(std::string_view begin, const Diagnosis& diagnosis, const Advice& advice) {
  const std::string how = advice.lever.flags.empty() ? advice.lever.note : advice.lever.flags;
  return fmt::format("{}: {}{}: {}.", begin, advice.lever.name, how.empty() ? "" : fmt::format(" ({})", how),
                     GainText(diagnosis.present, advice.after));
}

// Where requests do not wait, only what makes each by itself quicker can help.
std::vector<std::string> LeverSentences(const Diagnosis& diagnosis) {
  std::vector<std::string> sentences;
  if (diagnosis.advice.empty() || !diagnosis.waits) {
    sentences.push_back(
        diagnosis.advice.empty()
            ? fmt::format("No change helps: none of {} makes requests {:.0f} % quicker, or serves more.",
                          diagnosis.rejected.size(), (kLeastGain - 1) * 100)
            : "No change helps against waiting; a single request can be made quicker.");
  }
  constexpr size_t kMost = 3;
  for (size_t i = 0; i < std::min(kMost, diagnosis.advice.size()); ++i) {
    const std::string_view begin = !diagnosis.waits ? "Quicker" : i == 0 ? "Try first" : "Then";
    sentences.push_back(LeverSentence(begin, diagnosis, diagnosis.advice[i]));
  }
  return sentences;
}

std::string_view FitVerdict(uint64_t holds, const LevelSpread& held, const std::optional<LevelSpread>& promised) {
  const LevelSpread& needed = promised ? *promised : held;
  if (needed.peak <= holds) return "it fits";
  if (needed.p99 <= holds) return "it fits but for the peak";
  return held.peak <= holds ? "what they hold fits, what they are promised does not" : "it does not fit";
}

LevelSpread LevelsOf(const Outcome& outcome, uint64_t ServedSpan::*tokens) {
  std::vector<Level> levels;
  for (const ServedSpan& span : outcome.spans) {
    if (span.served) levels.push_back({span.first_token, span.finish, span.*tokens});
  }
  return SpreadOf(levels);
}

std::string CapacitySentence(const Present& present, const Diagnosis& diagnosis) {
  const Outcome& roomy = ProbeOf(diagnosis, Constraint::kCapacity).outcome;
  const LevelSpread held = TokensHeld(roomy);
  const uint64_t holds = TokensOf(present.setting);
  const std::optional<LevelSpread> promised = TokensPromised(present.setting, roomy);
  std::string promises;
  if (promised) {
    promises = fmt::format("; guaranteed admission sets aside for what they ask for, {} and {}",
                           FormatCount(promised->p99), FormatCount(promised->peak));
  }
  return fmt::format(
      "Capacity: the pool holds {} tokens; had it room for all, those who generate{} would hold {} at p99 and {} at "
      "the peak{}: {}.",
      FormatCount(holds),
      roomy.served == roomy.requests ? ""
                                     : fmt::format(" ({} of {}; others are refused even so)", FormatCount(roomy.served),
                                                   FormatCount(roomy.requests)),
      FormatCount(held.p99), FormatCount(held.peak), promises, FitVerdict(holds, held, promised));
}

std::string CostSentence(const Diagnosis& diagnosis) {
  const Outcome& now = diagnosis.present;
  return fmt::format(
      "Cost: {} of machine time per request; {} of prompt tokens are found, {} of what is computed had been "
      "computed before.",
      Seconds3(now.served == 0 ? 0 : now.compute_seconds / static_cast<double>(now.served)),
      FormatCell(Share(now.hit_rate)), FormatCell(Share(now.recomputed)));
}

}  // namespace

std::string GainText(const Outcome& before, const Outcome& after) {
  std::string text = fmt::format("{} -> {} per request, TTFT p99 {} -> {}", Seconds3(before.e2e_mean_seconds),
                                 Seconds3(after.e2e_mean_seconds), Seconds3(before.ttft_p99_seconds),
                                 Seconds3(after.ttft_p99_seconds));
  if (before.within_target != after.within_target) {
    text = fmt::format("{} -> {} of {} served, {}", FormatCount(before.within_target), FormatCount(after.within_target),
                       FormatCount(before.requests), text);
  }
  return text;
}

uint64_t TokensOf(const Setting& setting) {
  const uint64_t each = std::max<uint64_t>(kv::SlotsHeld(GeometryOf(setting), setting.context_tokens), 1);
  return static_cast<uint64_t>(static_cast<double>(setting.slots) / static_cast<double>(each) *
                               static_cast<double>(setting.context_tokens));
}

LevelSpread TokensHeld(const Outcome& outcome) { return LevelsOf(outcome, &ServedSpan::tokens); }

std::optional<LevelSpread> TokensPromised(const Setting& setting, const Outcome& outcome) {
  const auto more = [](const ServedSpan& span) { return span.served && span.promised > span.tokens; };
  if (setting.admission != "guaranteed" || std::ranges::none_of(outcome.spans, more)) return std::nullopt;
  return LevelsOf(outcome, &ServedSpan::promised);
}

Report BuildAdviceReport(const AdvisedTraffic& traffic, const Present& present, const Diagnosis& diagnosis) {
  const Machine& machine = present.request.machine;
  const std::string calibrated =
      machine.measured_by.empty() ? "the calibrated machine" : fmt::format("what \"{}\" measured", machine.measured_by);
  Report report;
  report.title = fmt::format("Advice for {} on {}, {} of KV", present.request.model.name,
                             machine.measured ? calibrated : std::string(machine.device.title),
                             FormatBytes(present.setting.slots * present.setting.slot_bytes));
  if (!diagnosis.present.first_refusal.empty()) report.answers.push_back(RefusalSentence(diagnosis.present));
  report.answers.push_back(BindingSentence(diagnosis));
  for (std::string& sentence : LeverSentences(diagnosis)) report.answers.push_back(std::move(sentence));
  if (std::string ignored = IgnoredKeysText(present.request.model); !ignored.empty()) {
    report.answers.push_back(ignored + ".");
  }
  report.answers.push_back(CapacitySentence(present, diagnosis));
  report.answers.push_back(CostSentence(diagnosis));
  report.tables = TrafficTables(traffic, diagnosis);
  for (Table& table : AdviceTables(traffic, present, diagnosis)) report.tables.push_back(std::move(table));
  return report;
}

}  // namespace cachalot::plan
