#include "cli/plan_options.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/known_shape.h"
#include "plan/devices.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kDefaultContext = 8192;
constexpr uint64_t kMaxSamplesBytes = 64 << 20;

Result<std::optional<plan::ConcurrencyProfile>> ReadConcurrency(const PlanOptions& options) {
  if (!options.concurrency.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.concurrency, kMaxSamplesBytes));
    CACHALOT_ASSIGN_OR_RETURN(auto profile, plan::ReadConcurrency(text, options.concurrency));
    return std::optional(std::move(profile));
  }
  if (options.mean + options.p50 + options.p99 + options.peak == 0) return std::optional<plan::ConcurrencyProfile>();
  plan::ConcurrencyProfile profile;
  profile.mean = options.mean;
  profile.p50 = options.p50;
  profile.p99 = options.p99;
  profile.peak = options.peak;
  CACHALOT_RETURN_IF_ERROR(plan::CheckConcurrency(profile));
  return std::optional(std::move(profile));
}

Result<plan::Machine> MachineOf(const PlanOptions& options, const std::string& model) {
  const plan::Device* device = plan::FindDevice(options.device);
  if (device == nullptr) {
    return Invalid(
        fmt::format("--device \"{}\" is not known, expected one of {}", options.device, plan::DeviceNames()));
  }
  plan::Machine machine;
  machine.device = *device;
  if (options.device_memory.bytes != 0) machine.device.memory_bytes = options.device_memory.bytes;
  machine.shards = {std::max(options.tensor, 1u), options.context_shards};
  machine.memory_share = options.memory_share;
  machine.compute_share = options.compute_share;
  machine.link_share = options.link_share;
  if (!options.profile.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(const cost::CalibrationProfile profile, ReadCalibrationOf(options.profile, model));
    machine.measured = profile.curve;
    machine.measured_by = profile.source.empty() ? options.profile : profile.source;
    machine.tiers = profile.tiers;
  }
  return machine;
}

}  // namespace

std::vector<OptionRule> PlanRules() {
  return {{"concurrency-mean", {}, {"concurrency"}},    {"concurrency-p50", {}, {"concurrency"}},
          {"concurrency-p99", {}, {"concurrency"}},     {"concurrency-peak", {}, {"concurrency"}},
          {"price-storage", {"price-device-hour"}, {}}, {"keep-hours", {"price-device-hour"}, {}}};
}

Result<plan::PlanRequest> RequestOf(const PlanOptions& options, const std::string& name,
                                    const plan::ModelShape& model) {
  plan::PlanRequest request;
  request.model = model;
  CACHALOT_ASSIGN_OR_RETURN(request.machine, MachineOf(options, name));
  request.choose_shards = options.tensor == 0;
  request.context_tokens = options.context;
  if (options.context == 0) {
    request.context_tokens =
        model.context_tokens == 0 ? kDefaultContext : std::min(model.context_tokens, kDefaultContext);
  }
  request.users = options.users;
  request.weight_format = plan::PublishedFormat(model);
  if (!options.weights.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(request.weight_format, plan::FindWeightFormat(options.weights));
  }
  CACHALOT_ASSIGN_OR_RETURN(request.kv.format, plan::FindKvFormat(options.kv_format));
  request.kv.block_tokens = options.block_tokens;
  request.kv.step_tokens = options.step_rows;
  request.kv.reference_tokens = request.context_tokens;
  request.activation_bytes = options.activations.bytes;
  // This server's executor computes on the host, and so does what it measured.
  const bool on_host = request.machine.device.is_host() || request.machine.measured.has_value();
  const bool whole = options.tensor <= 1 && options.context_shards == 1;
  if (request.activation_bytes == 0 && whole && on_host && model.file_bytes) {
    CACHALOT_ASSIGN_OR_RETURN(const auto own, ServerActivationBytes(name, {options.step_rows, request.context_tokens}));
    request.activation_bytes = own.value_or(0);
    if (own) request.activations_by = "this server's executor, in 32 bits";
  }
  request.host_bytes = options.host_memory.bytes;
  request.disk_bytes = options.disk_size.bytes;
  CACHALOT_ASSIGN_OR_RETURN(request.concurrency, ReadConcurrency(options));
  request.prices = {options.device_price, options.storage_price, options.keep_hours};
  return request;
}

}  // namespace cachalot::cli
