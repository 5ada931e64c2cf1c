#include "plan/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"

namespace cachalot::plan {
namespace {

constexpr uint32_t kMostTensorShards = 64;
constexpr uint64_t kLogitRows = 64;  // of a step: sequences that generate

Status CheckShare(std::string_view name, double share) {
  if (share > 0 && share <= 1) return OkStatus();
  return Invalid(fmt::format("{} is {}, expected above 0 and at most 1", name, share));
}

Status CheckPrice(std::string_view name, double price) {
  if (price >= 0 && price <= 1e9) return OkStatus();
  return Invalid(fmt::format("{} is {}, expected 0 to 1e9", name, price));
}

Status CheckRequest(const PlanRequest& request) {
  CACHALOT_RETURN_IF_ERROR(CheckShare("memory share", request.machine.memory_share));
  CACHALOT_RETURN_IF_ERROR(CheckShare("compute share", request.machine.compute_share));
  CACHALOT_RETURN_IF_ERROR(CheckShare("link share", request.machine.link_share));
  CACHALOT_RETURN_IF_ERROR(CheckPrice("price of a device hour", request.prices.device_hour));
  CACHALOT_RETURN_IF_ERROR(CheckPrice("price of a GiB and month", request.prices.storage_gib_month));
  CACHALOT_RETURN_IF_ERROR(CheckPrice("hours that KV is kept", request.prices.keep_hours));
  if (request.kv.block_tokens > kMaxBlockTokens) {
    return Invalid(
        fmt::format("block size is {} tokens, expected at most {}", request.kv.block_tokens, kMaxBlockTokens));
  }
  if (request.kv.step_tokens > kMaxStepRows) {
    return Invalid(fmt::format("rows of a step are {}, expected at most {}", request.kv.step_tokens, kMaxStepRows));
  }
  if (request.users > kMaxUsers) {
    return Invalid(fmt::format("{} users, expected at most {}", request.users, kMaxUsers));
  }
  const uint64_t limit = request.model.context_tokens == 0 ? kMaxTokens : request.model.context_tokens;
  if (request.context_tokens == 0 || request.context_tokens > limit) {
    return Invalid(fmt::format("context of {} tokens, expected 1 to {}{}", request.context_tokens, limit,
                               limit == kMaxTokens ? "" : fmt::format(", the context of {}", request.model.name)));
  }
  if (request.concurrency) CACHALOT_RETURN_IF_ERROR(CheckConcurrency(*request.concurrency));
  return OkStatus();
}

Status CheckBytes(std::string_view name, uint64_t bytes, uint64_t most) {
  if (bytes <= most) return OkStatus();
  return Invalid(fmt::format("{} is {}, expected at most {}", name, FormatBytes(bytes), FormatBytes(most)));
}

// Also of the longest session that is looked at.
Status CheckSizes(const PlanRequest& request, const KvSizes& sizes) {
  CACHALOT_RETURN_IF_ERROR(CheckBytes("memory of a device", request.machine.device.memory_bytes, kMaxDeviceBytes));
  CACHALOT_RETURN_IF_ERROR(CheckBytes("activations", request.activation_bytes, kMaxDeviceBytes));
  const uint64_t limit = request.model.context_tokens == 0 ? kMaxTokens : request.model.context_tokens;
  return CheckBytes("KV of one session as long as the context", ReservedBytes(sizes, limit), kMaxSessionBytes);
}

// Fewer devices, then more sequences in all.
bool Better(const Fleet& a, const Fleet& b) {
  if (a.devices() != b.devices()) return a.devices() < b.devices();
  return a.groups * a.group.sequences > b.groups * b.group.sequences;
}

}  // namespace

uint64_t ActivationBytes(const ModelShape& shard, uint64_t rows, uint64_t logit_rows) {
  // The residual, a copy that is normed, and what is between two matrices; logits in f32.
  return rows * (2 * uint64_t{shard.width} + shard.inner_values) * sizeof(uint16_t) +
         std::min(rows, logit_rows) * shard.vocabulary * sizeof(float);
}

Result<DeviceGroup> MakeGroup(const PlanRequest& request, const Shards& shards) {
  DeviceGroup group{.shards = shards};
  CACHALOT_ASSIGN_OR_RETURN(group.shard, ShardOf(request.model, shards));
  CACHALOT_ASSIGN_OR_RETURN(group.sizes, SizeKv(group.shard.shape, request.kv));
  DeviceMemory& memory = group.memory;
  memory.usable_bytes = UsableBytes(request.machine);
  memory.weight_bytes = WeightBytes(request.weight_format, group.shard.shape.weights);
  memory.activation_bytes = request.activation_bytes != 0
                                ? request.activation_bytes
                                : ActivationBytes(group.shard.shape, request.kv.step_tokens, kLogitRows);
  uint64_t fixed = 0;
  memory.weights_fit =
      !__builtin_add_overflow(memory.weight_bytes, memory.activation_bytes, &fixed) && fixed <= memory.usable_bytes;
  memory.pool_bytes = memory.weights_fit ? memory.usable_bytes - fixed : 0;
  if (memory.weights_fit) {
    group.sequences = SequencesThatFit(group.sizes, memory.pool_bytes, ShardTokens(request.context_tokens, shards));
  }
  return group;
}

std::vector<Fleet> FleetsFor(const PlanRequest& request, uint64_t users) {
  std::vector<Fleet> fleets;
  for (uint32_t tensor = 1; tensor <= kMostTensorShards; tensor *= 2) {
    const Result<DeviceGroup> group = MakeGroup(request, {tensor, request.machine.shards.context});
    if (!group.ok() || group->sequences == 0) continue;
    const uint64_t wanted = std::max<uint64_t>(users, 1);
    fleets.push_back({*group, (wanted + group->sequences - 1) / group->sequences});
  }
  return fleets;
}

std::optional<size_t> SmallestFleet(const std::vector<Fleet>& fleets) {
  const auto smallest = std::ranges::min_element(fleets, Better);
  if (smallest == fleets.end()) return std::nullopt;
  return static_cast<size_t>(smallest - fleets.begin());
}

Result<Plan> MakePlan(const PlanRequest& request) {
  CACHALOT_RETURN_IF_ERROR(CheckRequest(request));
  Plan plan{.request = request};
  CACHALOT_ASSIGN_OR_RETURN(plan.sizes, SizeKv(request.model, request.kv));
  CACHALOT_RETURN_IF_ERROR(CheckSizes(request, plan.sizes));
  plan.fleets = FleetsFor(request, request.users);
  plan.smallest = SmallestFleet(plan.fleets);
  if (request.choose_shards && plan.smallest) {
    plan.group = plan.fleets[*plan.smallest].group;
    plan.request.machine.shards = plan.group.shards;
  } else {
    CACHALOT_ASSIGN_OR_RETURN(plan.group, MakeGroup(request, request.machine.shards));
  }
  return plan;
}

}  // namespace cachalot::plan
