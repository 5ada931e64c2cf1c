#include "plan/machine.h"

namespace cachalot::plan {
namespace {

// Operations of a multiply and an add.
constexpr double kOperations = 2;

}  // namespace

uint64_t UsableBytes(const Machine& machine) {
  return static_cast<uint64_t>(static_cast<double>(machine.device.memory_bytes) * machine.memory_share);
}

StepCurve CurveOf(const Machine& machine, const ModelShape& shape, const Format& weights) {
  if (machine.measured) return *machine.measured;
  const bool narrow = machine.device.flops8 > 0 && weights.name == "fp8";
  const double rate = (narrow ? machine.device.flops8 : machine.device.flops16) * machine.compute_share *
                      machine.shards.devices() / kOperations;
  uint64_t full = 0, sliding = 0, windows = 0;
  for (const auto& [window, products] : shape.position_products) {
    (window == 0 ? full : sliding) += products;
    windows += window == 0 ? 0 : 1;
  }
  StepCurve curve{};
  curve[1] = static_cast<double>(shape.weights.used() - shape.weights.output) / rate;
  curve[2] = static_cast<double>(full) / rate;
  // The step's work counts one layer of each window; with several windows they share the mean.
  curve[3] = windows == 0 ? 0 : static_cast<double>(sliding) / static_cast<double>(windows) / rate;
  curve[4] = static_cast<double>(shape.weights.output) / rate;
  return curve;
}

std::vector<UsableLink> UsableLinks(const Machine& machine) {
  const auto measured = [&](LinkKind kind) {
    std::optional<TierRate> rate;
    if (kind == LinkKind::kHost) rate = machine.tiers[TierIndex(TierId::kHost)][static_cast<size_t>(Direction::kUp)];
    if (kind == LinkKind::kDisk) rate = machine.tiers[TierIndex(TierId::kDisk)][static_cast<size_t>(Direction::kUp)];
    return rate;
  };
  std::vector<UsableLink> links;
  const auto add_measured = [&](LinkKind kind, const char* title) {
    if (const std::optional<TierRate> rate = measured(kind)) links.push_back({title, kind, *rate});
  };
  add_measured(LinkKind::kHost, "Host link, measured");
  add_measured(LinkKind::kDisk, "Disk, measured");
  for (const Link& link : LinksOf(machine.device)) {
    if (!measured(link.kind)) {
      links.push_back({std::string(link.title), link.kind, UsableRate(link, machine.link_share)});
    }
  }
  return links;
}

double MemoryRate(const Machine& machine) { return machine.device.memory_rate * machine.link_share; }

}  // namespace cachalot::plan
