#include "plan/concurrency.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include <fmt/format.h>

#include "base/trimmed.h"

namespace cachalot::plan {
namespace {

constexpr uint64_t kMaxConcurrency = 1'000'000'000;
constexpr size_t kMaxSamples = 10'000'000;

// The least sample that at least this share of all is not above.
uint64_t Quantile(const std::vector<uint64_t>& sorted, uint64_t percent) {
  const size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<size_t>(rank, 1) - 1];
}

}  // namespace

Result<ConcurrencyProfile> ReadConcurrency(std::string_view text, const std::string& name) {
  ConcurrencyProfile profile;
  uint64_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = text.find('\n');
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    uint64_t value = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc() || rest != line.data() + line.size() || value > kMaxConcurrency) {
      return Invalid(
          fmt::format("{}:{}: expected one number of sequences from 0 to {}", name, number, kMaxConcurrency));
    }
    if (profile.samples.size() == kMaxSamples) {
      return Invalid(fmt::format("{}:{}: more than {} samples", name, number, kMaxSamples));
    }
    profile.samples.push_back(value);
  }
  if (profile.samples.empty()) return Invalid(fmt::format("{}: holds no samples, expected one number per line", name));
  std::ranges::sort(profile.samples);
  const uint64_t sum = std::accumulate(profile.samples.begin(), profile.samples.end(), uint64_t{0});
  profile.mean = (sum + profile.samples.size() - 1) / profile.samples.size();
  profile.p50 = Quantile(profile.samples, 50);
  profile.p99 = Quantile(profile.samples, 99);
  profile.peak = profile.samples.back();
  if (profile.peak == 0) return Invalid(fmt::format("{}: no sample is above 0", name));
  return profile;
}

Status CheckConcurrency(const ConcurrencyProfile& profile) {
  const bool sound = profile.p50 <= profile.p99 && profile.p99 <= profile.peak && profile.mean <= profile.peak &&
                     profile.mean > 0 && profile.peak <= kMaxConcurrency;
  if (sound) return OkStatus();
  return Invalid(
      fmt::format("concurrency: mean {}, p50 {}, p99 {} and peak {}: expected p50 <= p99 <= peak and "
                  "1 <= mean <= peak <= {}",
                  profile.mean, profile.p50, profile.p99, profile.peak, kMaxConcurrency));
}

double ShareAbove(const ConcurrencyProfile& profile, uint64_t held) {
  const auto above = profile.samples.end() - std::ranges::upper_bound(profile.samples, held);
  return profile.samples.empty() ? 0 : static_cast<double>(above) / static_cast<double>(profile.samples.size());
}

}  // namespace cachalot::plan
