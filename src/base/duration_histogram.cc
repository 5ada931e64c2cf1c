#include "base/duration_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cachalot {
namespace {

// Values below 2^kBits have a bucket each; above, every power of two is cut into 2^kBits.
constexpr int kBits = 7;
constexpr uint64_t kPerPower = uint64_t{1} << kBits;
constexpr size_t kBuckets = (64 - kBits) * kPerPower;

size_t BucketOf(uint64_t value) {
  if (value < kPerPower) return value;
  const int shift = std::bit_width(value) - 1 - kBits;
  return static_cast<size_t>(shift) * kPerPower + (value >> shift);
}

// The largest value of a bucket.
uint64_t TopOf(size_t bucket) {
  if (bucket < kPerPower) return bucket;
  const uint64_t shift = bucket / kPerPower - 1;
  return ((bucket - shift * kPerPower + 1) << shift) - 1;
}

}  // namespace

DurationHistogram::DurationHistogram() : counts_(kBuckets) {}

void DurationHistogram::Add(Nanos value) {
  value = std::max(value, Nanos(0));
  ++counts_[BucketOf(static_cast<uint64_t>(value.count()))];
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  ++count_;
  sum_seconds_ += ToSeconds(value);
}

double DurationHistogram::MeanSeconds() const { return count_ == 0 ? 0 : sum_seconds_ / static_cast<double>(count_); }

Nanos DurationHistogram::Quantile(double share) const {
  if (count_ == 0) return Nanos(0);
  const double wanted = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(count_));
  const uint64_t rank = std::max(uint64_t{1}, static_cast<uint64_t>(wanted));
  size_t bucket = 0;
  for (uint64_t seen = counts_[0]; seen < rank; seen += counts_[bucket]) ++bucket;
  return std::clamp(Nanos(TopOf(bucket)), min_, max_);
}

}  // namespace cachalot
