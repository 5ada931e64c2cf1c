#include "kernels/testing/paged_kv.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace cachalot::kernels {

PagedKv::PagedKv(const PagedKvOptions& options) : options_(options) {
  const AttentionShape& shape = options.shape;
  const uint64_t cell = options.type == KvType::kF32 ? 4 : 2;
  const uint64_t part = uint64_t{shape.kv_heads} * shape.head_dim * options.block_tokens * cell;
  constexpr uint64_t kOtherLayer = 192;  // bytes before K, as if another layer came first
  const uint64_t blocks = (options.tokens + options.block_tokens - 1) / options.block_tokens;
  const uint64_t first = options.first_kept / options.block_tokens;

  view_.slot_bytes = kOtherLayer + 2 * part;
  const uint64_t pool = options.scattered ? 2 * (blocks - first) + 1 : blocks - first;
  std::vector<uint32_t> order(pool);
  std::iota(order.begin(), order.end(), 0u);
  if (options.scattered) std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<uint32_t>(options.tokens)));
  slots_.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(blocks - first));
  arena_.assign(pool * view_.slot_bytes, std::byte{0xff});  // a NaN in every type

  view_.arena = arena_.data();
  view_.pages = {slots_.data(), static_cast<uint32_t>(slots_.size()), static_cast<uint32_t>(first)};
  view_.k_offset = kOtherLayer;
  view_.v_offset = kOtherLayer + part;
  view_.block_tokens = options.block_tokens;
  view_.kv_heads = shape.kv_heads;
  view_.k_dim = view_.v_dim = shape.head_dim;
  view_.type = options.type;
}

void PagedKv::Store(const AttentionKernels& kernels, const std::vector<float>& k, const std::vector<float>& v) {
  const uint64_t width = uint64_t{options_.shape.kv_heads} * options_.shape.head_dim;
  for (uint64_t t = options_.first_kept; t < options_.tokens; ++t) {
    kernels.store_kv(k.data() + t * width, v.data() + t * width, t, view_);
  }
}

std::vector<float> TestValues(uint64_t seed, uint64_t count) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    const uint64_t bits = random();
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<float>((bits >> (16 * i)) & 0xffff) * 0x1p-16f - 0.5f;
    value = sum;
  }
  return values;
}

}  // namespace cachalot::kernels
