#include "cli/replay_plots.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"

namespace cachalot::cli {
namespace {

using plan::Plot;
using plan::Unit;
using sim::ServingSample;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

double ShareOf(double part, double whole) { return whole > 0 ? part / whole : kNothing; }

std::vector<ServingSample> Thinned(const std::vector<ServingSample>& samples) {
  const size_t each = (samples.size() + kMostPlaces - 1) / kMostPlaces;
  std::vector<ServingSample> kept;
  for (size_t i = 0; i < samples.size(); i += each) kept.push_back(samples[i]);
  return kept;
}

// Lines over the time of samples.
class Series {
 public:
  explicit Series(const std::vector<ServingSample>& samples) : samples_(samples) {}

  // `course`: of levels kFrom, of what passed between samples kUntil.
  Plot Empty(std::string title, Unit unit, Plot::Course course) const {
    Plot plot{.title = std::move(title), .x_title = "time of the trace", .unit = unit, .course = course};
    for (const ServingSample& sample : samples_) plot.x.push_back(ToSeconds(sample.time));
    return plot;
  }
  // At each sample.
  void Add(const std::string& label, const std::function<double(const ServingSample&)>& level, Plot* plot) const {
    Plot::Line& line = plot->lines.emplace_back(Plot::Line{label, {}});
    for (const ServingSample& sample : samples_) line.values.push_back(level(sample));
  }
  // Between each and the one before, of which the first has none.
  void AddBetween(const std::string& label,
                  const std::function<double(const ServingSample&, const ServingSample&)>& change, Plot* plot) const {
    Plot::Line& line = plot->lines.emplace_back(Plot::Line{label, {}});
    for (size_t i = 0; i < samples_.size(); ++i) {
      line.values.push_back(i == 0 ? kNothing : change(samples_[i - 1], samples_[i]));
    }
  }
  // What a total grew by in a second.
  void AddRate(std::string label, const std::function<double(const ServingSample&)>& total, Plot* plot) const {
    const auto rate = [&](const ServingSample& before, const ServingSample& now) {
      return ShareOf(total(now) - total(before), ToSeconds(now.time - before.time));
    };
    AddBetween(std::move(label), rate, plot);
  }

