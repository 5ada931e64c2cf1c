#include "base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <vector>

namespace cachalot {
namespace {

// The value's place in the label's list; the last place for a value that is not listed.
size_t LabelIndex(const MetricLabel& label, std::string_view value) {
  if (label.values.empty()) return 0;
  const auto found = std::find(label.values.begin(), label.values.end(), value);
  return std::min<size_t>(found - label.values.begin(), label.values.size() - 1);
}

template <class Builder, class Row>
auto& Register(Builder builder, const Row& row, prometheus::Registry* registry) {
  return builder.Name(std::string(row.name)).Help(std::string(row.help)).Register(*registry);
}

// One series per value of the label.
template <class T>
std::vector<T*> SeriesOf(prometheus::Family<T>& family, const MetricLabel& label) {
  std::vector<T*> series;
  for (const std::string_view value : label.values) {
    series.push_back(&family.Add({{std::string(label.name), std::string(value)}}));
  }
  if (series.empty()) series.push_back(&family.Add({}));
  return series;
}

}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  std::vector<std::vector<prometheus::Counter*>> counters;  // [id][label value]
  std::vector<std::vector<prometheus::Gauge*>> gauges;      // [id][label value]
  std::vector<prometheus::Histogram*> histograms;
};

Metrics::Metrics() : state_(std::make_unique<State>()) {
  for (const auto& row : kCounters) {
    state_->counters.push_back(SeriesOf(Register(prometheus::BuildCounter(), row, &state_->registry), row.label));
  }
  for (const auto& row : kGauges) {
    state_->gauges.push_back(SeriesOf(Register(prometheus::BuildGauge(), row, &state_->registry), row.label));
  }
  for (const auto& row : kHistograms) {
    const prometheus::Histogram::BucketBoundaries bounds(row.buckets.begin(), row.buckets.end());
    state_->histograms.push_back(&Register(prometheus::BuildHistogram(), row, &state_->registry).Add({}, bounds));
  }
}

Metrics::~Metrics() = default;

void Metrics::Add(Counter counter, uint64_t amount, std::string_view label_value) {
  const size_t id = static_cast<size_t>(counter);
  state_->counters[id][LabelIndex(kCounters[id].label, label_value)]->Increment(static_cast<double>(amount));
}

void Metrics::Set(Gauge gauge, double value, std::string_view label_value) {
  const size_t id = static_cast<size_t>(gauge);
  state_->gauges[id][LabelIndex(kGauges[id].label, label_value)]->Set(value);
}

void Metrics::Observe(Histogram histogram, double value) {
  state_->histograms[static_cast<size_t>(histogram)]->Observe(value);
}

void Metrics::ObserveMany(Histogram histogram, std::span<const uint64_t> counts, double sum) {
  state_->histograms[static_cast<size_t>(histogram)]->ObserveMultiple({counts.begin(), counts.end()}, sum);
}

std::string Metrics::Exposition() const { return prometheus::TextSerializer().Serialize(state_->registry.Collect()); }

}  // namespace cachalot
