#include "base/kv_layout.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace cachalot {
namespace {

constexpr size_t kMaxGroups = 16;
constexpr uint32_t kMaxLayers = 1u << 12;
// Any model is far below these; they keep every product of a layout inside 64 bits.
constexpr uint32_t kMaxDim = 1u << 20;
constexpr uint32_t kMaxBlockTokens = 1u << 16;
constexpr uint64_t kMaxLayerBlockBytes = uint64_t{1} << 40;

uint64_t BlocksFor(uint64_t tokens, uint32_t block_tokens) {
  return tokens / block_tokens + (tokens % block_tokens != 0 ? 1 : 0);
}

uint64_t KeptTokens(uint32_t window, uint64_t tokens) {
  return window == 0 ? tokens : std::min<uint64_t>(tokens, window);
}

Status CheckDim(size_t layer, const char* name, uint32_t value, bool zero_allowed) {
  const bool fits = value <= kMaxDim && value % 2 == 0 && (value != 0 || zero_allowed);
  if (fits) return OkStatus();
  return Invalid(fmt::format("KV layout: layer {} has {} = {}; expected an even number {} {}{}", layer, name, value,
                             "from 2 to", kMaxDim, zero_allowed ? ", or 0" : ""));
}

Status CheckLayer(size_t index, const LayerKvShape& layer, const KvShape& shape) {
  if (layer.kv_heads == 0 || layer.kv_heads > kMaxDim) {
    return Invalid(
        fmt::format("KV layout: layer {} has kv_heads = {}; expected 1 to {}", index, layer.kv_heads, kMaxDim));
  }
  CACHALOT_RETURN_IF_ERROR(CheckDim(index, "k_dim", layer.k_dim, false));
  CACHALOT_RETURN_IF_ERROR(CheckDim(index, "v_dim", layer.v_dim, true));
  const uint64_t bytes = KvBytesPerToken(layer, shape.type) * shape.block_tokens;
  if (bytes > kMaxLayerBlockBytes) {
    return Invalid(fmt::format("KV layout: a block of layer {} has {} bytes; at most {} are supported", index, bytes,
                               kMaxLayerBlockBytes));
  }
  return OkStatus();
}

Status CheckShape(const KvShape& shape) {
  if (shape.layers.empty() || shape.layers.size() > kMaxLayers) {
    return Invalid(fmt::format("KV layout: {} layers; expected 1 to {}", shape.layers.size(), kMaxLayers));
  }
  if (shape.block_tokens == 0 || shape.block_tokens % 16 != 0 || shape.block_tokens > kMaxBlockTokens) {
    return Invalid(fmt::format("KV layout: block_tokens = {}; expected a multiple of 16 from 16 to {}",
                               shape.block_tokens, kMaxBlockTokens));
  }
  for (size_t i = 0; i < shape.layers.size(); ++i) CACHALOT_RETURN_IF_ERROR(CheckLayer(i, shape.layers[i], shape));
  return OkStatus();
}

// The layers of each window: full attention (0) first, then ascending.
using LayersByWindow = std::map<uint32_t, std::vector<uint32_t>>;

std::vector<LayerGroup> CutIntoGroups(const KvShape& shape, const LayersByWindow& by_window, size_t group_layers) {
  std::vector<LayerGroup> groups;
  for (const auto& [window, layers] : by_window) {
    for (size_t begin = 0; begin < layers.size(); begin += group_layers) {
      LayerGroup& group = groups.emplace_back();
      group.window = window;
      group.layers.assign(layers.begin() + begin, layers.begin() + std::min(begin + group_layers, layers.size()));
      for (const uint32_t layer : group.layers) {
        group.used_bytes += KvBytesPerToken(shape.layers[layer], shape.type) * shape.block_tokens;
      }
    }
  }
  return groups;
}

uint64_t SlotBytes(const std::vector<LayerGroup>& groups) {
  uint64_t bytes = 0;
  for (const LayerGroup& group : groups) bytes = std::max(bytes, group.used_bytes);
  return bytes;
}

// Padding that one sequence of `tokens` holds. 128 bits: block counts of any length times slot bytes.
unsigned __int128 PaddedBytes(const KvShape& shape, const std::vector<LayerGroup>& groups, uint64_t tokens) {
  const uint64_t slot_bytes = SlotBytes(groups);
  unsigned __int128 padded = 0;
  for (const LayerGroup& group : groups) {
    const uint64_t blocks = BlocksFor(KeptTokens(group.window, tokens), shape.block_tokens);
    padded += static_cast<unsigned __int128>(slot_bytes - group.used_bytes) * blocks;
  }
  return padded;
}

size_t GroupCount(const LayersByWindow& by_window, size_t group_layers) {
  size_t count = 0;
  for (const auto& [window, layers] : by_window) count += (layers.size() + group_layers - 1) / group_layers;
  return count;
}

std::vector<LayerGroup> BestGroups(const KvShape& shape, const LayersByWindow& by_window, uint64_t reference_tokens) {
  std::vector<LayerGroup> best;
  std::optional<unsigned __int128> best_padding;
  for (size_t group_layers = shape.layers.size(); group_layers >= 1; --group_layers) {
    if (GroupCount(by_window, group_layers) > kMaxGroups) break;  // smaller groups are only more
    std::vector<LayerGroup> groups = CutIntoGroups(shape, by_window, group_layers);
    const unsigned __int128 padding = PaddedBytes(shape, groups, reference_tokens);
    if (best_padding && padding >= *best_padding) continue;
    best_padding = padding;
    best = std::move(groups);
  }
  return best;
}

std::vector<LayerPlace> PlacesOf(const KvShape& shape, const std::vector<LayerGroup>& groups) {
  std::vector<LayerPlace> places(shape.layers.size());
  for (uint32_t g = 0; g < groups.size(); ++g) {
    uint64_t offset = 0;
    for (const uint32_t index : groups[g].layers) {
      const LayerKvShape& layer = shape.layers[index];
      const uint64_t per_dim = uint64_t{layer.kv_heads} * shape.block_tokens * KvTypeBytes(shape.type);
      places[index] = {.group = g, .k_offset = offset, .v_offset = offset + per_dim * layer.k_dim};
      offset += per_dim * (uint64_t{layer.k_dim} + layer.v_dim);
    }
  }
  return places;
}

}  // namespace

