#include "cli/replay_machine.h"

#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/kv_layout.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/known_shape.h"
#include "cli/step_curve_flag.h"
#include "cost/calibration_profile.h"
#include "plan/sizing.h"

namespace cachalot::cli {
namespace {

// What a step costs, and what of the tiers was measured with it.
struct Costs {
  StepCurve curve{};
  TierRateTable tiers;
  std::string source;
};

Costs CostsOf(const cost::CalibrationProfile& profile, const std::string& path) {
  return {profile.curve, profile.tiers, profile.source.empty() ? path : profile.source};
}

Result<Costs> ReadCosts(const EngineReplayOptions& options) {
  if (options.profile.empty() == options.step_curve.empty()) {
    return Invalid("--engine needs either --profile or --step-curve, to know how long steps take");
  }
  if (!options.step_curve.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(const StepCurve curve, ParseStepCurve(options.step_curve));
    return Costs{curve, {}, "--step-curve"};
  }
  if (!options.kv_model.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(const cost::CalibrationProfile own, ReadCalibrationOf(options.profile, options.kv_model));
    return CostsOf(own, options.profile);
  }
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.profile, cost::kMaxProfileBytes));
  const Result<cost::CalibrationProfile> profile = cost::ParseProfile(text);
  if (!profile.ok()) return profile.status().Annotate(options.profile);
  return CostsOf(*profile, options.profile);
}

// Whose KV it is.
Status SetModel(const EngineReplayOptions& options, exec::SimOptions* model) {
  model->vocabulary = 65'536;  // enough that other text begins with another token, nearly always
  model->context_tokens = options.context.value_or(kUsualContext);
  model->kv.block_tokens = options.kv_block_tokens;
  if (options.kv_model.empty()) {
    if (!options.kv_format.empty()) return Invalid("--kv-format is that of --kv-model, which is not given");
    model->kv.layers = {{.kv_heads = static_cast<uint32_t>((options.kv_bytes_per_token + 3) / 4), .k_dim = 2}};
    return OkStatus();
  }
  CACHALOT_ASSIGN_OR_RETURN(const plan::ModelShape shape, LoadShape(options.kv_model));
  if (const std::string ignored = plan::IgnoredKeysText(shape); !ignored.empty()) LogWarning(ignored);
  if (shape.kv_layers.empty()) return Invalid(fmt::format("--kv-model {} keeps no KV", options.kv_model));
  const Result<plan::Format> format = plan::FindKvFormat(options.kv_format.empty() ? "f16" : options.kv_format);
  if (!format.ok()) return format.status().Annotate("--kv-format");
  model->kv.layers = shape.kv_layers;
  model->kv = plan::EncodedShape(model->kv, *format);
  const uint64_t limit = shape.context_tokens;
  if (limit == 0) return OkStatus();
  if (options.context && *options.context > limit) {
    return Invalid(fmt::format("--context is {}; expected at most {}, the context of {}", *options.context, limit,
                               options.kv_model));
  }
  model->context_tokens = options.context.value_or(limit);
  return OkStatus();
}

// As many as were asked for, else as --kv-memory holds.
Result<uint32_t> BlocksOf(const EngineReplayOptions& options, const exec::SimOptions& model) {
  if (options.kv_memory.bytes == 0) return options.kv_blocks;
  CACHALOT_ASSIGN_OR_RETURN(const KvLayout layout, PlanKvLayout(model.kv, model.context_tokens));
  const uint64_t blocks = options.kv_memory.bytes / layout.slot_bytes;
  if (blocks >= 1 && blocks <= kMostKvBlocks) return static_cast<uint32_t>(blocks);
  return Invalid(fmt::format("--kv-memory of {} has room for {} blocks of {}; expected 1 to {}",
                             FormatBytes(options.kv_memory.bytes), blocks, FormatBytes(layout.slot_bytes),
                             kMostKvBlocks));
}

const std::optional<TierRate>& MeasuredOf(const Costs& costs, TierId tier, Direction direction) {
  return costs.tiers[TierIndex(tier)][static_cast<size_t>(direction)];
}

// A rate by flag, else as it was measured, else as assumed; `from` gets which.
TierRate RateOf(ByteSize flag, std::optional<double> latency, const std::optional<TierRate>& measured, TierRate assumed,
                std::string* from) {
  TierRate rate = measured.value_or(assumed);
  if (flag.bytes > 0) rate.bytes_per_second = static_cast<double>(flag.bytes);
  if (latency) rate.latency_seconds = *latency;
  *from = flag.bytes > 0 ? "given" : measured ? "measured" : "assumed";
  return rate;
}

std::string TextOf(std::string_view what, const TierRate& rate, const std::string& from) {
  return fmt::format("{} {:.4g} GB/s after {:.4g} us ({})", what, rate.bytes_per_second / 1e9,
                     rate.latency_seconds * 1e6, from);
}

// Host memory behind a link, if there is one, and a disk.
std::string SetTiers(const EngineReplayOptions& options, const Costs& costs, sim::SimTierOptions* tiers) {
  std::string text, from;
  const auto tell = [&](std::string_view what, const TierRate& rate) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", TextOf(what, rate, from));
  };
  tiers->host_blocks = options.host_blocks;
  tiers->host_eviction = options.host_eviction;
  tiers->disk_blocks = options.disk_blocks;
  const bool has_disk = options.disk_blocks > 0, has_tier = has_disk || options.host_blocks > 0;
  const std::optional<TierRate>& measured = MeasuredOf(costs, TierId::kHost, Direction::kUp);
  if (options.host_link.bytes > 0 || measured) {
    std::optional<double> latency;
    if (options.host_link.bytes > 0) latency = options.host_latency;
    const TierRate link = RateOf(options.host_link, latency, measured, {}, &from);
    tiers->link = {link.bytes_per_second, Nanos(std::llround(link.latency_seconds * 1e9))};
    if (has_tier) tell("host link", link);
  }
  tiers->disk_read = RateOf(options.disk_read, options.disk_latency, MeasuredOf(costs, TierId::kDisk, Direction::kUp),
                            tiers->disk_read, &from);
  if (has_disk) tell("disk reads", tiers->disk_read);
  tiers->disk_write = RateOf(options.disk_write, options.disk_latency,
                             MeasuredOf(costs, TierId::kDisk, Direction::kDown), tiers->disk_write, &from);
  if (has_disk) tell("writes", tiers->disk_write);
  return text;
}

}  // namespace

Result<ReplayMachine> MachineOf(const EngineReplayOptions& options) {
  ReplayMachine machine;
  CACHALOT_ASSIGN_OR_RETURN(Costs costs, ReadCosts(options));
  machine.model.curve = costs.curve;
  CACHALOT_RETURN_IF_ERROR(SetModel(options, &machine.model));
  CACHALOT_ASSIGN_OR_RETURN(machine.kv_blocks, BlocksOf(options, machine.model));
  machine.facts.tier_rates = SetTiers(options, costs, &machine.tiers);
  machine.facts.step_costs = std::move(costs.source);
  return machine;
}

}  // namespace cachalot::cli
