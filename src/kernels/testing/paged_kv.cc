#include "kernels/testing/paged_kv.h"

#include <algorithm>
#include <numeric>
#include <random>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace cachalot::kernels {
namespace {

// As the arena of the KV pool does.
void WishForLargePages([[maybe_unused]] std::byte* p, [[maybe_unused]] uint64_t bytes) {
#if defined(__linux__)
  constexpr uint64_t kPage = uint64_t{2} << 20;
  if (bytes < 2 * kPage) return;
  const uint64_t skipped = (kPage - reinterpret_cast<uintptr_t>(p) % kPage) % kPage;
  (void)madvise(p + skipped, (bytes - skipped) / kPage * kPage, MADV_HUGEPAGE);
#endif
}

}  // namespace

PagedKv::PagedKv(const PagedKvOptions& options) : options_(options) {
  const AttentionShape& shape = options.shape;
  const uint64_t cell = options.type == KvType::kF32 ? 4 : 2;
  const uint64_t part = uint64_t{shape.kv_heads} * shape.head_dim * options.block_tokens * cell;
  constexpr uint64_t kOtherLayer = 192;  // bytes before K, as if another layer came first
  const uint64_t blocks = (options.tokens + options.block_tokens - 1) / options.block_tokens;
  const uint64_t first = options.first_kept / options.block_tokens;

  view_.slot_bytes = kOtherLayer + 2 * part * (options.scattered ? options.layers : 1);
  const uint64_t pool = options.scattered ? 2 * (blocks - first) + 1 : blocks - first;
  std::vector<uint32_t> order(pool);
  std::iota(order.begin(), order.end(), 0u);
  if (options.scattered) std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<uint32_t>(options.tokens)));
  slots_.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(blocks - first));
  layer_bytes_ = options.scattered ? 2 * part : pool * view_.slot_bytes;
  const uint64_t bytes = pool * view_.slot_bytes * (options.scattered ? 1 : options.layers);
  arena_.reserve(bytes);
  WishForLargePages(arena_.data(), bytes);
  arena_.resize(bytes, std::byte{0xff});  // a NaN in every type

  view_.arena = arena_.data();
  view_.pages = {slots_.data(), static_cast<uint32_t>(slots_.size()), static_cast<uint32_t>(first)};
  view_.k_offset = kOtherLayer;
  view_.v_offset = kOtherLayer + part;
  view_.block_tokens = options.block_tokens;
  view_.kv_heads = shape.kv_heads;
  view_.k_dim = view_.v_dim = shape.head_dim;
  view_.type = options.type;
}

PageView PagedKv::view(uint32_t layer) const {
  PageView view = view_;
  if (options_.scattered) {
    view.k_offset += layer * layer_bytes_;
    view.v_offset += layer * layer_bytes_;
  } else {
    view.arena += layer * layer_bytes_;
  }
  return view;
}

void PagedKv::Store(const AttentionKernels& kernels, const std::vector<float>& k, const std::vector<float>& v) {
  const uint64_t width = uint64_t{options_.shape.kv_heads} * options_.shape.head_dim;
  for (uint32_t layer = 0; layer < options_.layers; ++layer) {
    for (uint64_t t = options_.first_kept; t < options_.tokens; ++t) {
      kernels.store_kv(k.data() + t * width, v.data() + t * width, t, view(layer));
    }
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
