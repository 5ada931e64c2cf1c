// CalibrationProfile is what `cachalot calibrate` measured of one model on one machine, as a file holds it.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: ParseProfile(ProfileText(p)) is p. Another key has another file name.
// Cost:      microseconds.
//
// {"version":1,"model":"<SHA-256>","numerics":"cpu-1","isa":"avx2","threads":2,"kv_type":"f16",
//  "relative_error":0.03,"seconds":{"step":...,"row":...,"visible_full":...,"visible_sliding":...,"logit_row":...},
//  "tiers":{"disk":{"up":{"latency":...,"bytes_per_second":...}}}}
// Without "tiers", no tier was measured; "source" may say where and how all was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/step_curve.h"
#include "base/tier_rate.h"

namespace cachalot::cost {

// What a curve depends on.
struct CalibrationKey {
  std::string model;  // its fingerprint
  std::string numerics;
  std::string isa;
  uint32_t threads = 0;
  std::string kv_type;
  bool operator==(const CalibrationKey&) const = default;
};

struct CalibrationProfile {
  CalibrationKey key;
  std::string source;         // one line: on what machine, by what; empty: not said
  double relative_error = 0;  // mean, of the steps that were measured
  StepCurve curve{};
  TierRateTable tiers;  // those that were measured
};

inline constexpr uint64_t kMaxProfileBytes = 64 << 10;
inline constexpr size_t kMaxSourceBytes = 200;

// Of what is told of where and how: valid UTF-8 without controls, cut to kMaxSourceBytes.
std::string SourceLine(std::string_view told);
std::string ProfileFileName(const CalibrationKey& key);
std::string ProfileText(const CalibrationProfile& profile);
// kInvalid, naming the member, for whatever is no profile of this version.
Result<CalibrationProfile> ParseProfile(std::string_view text);
// What of `found` is not as `wanted`, e.g. "threads 4 instead of 2"; empty when they are equal.
std::string DifferenceOf(const CalibrationKey& found, const CalibrationKey& wanted);

}  // namespace cachalot::cost
