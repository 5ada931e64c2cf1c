// What is drawn of a replay: the engine over time, hit rates by capacity, results by a setting that was swept.
// Threads:   pure functions.
// Ownership: none.
// Invariant: rates are means between two samples; of more than kMostPlaces samples some are left out.
// Cost:      linear in the samples or rows.
#pragma once

#include <vector>

#include "base/json.h"
#include "plan/plot.h"
#include "sim/trace_serving.h"

namespace cachalot::cli {

inline constexpr size_t kMostPlaces = 600;

std::vector<plan::Plot> SeriesPlots(const std::vector<sim::ServingSample>& samples);
// Of the rows of --curve.
plan::Plot CurvePlot(const Json::Array& rows);
// One per result that is worth a look, a line per combination of the other settings. Empty where no number was swept.
std::vector<plan::Plot> SweepPlots(const Json::Array& rows);

}  // namespace cachalot::cli
