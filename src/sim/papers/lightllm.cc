// The future peak of a batch that grows and ends, as LightLLM's past-future scheduler computes it, through what
// admission asks for each candidate.
#include <array>
#include <span>

#include <fmt/format.h>

#include "sched/future_peak.h"
#include "sim/papers/papers.h"

namespace cachalot::sim {

Result<PaperResult> LightLlm(const PaperInput&) {
  constexpr std::array<sched::GrowthView, 5> kBatch = {{{5, 4}, {4, 3}, {5, 3}, {3, 2}, {4, 2}}};
  constexpr std::array<double, 5> kPeaks = {9, 15, 23, 25, 31};
  PaperResult result{.setting = "five requests that hold 5, 4, 5, 3, 4 slots and will take 4, 3, 3, 2, 2 more",
                     .rows = {}};
  sched::FuturePeakWith peak;
  for (size_t i = 0; i < kBatch.size(); ++i) {
    peak.SetBatch(std::span(kBatch).first(i));
    const auto with = static_cast<double>(peak.With(kBatch[i]));
    result.rows.push_back(EqualRow(fmt::format("peak of the first {}", i + 1), FigureUnit::kCount, with, kPeaks[i]));
  }
  const auto whole = static_cast<double>(sched::FuturePeak(kBatch));
  result.rows.push_back(EqualRow("peak of all, by the formula", FigureUnit::kCount, whole, kPeaks.back()));
  return result;
}

}  // namespace cachalot::sim