const char* KvTypeName(KvType type) {
  switch (type) {
    case KvType::kF32: return "f32";
    case KvType::kF16: return "f16";
    case KvType::kBF16: return "bf16";
  }
  return "unknown";
}

Result<KvType> ParseKvType(const std::string& name) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16}) {
    if (name == KvTypeName(type)) return type;
  }
  return Invalid(fmt::format("unknown KV type \"{}\"; expected f32, f16 or bf16", name));
}

uint32_t KvTypeBytes(KvType type) { return type == KvType::kF32 ? 4 : 2; }

uint64_t KvBytesPerToken(const LayerKvShape& layer, KvType type) {
  return (uint64_t{layer.k_dim} + layer.v_dim) * layer.kv_heads * KvTypeBytes(type);
}

uint64_t KvBytesPerToken(const KvShape& shape) {
  uint64_t bytes = 0;
  for (const LayerKvShape& layer : shape.layers) bytes += KvBytesPerToken(layer, shape.type);
  return bytes;
}

uint64_t KvBytesOfSequence(const KvShape& shape, uint64_t tokens) {
  uint64_t bytes = 0;
  for (const LayerKvShape& layer : shape.layers) {
    bytes += KvBytesPerToken(layer, shape.type) * KeptTokens(layer.window, tokens);
  }
  return bytes;
}

Result<KvLayout> PlanKvLayout(const KvShape& shape, uint64_t reference_tokens) {
  CACHALOT_RETURN_IF_ERROR(CheckShape(shape));
  LayersByWindow by_window;
  for (uint32_t i = 0; i < shape.layers.size(); ++i) by_window[shape.layers[i].window].push_back(i);
  if (by_window.size() > kMaxGroups) {
    return Invalid(fmt::format("KV layout: {} different attention windows; at most {} are supported", by_window.size(),
                               kMaxGroups));
  }
  KvLayout layout;
  layout.shape = shape;
  layout.groups = BestGroups(shape, by_window, std::max<uint64_t>(reference_tokens, 1));
  layout.slot_bytes = SlotBytes(layout.groups);
  layout.places = PlacesOf(shape, layout.groups);
  CACHALOT_CHECK(layout.groups.size() <= kMaxGroups);
  return layout;
}

}  // namespace cachalot
