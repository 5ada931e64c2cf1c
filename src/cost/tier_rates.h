// TierRates predicts how long a transfer to or from a lower tier takes, and learns it from those that completed.
// Threads:   owned by one thread.
// Ownership: none.
// Invariant: deterministic; predictions are finite and positive, whatever was observed.
// Cost:      Observe and Rate are O(1), without allocation.
//
// seconds = latency + (bytes + bytes queued before) / bandwidth, for each tier and direction, followed by a Kalman
// filter of the relative error whose two numbers wander, so that it keeps up with the present load. A transfer that was
// held up says more about the moment than about the link: its error is clipped. What nobody uses is not measured
// either, and a link that was slow for a while would never be tried again: so after a minute without transfers a rate
// goes back, by and by, to the one it began with.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "base/tier_rate.h"

namespace cachalot::cost {

struct CompletedTransfer {
  uint64_t bytes = 0;
  uint64_t queued_bytes = 0;  // that were to be moved before it when it was submitted
  double seconds = 0;         // from submission to completion
};

class TierRates {
 public:
  // Begins with what was measured before; of the rest with guesses, whose scale the first transfer gives.
  explicit TierRates(const TierRateTable& measured = {});

  void Observe(TierId tier, Direction direction, const CompletedTransfer& transfer, Nanos now);
  TierRate Rate(TierId tier, Direction direction, Nanos now) const;
  double Predict(TierId tier, Direction direction, uint64_t bytes, uint64_t queued_bytes, Nanos now) const {
    return TransferSeconds(Rate(tier, direction, now), bytes, queued_bytes);
  }

  // Those that were measured, now or before, to be stored.
  TierRateTable Measured(Nanos now) const;

 private:
  using Pair = std::array<double, 2>;  // of the latency, and of a byte

  struct Link {
    Pair unit{};                   // seconds; the estimate is theta times this
    Pair theta{1, 1};              // dimensionless
    std::array<Pair, 2> spread{};  // covariance of theta, over the variance of a transfer's error
    double usual_error = 0;        // mean absolute relative error of late
    uint64_t observations = 0;
    Nanos last{0};          // observation
    bool measured = false;  // `unit` is of this link
  };

  static Link LinkWith(const TierRate& rate, bool measured);
  static Pair ThetaAfter(const Link& link, double idle_seconds);
  static void Learn(Link& link, const Pair& x, double error, double uncertainty);
  const Link& At(TierId tier, Direction direction) const;

  std::array<std::array<Link, kDirectionNames.size()>, kTierNames.size()> links_;
};

// {"host":{"up":{"latency":seconds,"bytes_per_second":...},...},...}: what is known.
Json TierRatesAsJson(const TierRateTable& rates);
// kInvalid, naming the member, for an unknown tier or direction, or a number out of range.
Result<TierRateTable> TierRatesFromJson(const Json& json);

}  // namespace cachalot::cost