 private:
  const std::vector<ServingSample>& samples_;
};

Plot PoolPlot(const Series& series) {
  Plot plot = series.Empty("The pool", Unit::kShare, Plot::Course::kFrom);
  plot.stacked = true;
  plot.top = 1;
  series.Add(
      "requests that run", [](const ServingSample& s) { return s.in_use; }, &plot);
  series.Add(
      "kept for later", [](const ServingSample& s) { return s.idle; }, &plot);
  return plot;
}

Plot RequestPlot(const Series& series) {
  Plot plot = series.Empty("Requests", Unit::kCount, Plot::Course::kFrom);
  series.Add(
      "run", [](const ServingSample& s) { return s.running; }, &plot);
  series.Add(
      "wait", [](const ServingSample& s) { return s.waiting; }, &plot);
  return plot;
}

Plot HitPlot(const Series& series) {
  Plot plot = series.Empty("Found, and computed again", Unit::kShare, Plot::Course::kUntil);
  plot.top = 1;
  const auto found = [](const ServingSample& a, const ServingSample& b) {
    const double hit = static_cast<double>(b.prompt_tokens_cached - a.prompt_tokens_cached);
    return ShareOf(hit, hit + static_cast<double>(b.prompt_tokens_computed - a.prompt_tokens_computed));
  };
  const auto again = [](const ServingSample& a, const ServingSample& b) {
    return ShareOf(static_cast<double>(b.refault_tokens - a.refault_tokens),
                   static_cast<double>(b.tokens_computed - a.tokens_computed));
  };
  series.AddBetween("found, of prompts", found, &plot);
  series.AddBetween("again, of computed", again, &plot);
  return plot;
}

Plot PressurePlot(const Series& series) {
  Plot plot = series.Empty("Pressure and waste", Unit::kShare, Plot::Course::kFrom);
  plot.top = 0.1;
  series.Add(
      "some wait for KV (10 s)", [](const ServingSample& s) { return s.pressure; }, &plot);
  series.Add(
      "waste, of bytes in blocks", [](const ServingSample& s) { return s.waste; }, &plot);
  return plot;
}

Plot TokenPlot(const Series& series) {
  Plot plot = series.Empty("Tokens", Unit::kTokensPerSecond, Plot::Course::kUntil);
  const auto rate = [&](const char* label, uint64_t ServingSample::*total) {
    series.AddRate(
        label, [total](const ServingSample& s) { return static_cast<double>(s.*total); }, &plot);
  };
  rate("of prompts, computed", &ServingSample::prompt_tokens_computed);
  rate("of prompts, found", &ServingSample::prompt_tokens_cached);
  rate("computed again", &ServingSample::refault_tokens);
  rate("generated", &ServingSample::tokens_generated);
  return plot;
}

Plot BytesPlot(const Series& series) {
  Plot plot = series.Empty("KV moved", Unit::kBytesPerSecond, Plot::Course::kUntil);
  const auto rate = [&](const char* label, uint64_t sim::BytesMoved::*total) {
    series.AddRate(
        label, [total](const ServingSample& s) { return static_cast<double>(s.moved.*total); }, &plot);
  };
  rate("pool to host", &sim::BytesMoved::from_pool);
  rate("host to pool", &sim::BytesMoved::to_pool);
  rate("read from disk", &sim::BytesMoved::disk_read);
  rate("written to disk", &sim::BytesMoved::disk_written);
  return plot;
}

Plot TimePlot(const Series& series) {
  Plot plot = series.Empty("Where time goes", Unit::kShare, Plot::Course::kUntil);
  plot.stacked = true;
  plot.top = 1;
  const auto share = [&](const char* label, Nanos sim::TimeSpent::*part) {
    const auto between = [part](const ServingSample& a, const ServingSample& b) {
      const sim::TimeSpent spent = b.spent - a.spent;
      return ShareOf(ToSeconds(spent.*part), ToSeconds(spent.total()));
    };
    series.AddBetween(label, between, &plot);
  };
  share("computing", &sim::TimeSpent::compute);
  share("waiting for transfers", &sim::TimeSpent::transfers);
  return plot;
}

Plot TierPlot(const Series& series) {
  Plot plot = series.Empty("Blocks in lower tiers", Unit::kCount, Plot::Course::kFrom);
  series.Add(
      "host memory", [](const ServingSample& s) { return static_cast<double>(s.host_blocks); }, &plot);
  series.Add(
      "disk", [](const ServingSample& s) { return static_cast<double>(s.disk_blocks); }, &plot);
  return plot;
}

double NumberIn(const Json& row, std::string_view name) {
  const Json* value = row.Find(name);
  if (value == nullptr) return kNothing;
  if (const std::string* text = value->AsString()) {
    double number = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    return error == std::errc() && end == text->data() + text->size() ? number : kNothing;
  }
  return value->AsNumber().value_or(kNothing);
}

// A tenfold range is drawn in equal ratios.
bool WantsLog(const std::vector<double>& x) { return x.size() > 1 && x.front() > 0 && x.back() >= 10 * x.front(); }

// What stands first in each row, as text, are the settings that were swept.
std::vector<std::string> SweptNames(const Json::Array& rows) {
  std::vector<std::string> names;
  for (const auto& [name, value] : *rows.front().AsObject()) {
    if (value.AsString() == nullptr) break;
    names.push_back(name);
  }
  return names;
}

// The first with two different numbers and nothing else.
std::optional<std::string> NumericSetting(const Json::Array& rows, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    bool numbers = true, differ = false;
    for (const Json& row : rows) {
      const double value = NumberIn(row, name);
      numbers = numbers && std::isfinite(value);
      differ = differ || value != NumberIn(rows.front(), name);
    }
    if (numbers && differ) return name;
  }
  return std::nullopt;
}

std::string LabelOf(const Json& row, const std::vector<std::string>& names, const std::string& but) {
  std::string label;
  for (const std::string& name : names) {
    if (name == but) continue;
    label += fmt::format("{}{}", label.empty() ? "" : ", ", *row.Find(name)->AsString());
  }
  return label.empty() ? "all" : label;
}

}  // namespace

