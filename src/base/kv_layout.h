// KvLayout says where every byte of the KV cache lies; KvBytesPerToken is the one byte formula of the project.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: every layer belongs to exactly one group; the layers of a group share a window; a group's bytes fit a
//            slot.
// Cost:      planning is O(layers^2), once at start.
//
// One block is one extent of slot_bytes: per layer of its group, K as [kv head][k dim][token], then V as
// [kv head][token][v dim]. Attention over one head then reads tokens side by side and needs no horizontal sums.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace cachalot {

enum class KvType : uint8_t { kF32 = 0, kF16 = 1, kBF16 = 2 };

const char* KvTypeName(KvType type);  // "f32", "f16", "bf16"
Result<KvType> ParseKvType(const std::string& name);
uint32_t KvTypeBytes(KvType type);

// What one layer keeps per token. Multi-head: kv_heads = heads; grouped: fewer; multi-query: 1; latent attention
// (MLA): kv_heads = 1, k_dim = latent rank + rotary dims, v_dim = 0, since V is read from the latent itself.
struct LayerKvShape {
  uint32_t kv_heads = 0;
  uint32_t k_dim = 0;
  uint32_t v_dim = 0;
  uint32_t window = 0;  // 0: full attention; else only the last `window` positions are ever read
  bool operator==(const LayerKvShape&) const = default;
};

struct KvShape {
  std::vector<LayerKvShape> layers;
  KvType type = KvType::kF16;
  uint32_t block_tokens = 16;
};

// The byte formula: kv_heads * (k_dim + v_dim) * bytes per element.
uint64_t KvBytesPerToken(const LayerKvShape& layer, KvType type);
// Over all layers, windows ignored: what one token costs while every layer keeps it.
uint64_t KvBytesPerToken(const KvShape& shape);
// Bytes of KV that a sequence of `tokens` keeps, windows respected, without block rounding.
uint64_t KvBytesOfSequence(const KvShape& shape, uint64_t tokens);

struct LayerGroup {
  uint32_t window = 0;           // 0: full attention
  std::vector<uint32_t> layers;  // ascending
  uint64_t used_bytes = 0;       // of slot_bytes; the rest is padding
};

struct LayerPlace {
  uint32_t group = 0;
  uint64_t k_offset = 0;  // bytes from the start of the slot
  uint64_t v_offset = 0;
};

struct KvLayout {
  KvShape shape;
  uint64_t slot_bytes = 0;
  std::vector<LayerGroup> groups;  // full groups first, then sliding ones by ascending window
  std::vector<LayerPlace> places;  // one per layer
};

// Cuts the layers into groups of g layers of one window each, g chosen to minimise padded bytes of one sequence of
// `reference_tokens` with at most 16 groups; ties take the larger g (fewer page tables). kInvalid when a dimension is
// zero or odd, block_tokens is not a positive multiple of 16, or there is no layer.
Result<KvLayout> PlanKvLayout(const KvShape& shape, uint64_t reference_tokens);

}  // namespace cachalot
