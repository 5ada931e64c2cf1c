// Exposition is what a server's /metrics says, read from the text format of Prometheus (version 0.0.4).
// Threads:   values are plain data; ParseExposition may be called from any thread.
// Ownership: owns its strings.
// Invariant: each series, a name with its labels in any order, stands there once.
// Cost:      parsing n series takes O(n log n); a look-up O(log n).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace cachalot {

// How many values lie in each bucket: above the bound before, up to the bucket's own. The last has no bound.
struct BucketCounts {
  std::vector<double> bounds;  // ascending
  std::vector<double> counts;  // one more
  double sum = 0;              // of the values

  double total() const;
  // The bounds between which the least value lies that at least `share` (0 to 1) of all are not above: 0 and infinity
  // where there is none. Nothing without values.
  struct Range {
    double above = 0, up_to = 0;
  };
  std::optional<Range> Quantile(double share) const;
};

class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  std::optional<double> Find(std::string_view name, Labels labels = {}) const;
  // A histogram without labels of its own. Nothing where it is not there, lacks its bound at infinity or its sum, or
  // has counts that fall from a bound to the next.
  std::optional<BucketCounts> FindBuckets(const std::string& name) const;

  // kInvalid when it is there already.
  Status Add(std::string name, Labels labels, double value);
  size_t size() const { return series_.size(); }

 private:
  std::map<std::pair<std::string, Labels>, double> series_;  // labels sorted
};

// kInvalid, naming the line and what was expected there, for whatever the format does not allow. Comments are skipped,
// time stamps are read and forgotten.
Result<Exposition> ParseExposition(std::string_view text);

}  // namespace cachalot
