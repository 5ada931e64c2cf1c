#include "plan/setting.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/decoding.h"
#include "plan/links.h"

namespace cachalot::plan {
namespace {

constexpr uint64_t kMostSlots = 1u << 26;

// Seconds that messages between devices add to a step, and to each of its rows; nothing hides them.
void AddAllReduce(const PlanRequest& request, const Shards& shards, StepCurve* curve) {
  const Link* link = FindLink(request.machine.device.peer_link);
  if (shards.devices() < 2 || link == nullptr) return;
  const TierRate rate = UsableRate(*link, request.machine.link_share);
  constexpr uint64_t kRows = 512;
  const auto seconds = [&](uint64_t rows) {
    return PlanAllReduce(request.model, shards.devices(), rate, rows, 0).seconds;
  };
  const double row = (seconds(kRows) - seconds(1)) / (kRows - 1);
  (*curve)[0] += std::max(0.0, seconds(1) - row);
  (*curve)[1] += row;
}

// Of a step that reads the weights once, and the KV that each sequence sees.
StepCurve ReadingOf(const PlanRequest& request, const DeviceGroup& group) {
  StepCurve reading{};
  if (request.machine.measured) return reading;
  const double rate = MemoryRate(request.machine);
  constexpr uint64_t kSequences = 16;  // by which experts are chosen
  reading[0] = WeightBytesOfStep({group.shard.shape, request.weight_format, group.sizes}, kSequences) / rate;
  const double scale = request.kv.format.bits() / 8 / KvTypeBytes(group.sizes.shape.type);
  std::map<uint32_t, double> bytes;  // of one position, by window
  for (const LayerKvShape& layer : group.sizes.shape.layers) {
    bytes[layer.window] += static_cast<double>(KvBytesPerToken(layer, group.sizes.shape.type)) * scale;
  }
  const size_t windows = bytes.size() - bytes.count(0);
  for (const auto& [window, position_bytes] : bytes) {
    // A step's work counts one layer of each window; with several windows they share the mean.
    if (window == 0) reading[2] = position_bytes / rate;
    if (window != 0) reading[3] += position_bytes / rate / static_cast<double>(windows);
  }
  return reading;
}

// What was measured, and else what the sheet says; a machine that was measured without a link has none.
void SetTierRates(const Machine& machine, Setting* setting) {
  const auto measured = [&](TierId tier, Direction direction) {
    return machine.tiers[TierIndex(tier)][static_cast<size_t>(direction)];
  };
  setting->host_link = measured(TierId::kHost, Direction::kUp);
  const Link* link = FindLink(machine.device.host_link);
  if (!machine.measured && link != nullptr) setting->host_link = UsableRate(*link, machine.link_share);
  setting->disk_read = measured(TierId::kDisk, Direction::kUp).value_or(setting->disk_read);
  setting->disk_write = measured(TierId::kDisk, Direction::kDown).value_or(setting->disk_write);
}

}  // namespace

std::string DiskRateText(const Machine& machine, const Setting& setting) {
  const bool measured = machine.tiers[TierIndex(TierId::kDisk)][static_cast<size_t>(Direction::kUp)].has_value();
  return fmt::format("a disk that reads {:.3g} GB/s ({})", setting.disk_read.bytes_per_second / 1e9,
                     measured ? "measured" : "assumed");
}

Result<Setting> SettingOf(const PlanRequest& request, uint64_t kv_bytes) {
  CACHALOT_ASSIGN_OR_RETURN(const DeviceGroup group, MakeGroup(request, request.machine.shards));
  if (!group.memory.weights_fit && kv_bytes == 0) {
    return Invalid(fmt::format("{} needs {} for weights and activations of a device, of which {} has {} to use",
                               request.model.name,
                               FormatBytes(group.memory.weight_bytes + group.memory.activation_bytes),
                               request.machine.device.title, FormatBytes(group.memory.usable_bytes)));
  }
  if (!request.machine.measured && kv_bytes > group.memory.pool_bytes) {
    return Invalid(fmt::format("a KV pool of {}: {} has {} to use, of which weights and activations of {} leave {}",
                               FormatBytes(kv_bytes), request.machine.device.title,
                               FormatBytes(group.memory.usable_bytes), request.model.name,
                               FormatBytes(group.memory.pool_bytes)));
  }
  Setting setting;
  setting.kv = EncodedShape(group.sizes.shape, request.kv.format);
  setting.context_tokens = request.context_tokens;
  setting.slot_bytes = group.sizes.slot_bytes;
  if (setting.slot_bytes == 0) return Invalid(fmt::format("{} keeps no KV", request.model.name));
  setting.slots = (kv_bytes == 0 ? group.memory.pool_bytes : kv_bytes) / setting.slot_bytes;
  if (setting.slots == 0 || setting.slots > kMostSlots) {
    return Invalid(fmt::format("the pool has {} blocks of {}, expected 1 to {}", setting.slots,
                               FormatBytes(setting.slot_bytes), kMostSlots));
  }
  setting.curve = CurveOf(request.machine, request.model, request.weight_format);
  setting.reading = ReadingOf(request, group);
  for (StepCurve* part : {&setting.curve, &setting.reading}) AddAllReduce(request, request.machine.shards, part);
  SetTierRates(request.machine, &setting);
  setting.step_rows = setting.prefill_chunk = request.kv.step_tokens;
  return setting;
}

LevelSpread SpreadOf(const std::vector<Level>& levels) {
  std::map<double, int64_t> changes;
  for (const Level& level : levels) {
    if (level.end <= level.begin) continue;
    changes[level.begin] += static_cast<int64_t>(level.amount);
    changes[level.end] -= static_cast<int64_t>(level.amount);
  }
  std::map<uint64_t, double> seconds;  // by level
  double total = 0, sum = 0, before = 0;
  int64_t level = 0;
  for (const auto& [time, change] : changes) {
    if (total > 0 || level > 0) seconds[static_cast<uint64_t>(level)] += time - before;
    sum += static_cast<double>(level) * (time - before);
    if (level > 0 || !seconds.empty()) total += time - before;
    level += change;
    before = time;
  }
  LevelSpread spread;
  if (total <= 0) return spread;
  spread.mean = sum / total;
  spread.peak = seconds.rbegin()->first;
  const auto at = [&](double share) {
    double passed = 0;
    for (const auto& [amount, lasted] : seconds) {
      passed += lasted;
      if (passed >= share * total * (1 - 1e-12)) return amount;
    }
    return spread.peak;
  };
  spread.p50 = at(0.5);
  spread.p90 = at(0.9);
  spread.p99 = at(0.99);
  return spread;
}

}  // namespace cachalot::plan
