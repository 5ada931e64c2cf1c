// Machine is what a plan's model runs on: devices, what share of their sheet one gets, and how fast they compute.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: shares are above 0 and at most 1.
// Cost:      none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/step_curve.h"
#include "base/tier_rate.h"
#include "plan/devices.h"
#include "plan/formats.h"
#include "plan/links.h"
#include "plan/sharding.h"

namespace cachalot::plan {

struct Machine {
  Device device;
  Shards shards;
  double memory_share = 0.9;          // of a device's memory that is used
  double compute_share = 0.5;         // of the sheet's arithmetic that a prompt's computation reaches
  double link_share = 0.8;            // of a link's rate, and of memory's
  std::optional<StepCurve> measured;  // by `cachalot calibrate`, instead of the sheet
  std::string measured_by;            // where and how, if that is known
  TierRateTable tiers;                // those that were measured with it
};

uint64_t UsableBytes(const Machine& machine);
// What a step costs all devices of a group together. From the sheet: a prompt's rows are bound by arithmetic, and
// reading the weights hides behind it.
StepCurve CurveOf(const Machine& machine, const ModelShape& shape, const Format& weights);
// What KV can move over, and how fast one gets it from there: links of the sheet at `link_share`; a host link and a
// disk that were measured stand for those of the sheet.
struct UsableLink {
  std::string title;
  LinkKind kind = LinkKind::kHost;
  TierRate rate;
};
std::vector<UsableLink> UsableLinks(const Machine& machine);
// Bytes per second at which one device reads its memory.
double MemoryRate(const Machine& machine);

}  // namespace cachalot::plan