std::vector<Plot> SeriesPlots(const std::vector<ServingSample>& samples) {
  if (samples.size() < 2) return {};
  const std::vector<ServingSample> kept = Thinned(samples);
  const Series series(kept);
  std::vector<Plot> plots = {PoolPlot(series),     RequestPlot(series), HitPlot(series),
                             PressurePlot(series), TokenPlot(series),   TimePlot(series)};
  const ServingSample& last = samples.back();
  if (last.moved != sim::BytesMoved()) plots.push_back(BytesPlot(series));
  const auto has_tier = [](const ServingSample& s) { return s.host_blocks + s.disk_blocks > 0; };
  if (std::ranges::any_of(kept, has_tier)) plots.push_back(TierPlot(series));
  return plots;
}

Plot CurvePlot(const Json::Array& rows) {
  std::map<double, const Json*> by_capacity;
  for (const Json& row : rows) by_capacity[NumberIn(row, "capacity_blocks")] = &row;
  Plot plot{.title = "Hit rate by capacity", .x_title = "blocks", .x_unit = Unit::kCount, .unit = Unit::kShare};
  for (const auto& [label, name] :
       {std::pair{"lru, of tokens", "lru_token_hit_rate"}, std::pair{"optimum, of tokens", "optimum_token_hit_rate"},
        std::pair{"lru, of blocks", "lru_block_hit_rate"}, std::pair{"optimum, of blocks", "optimum_block_hit_rate"}}) {
    Plot::Line& line = plot.lines.emplace_back(Plot::Line{label, {}});
    for (const auto& [capacity, row] : by_capacity) line.values.push_back(NumberIn(*row, name));
  }
  for (const auto& [capacity, row] : by_capacity) plot.x.push_back(capacity);
  plot.log_x = WantsLog(plot.x);
  return plot;
}

std::vector<Plot> SweepPlots(const Json::Array& rows) {
  struct Result {
    const char *name, *title;
    Unit unit;
  };
  constexpr Result kResults[] = {{"token_hit_rate", "Hit rate, of tokens", Unit::kShare},
                                 {"ttft_p99_seconds", "To the first token, p99", Unit::kSeconds},
                                 {"output_tokens_per_second", "Tokens generated", Unit::kTokensPerSecond}};
  if (rows.empty()) return {};
  const std::vector<std::string> names = SweptNames(rows);
  const std::optional<std::string> along = NumericSetting(rows, names);
  if (!along) return {};
  std::map<double, size_t> places;
  for (const Json& row : rows) places[NumberIn(row, *along)];
  std::vector<double> x;
  for (auto& [value, place] : places) {
    place = x.size();
    x.push_back(value);
  }
  std::vector<Plot> plots;
  for (const Result& result : kResults) {
    if (rows.front().Find(result.name) == nullptr) continue;
    Plot plot{.title = result.title, .x_title = *along, .x_unit = Unit::kCount, .unit = result.unit};
    plot.x = x;
    plot.log_x = WantsLog(x);
    for (const Json& row : rows) {
      const std::string label = LabelOf(row, names, *along);
      auto line = std::ranges::find(plot.lines, label, &Plot::Line::label);
      if (line == plot.lines.end()) line = plot.lines.insert(line, {label, std::vector<double>(x.size(), kNothing)});
      line->values[places.at(NumberIn(row, *along))] = NumberIn(row, result.name);
    }
    plots.push_back(std::move(plot));
  }
  return plots;
}

}  // namespace cachalot::cli
