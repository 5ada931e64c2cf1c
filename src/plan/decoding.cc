#include "plan/decoding.h"

#include <algorithm>
#include <cmath>

namespace cachalot::plan {
namespace {

constexpr double kOperations = 2;            // a multiply and an add
constexpr double kActivationBytes = 2;       // of one value between devices
constexpr uint32_t kReductionsPerLayer = 2;  // after attention, and after the feed-forward

}  // namespace

double DecodeStep::seconds() const { return std::max(weight_seconds + kv_seconds, compute_seconds); }

double WeightBytesOfStep(const DecodedModel& model, uint64_t sequences) {
  WeightCounts read = model.shape.weights;
  read.embeddings = 0;  // a row of it
  read.tied_output = false;
  if (read.experts > 0) {
    const double chosen = static_cast<double>(read.chosen_experts) / static_cast<double>(read.experts);
    const double touched = 1 - std::pow(1 - chosen, static_cast<double>(sequences));
    read.experts = static_cast<uint64_t>(static_cast<double>(read.experts) * touched);
  }
  return static_cast<double>(WeightBytes(model.weights, read));
}

DecodeStep PlanDecode(const DecodedModel& model, const Machine& machine, double kv_rate, uint64_t sequences,
                      uint64_t tokens) {
  double products = static_cast<double>(model.shape.weights.used());
  for (const auto& [window, per_position] : model.shape.position_products) {
    const uint64_t visible = window == 0 ? tokens : std::min<uint64_t>(window, tokens);
    products += static_cast<double>(per_position) * static_cast<double>(visible) / machine.shards.devices();
  }
  const double rate = machine.device.flops16 * machine.compute_share / kOperations;
  const double rows = static_cast<double>(sequences);
  return {
      .weight_seconds = WeightBytesOfStep(model, sequences) / MemoryRate(machine),
      .kv_seconds = rows * static_cast<double>(LiveBytes(model.sizes, ShardTokens(tokens, machine.shards))) / kv_rate,
      .compute_seconds = rows * products / rate};
}

AllReduce PlanAllReduce(const ModelShape& shape, uint32_t devices, const TierRate& link, uint64_t rows,
                        double step_seconds) {
  AllReduce plan;
  if (devices < 2) return plan;
  plan.reductions = kReductionsPerLayer * shape.layers;
  const double d = devices, row_bytes = kActivationBytes * shape.width;
  const auto seconds_of = [&](double messages, double bytes) {
    return messages * link.latency_seconds + bytes * static_cast<double>(rows) / link.bytes_per_second;
  };
  const double ring_bytes = row_bytes * 2 * (d - 1) / d, direct_bytes = row_bytes * (d - 1);
  const double ring = seconds_of(2 * (d - 1), ring_bytes), direct = seconds_of(1, direct_bytes);
  plan.seconds = plan.reductions * std::min(ring, direct);
  plan.bytes_per_token =
      static_cast<uint64_t>(std::ceil((ring < direct ? ring_bytes : direct_bytes) * plan.reductions));
  plan.share = plan.seconds / (plan.seconds + step_seconds);
  return plan;
}

}  // namespace cachalot::plan
