#include "plan/sizing.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"

namespace cachalot::plan {
namespace {

uint64_t SlotsPromised(const KvSizes& sizes, uint64_t tokens) {
  return kv::SlotsToPromise(sizes.geometry, tokens, tokens, 1, sizes.step_tokens).both();
}

// Bytes of the format for what base counts in f16.
uint64_t Encoded(const Format& format, uint64_t f16_bytes) { return BytesIn(format, f16_bytes / sizeof(uint16_t)); }

}  // namespace

Result<KvSizes> SizeKv(const ModelShape& shape, const KvOptions& options) {
  if (options.step_tokens == 0) return Invalid("rows of a step are 0, expected at least 1");
  KvSizes sizes;
  sizes.shape = KvShapeOf(shape, options.block_tokens);
  sizes.format = options.format;
  sizes.step_tokens = options.step_tokens;
  sizes.geometry.block_tokens = options.block_tokens;
  sizes.state_bytes = shape.state_values * options.state_value_bytes + shape.conv_values * sizeof(uint16_t);
  if (shape.kv_layers.empty()) return sizes;
  CACHALOT_ASSIGN_OR_RETURN(const KvLayout layout, PlanKvLayout(sizes.shape, options.reference_tokens));
  sizes.geometry = kv::GeometryOf(layout, 0);
  sizes.token_bytes = Encoded(options.format, KvBytesPerToken(sizes.shape));
  sizes.slot_bytes = Encoded(options.format, layout.slot_bytes);
  return sizes;
}

KvShape EncodedShape(const KvShape& shape, const Format& format) {
  KvShape encoded = shape;
  const Result<KvType> type = ParseKvType(std::string(format.name));
  encoded.type = type.ok() ? *type : KvType::kF16;
  if (type.ok()) return encoded;
  for (LayerKvShape& layer : encoded.layers) {
    const uint64_t bytes = BytesIn(format, uint64_t{layer.kv_heads} * (layer.k_dim + layer.v_dim));
    layer = {.kv_heads = static_cast<uint32_t>((bytes + 3) / 4), .k_dim = 2, .window = layer.window};
  }
  return encoded;
}

uint64_t LiveBytes(const KvSizes& sizes, uint64_t tokens) {
  return Encoded(sizes.format, KvBytesOfSequence(sizes.shape, tokens)) + sizes.state_bytes;
}

uint64_t PagedBytes(const KvSizes& sizes, uint64_t tokens) {
  return kv::SlotsHeld(sizes.geometry, tokens) * sizes.slot_bytes + sizes.state_bytes;
}

uint64_t ReservedBytes(const KvSizes& sizes, uint64_t tokens) {
  return SlotsPromised(sizes, tokens) * sizes.slot_bytes + sizes.state_bytes;
}

uint64_t SequencesThatFit(const KvSizes& sizes, uint64_t pool_bytes, uint64_t tokens) {
  const uint64_t bytes = ReservedBytes(sizes, tokens);
  return bytes == 0 ? kMaxSequences : std::min(pool_bytes / bytes, kMaxSequences);
}

uint64_t TokensThatFit(const KvSizes& sizes, uint64_t pool_bytes, uint64_t sequences, uint64_t limit) {
  const uint64_t share = pool_bytes / std::max<uint64_t>(sequences, 1);
  if (share < sizes.state_bytes) return 0;
  if (sizes.slot_bytes == 0) return limit;
  kv::KvGeometry geometry = sizes.geometry;
  geometry.slots =
      static_cast<uint32_t>(std::min<uint64_t>((share - sizes.state_bytes) / sizes.slot_bytes, kv::kNoSlot - 1));
  return std::min(kv::LargestSequence(geometry, sizes.step_tokens), limit);
}

Result<uint64_t> PoolBytes(const KvSizes& sizes, uint64_t sequences, uint64_t tokens) {
  uint64_t bytes = 0;
  if (!__builtin_mul_overflow(ReservedBytes(sizes, tokens), sequences, &bytes)) return bytes;
  return Invalid(
      fmt::format("{} sequences of {} tokens need more than 2^64 bytes", FormatCount(sequences), FormatCount(tokens)));
}

}  // namespace cachalot::plan
