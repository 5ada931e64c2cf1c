#include "base/scrape.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace cachalot {
namespace {

std::string NameOf(std::string_view name, const MetricLabel& label, std::string_view value) {
  return label.name.empty() ? std::string(name) : fmt::format("{}{{{}=\"{}\"}}", name, label.name, value);
}

template <class Row>
Result<std::vector<double>> ReadSeries(const Exposition& exposition, const Row& row, double least) {
  std::vector<std::string_view> values(row.label.values.begin(), row.label.values.end());
  if (values.empty()) values.emplace_back();
  std::vector<double> series;
  for (const std::string_view value : values) {
    Exposition::Labels labels;
    if (!row.label.name.empty()) labels.emplace_back(row.label.name, value);
    const std::optional<double> found = exposition.Find(row.name, std::move(labels));
    if (!found) return Invalid(fmt::format("{} is not there", NameOf(row.name, row.label, value)));
    if (!std::isfinite(*found) || *found < least) {
      return Invalid(fmt::format("{} is {}", NameOf(row.name, row.label, value), *found));
    }
    series.push_back(*found);
  }
  return series;
}

Result<BucketCounts> ReadBuckets(const Exposition& exposition, const MetricRow<Histogram>& row) {
  std::optional<BucketCounts> found = exposition.FindBuckets(std::string(row.name));
  if (!found) return Invalid(fmt::format("the histogram {} is not there, or not whole", row.name));
  if (!std::ranges::equal(found->bounds, row.buckets)) {
    return Invalid(fmt::format("the histogram {} has other bounds than expected", row.name));
  }
  if (!std::isfinite(found->total()) || !std::isfinite(found->sum)) {
    return Invalid(fmt::format("the histogram {} counts to infinity", row.name));
  }
  return *std::move(found);
}

template <class Rows, class Id>
double ValueOf(const std::vector<std::vector<double>>& series, const Rows& rows, Id id, std::string_view label_value) {
  const size_t row = static_cast<size_t>(id);
  const auto& values = rows[row].label.values;
  const size_t place = std::ranges::find(values, label_value) - values.begin();
  return series[row][std::min(place, series[row].size() - 1)];
}

double SumOf(const std::vector<double>& series) { return std::accumulate(series.begin(), series.end(), 0.0); }

// False when something went back.
bool Subtract(const std::vector<double>& before, std::vector<double>* after) {
  bool grew = true;
  for (size_t i = 0; i < before.size(); ++i) {
    (*after)[i] -= before[i];
    grew = grew && (*after)[i] >= 0;
  }
  return grew;
}

}  // namespace

Result<Scrape> Scrape::Read(std::string_view text) {
  CACHALOT_ASSIGN_OR_RETURN(const Exposition exposition, ParseExposition(text));
  Scrape scrape;
  for (const auto& row : kCounters) {
    CACHALOT_ASSIGN_OR_RETURN(std::vector<double> series, ReadSeries(exposition, row, 0));
    scrape.counters_.push_back(std::move(series));
  }
  for (const auto& row : kGauges) {
    CACHALOT_ASSIGN_OR_RETURN(std::vector<double> series,
                              ReadSeries(exposition, row, -std::numeric_limits<double>::max()));
    scrape.gauges_.push_back(std::move(series));
  }
  for (const auto& row : kHistograms) {
    CACHALOT_ASSIGN_OR_RETURN(BucketCounts counts, ReadBuckets(exposition, row));
    scrape.histograms_.push_back(std::move(counts));
  }
  return scrape;
}

Result<Scrape> Scrape::Between(const Scrape& before, const Scrape& after) {
  Scrape between = after;
  bool grew = true;
  for (size_t i = 0; i < before.counters_.size(); ++i) {
    grew = Subtract(before.counters_[i], &between.counters_[i]) && grew;
  }
  for (size_t i = 0; i < before.histograms_.size(); ++i) {
    grew = Subtract(before.histograms_[i].counts, &between.histograms_[i].counts) && grew;
    between.histograms_[i].sum -= before.histograms_[i].sum;
  }
  if (!grew) return Unavailable("its counters went back in between: the server began anew");
  return between;
}

double Scrape::Total(Counter counter, std::string_view label_value) const {
  return ValueOf(counters_, kCounters, counter, label_value);
}
double Scrape::Sum(Counter counter) const { return SumOf(counters_[static_cast<size_t>(counter)]); }
double Scrape::Level(Gauge gauge, std::string_view label_value) const {
  return ValueOf(gauges_, kGauges, gauge, label_value);
}
double Scrape::Sum(Gauge gauge) const { return SumOf(gauges_[static_cast<size_t>(gauge)]); }

}  // namespace cachalot
