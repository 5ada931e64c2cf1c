// Scrape is one reading of a Cachalot's /metrics, by the handles of base/metric_table.h; or what was added between two.
// Threads:   plain data and pure functions.
// Ownership: owns its numbers.
// Invariant: it has every metric of the table, with every value of its label. Totals and counts are finite and not
//            negative, levels finite.
// Cost:      reading costs that of ParseExposition; a look-up compares a few label values.
//
// A server of another version has other metrics and is refused: what is advised is simulated by this version's
// policies.
#pragma once

#include <string_view>
#include <vector>

#include "base/exposition.h"
#include "base/metric_table.h"
#include "base/status.h"

namespace cachalot {

class Scrape {
 public:
  // kInvalid, naming the first that is missing or makes no sense.
  static Result<Scrape> Read(std::string_view text);
  // Totals and distributions are those that were added since `before`; levels are the later ones. kUnavailable when one
  // went back: the server began anew.
  static Result<Scrape> Between(const Scrape& before, const Scrape& after);

  double Total(Counter counter, std::string_view label_value = {}) const;
  // Of all values of the label.
  double Sum(Counter counter) const;
  double Level(Gauge gauge, std::string_view label_value = {}) const;
  double Sum(Gauge gauge) const;
  const BucketCounts& Values(Histogram histogram) const { return histograms_[static_cast<size_t>(histogram)]; }

 private:
  std::vector<std::vector<double>> counters_, gauges_;  // [id][label value]
  std::vector<BucketCounts> histograms_;
};

}  // namespace cachalot
