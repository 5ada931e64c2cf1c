#include "base/metrics.h"

#include <prometheus/counter.h>
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

}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  std::vector<std::vector<prometheus::Counter*>> counters;  // [id][label value]
  std::vector<prometheus::Gauge*> gauges;
  std::vector<prometheus::Histogram*> histograms;
};

Metrics::Metrics() : state_(std::make_unique<State>()) {
  for (const auto& row : kCounters) {
    auto& family = Register(prometheus::BuildCounter(), row, &state_->registry);
    std::vector<prometheus::Counter*>& series = state_->counters.emplace_back();
    for (const std::string_view value : row.label.values) {
      series.push_back(&family.Add({{std::string(row.label.name), std::string(value)}}));
    }
    if (series.empty()) series.push_back(&family.Add({}));
  }
  for (const auto& row : kGauges) {
    state_->gauges.push_back(&Register(prometheus::BuildGauge(), row, &state_->registry).Add({}));
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

void Metrics::Set(Gauge gauge, double value) { state_->gauges[static_cast<size_t>(gauge)]->Set(value); }

void Metrics::Observe(Histogram histogram, double value) {
  state_->histograms[static_cast<size_t>(histogram)]->Observe(value);
}

std::string Metrics::Exposition() const { return prometheus::TextSerializer().Serialize(state_->registry.Collect()); }

}  // namespace cachalot
