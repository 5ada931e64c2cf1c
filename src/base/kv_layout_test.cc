#include "base/kv_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace cachalot {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kGiB = kKiB * kKiB * kKiB;

KvShape Uniform(uint32_t layers, LayerKvShape layer, KvType type = KvType::kF16) {
  return {.layers = std::vector<LayerKvShape>(layers, layer), .type = type};
}

// Every `period`-th layer is full, the others slide.
KvShape SlidingPattern(uint32_t layers, uint32_t period, uint32_t window, uint32_t kv_heads, uint32_t head_dim) {
  KvShape shape;
  for (uint32_t i = 0; i < layers; ++i) {
    const bool full = (i + 1) % period == 0;
    shape.layers.push_back({kv_heads, head_dim, head_dim, full ? 0 : window});
  }
  return shape;
}

KvLayout Plan(const KvShape& shape, uint64_t reference_tokens = 32768) {
  Result<KvLayout> layout = PlanKvLayout(shape, reference_tokens);
  EXPECT_TRUE(layout.ok()) << layout.status().message();
  return layout.ok() ? *layout : KvLayout{};
}

TEST(KvBytes, GroupedQueriesOfA70BModelCostWhatTheFieldSays) {
  const KvShape grouped = Uniform(80, {.kv_heads = 8, .k_dim = 128, .v_dim = 128});
  EXPECT_EQ(KvBytesPerToken(grouped), 327'680u);
  EXPECT_EQ(KvBytesOfSequence(grouped, 32'768), 10 * kGiB);
  EXPECT_EQ(128 * KvBytesOfSequence(grouped, 4'096), 160 * kGiB);
  const KvShape multi_head = Uniform(80, {.kv_heads = 64, .k_dim = 128, .v_dim = 128});
  EXPECT_EQ(KvBytesPerToken(multi_head), 8 * KvBytesPerToken(grouped));
  const KvShape multi_query = Uniform(80, {.kv_heads = 1, .k_dim = 128, .v_dim = 128});
  EXPECT_EQ(8 * KvBytesPerToken(multi_query), KvBytesPerToken(grouped));
}

TEST(KvBytes, LatentAttentionKeepsOneVectorPerTokenAndLayer) {
  const KvShape deepseek_v3 = Uniform(61, {.kv_heads = 1, .k_dim = 512 + 64, .v_dim = 0});
  EXPECT_EQ(KvBytesPerToken(deepseek_v3), 70'272u);
}

TEST(KvBytes, ElementTypeScalesTheFormula) {
  const LayerKvShape layer{.kv_heads = 3, .k_dim = 64, .v_dim = 64};
  EXPECT_EQ(KvBytesPerToken(layer, KvType::kF32), 1536u);
  EXPECT_EQ(KvBytesPerToken(layer, KvType::kF16), 768u);
  EXPECT_EQ(KvBytesPerToken(layer, KvType::kBF16), 768u);
}

TEST(KvBytes, SlidingLayersStopGrowingAtTheirWindow) {
  const KvShape shape = SlidingPattern(18, 6, 512, 1, 256);
  const uint64_t per_layer = 2 * 256 * 2;
  EXPECT_EQ(KvBytesOfSequence(shape, 100), 18 * 100 * per_layer);
  EXPECT_EQ(KvBytesOfSequence(shape, 512), 18 * 512 * per_layer);
  EXPECT_EQ(KvBytesOfSequence(shape, 513), (15 * 512 + 3 * 513) * per_layer);
  EXPECT_EQ(KvBytesOfSequence(shape, 32'768), (15 * 512 + 3 * 32'768) * per_layer);
}

TEST(KvType, NamesParseBackAndUnknownOnesAreRefused) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16}) {
    Result<KvType> parsed = ParseKvType(KvTypeName(type));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, type);
  }
  const Result<KvType> unknown = ParseKvType("q4_0");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), Code::kInvalid);
  EXPECT_NE(unknown.status().message().find("q4_0"), std::string::npos);
}

TEST(KvLayoutPlan, OneKindOfLayerIsOneGroup) {
  const KvLayout smollm2 = Plan(Uniform(30, {.kv_heads = 3, .k_dim = 64, .v_dim = 64}));
  ASSERT_EQ(smollm2.groups.size(), 1u);
  EXPECT_EQ(smollm2.groups[0].layers.size(), 30u);
  EXPECT_EQ(smollm2.groups[0].used_bytes, smollm2.slot_bytes);
  EXPECT_EQ(smollm2.slot_bytes, 16u * 30 * 768);
}

TEST(KvLayoutPlan, Gemma270MIsSixGroupsOfThreeWithoutPadding) {
  const KvLayout layout = Plan(SlidingPattern(18, 6, 512, 1, 256));
  ASSERT_EQ(layout.groups.size(), 6u);
  EXPECT_EQ(layout.groups[0].window, 0u);
  EXPECT_EQ(layout.groups[0].layers, (std::vector<uint32_t>{5, 11, 17}));
  for (size_t g = 1; g < 6; ++g) {
    EXPECT_EQ(layout.groups[g].window, 512u);
    EXPECT_EQ(layout.groups[g].layers.size(), 3u);
    EXPECT_EQ(layout.groups[g].used_bytes, layout.slot_bytes);
  }
}

TEST(KvLayoutPlan, Gemma27BPadsTheGroupThatGrowsLeast) {
  const KvShape shape = SlidingPattern(62, 6, 1024, 16, 128);
  const KvLayout at_long = Plan(shape, 131'072);
  // 10 full and 52 sliding layers. Groups of 5 pad 3 sliding layers, groups of 4 pad 2 full ones.
  ASSERT_EQ(at_long.groups.size(), 13u);
  EXPECT_EQ(at_long.groups[0].layers.size(), 5u);
  EXPECT_EQ(at_long.groups[1].used_bytes, at_long.slot_bytes);
  EXPECT_EQ(at_long.groups.back().layers.size(), 2u);
  EXPECT_EQ(at_long.slot_bytes - at_long.groups.back().used_bytes, 3 * at_long.slot_bytes / 5);
  // While nothing has left its window, both kinds cost the same, and two padded layers are better than three.
  EXPECT_EQ(Plan(shape, 1024).groups[0].layers.size(), 4u);
}

TEST(KvLayoutPlan, OddCountsPadAndUsedBytesSaySo) {
  const KvLayout layout = Plan(SlidingPattern(25, 4, 128, 2, 64));  // 6 full, 19 sliding
  uint64_t used = 0;
  for (const LayerGroup& group : layout.groups) used += group.used_bytes;
  EXPECT_EQ(used, 16 * KvBytesPerToken(layout.shape));
  EXPECT_LT(used, layout.slot_bytes * layout.groups.size());
}

TEST(KvLayoutPlan, TiesTakeFewerPageTables) {
  // 4 full and 8 sliding layers pad nothing in groups of 1, 2 or 4.
  KvShape shape = SlidingPattern(12, 3, 64, 1, 32);
  EXPECT_EQ(Plan(shape).groups.size(), 3u);
}

// Checks the invariants of any layout; the choice itself is compared with every other cut that is allowed.
void ExpectSound(const KvLayout& layout) {
  const KvShape& shape = layout.shape;
  EXPECT_LE(layout.groups.size(), 16u);
  std::multiset<uint32_t> layers;
  for (uint32_t g = 0; g < layout.groups.size(); ++g) {
    const LayerGroup& group = layout.groups[g];
    EXPECT_GE(group.window, layout.groups[g == 0 ? 0 : g - 1].window);
    EXPECT_LE(group.used_bytes, layout.slot_bytes);
    EXPECT_TRUE(std::is_sorted(group.layers.begin(), group.layers.end()));
    uint64_t offset = 0;
    for (const uint32_t layer : group.layers) {
      layers.insert(layer);
      EXPECT_EQ(shape.layers[layer].window, group.window);
      EXPECT_EQ(layout.places[layer].group, g);
      EXPECT_EQ(layout.places[layer].k_offset, offset);
      const uint64_t per_dim = uint64_t{shape.layers[layer].kv_heads} * shape.block_tokens * KvTypeBytes(shape.type);
      EXPECT_EQ(layout.places[layer].v_offset, offset + per_dim * shape.layers[layer].k_dim);
      EXPECT_EQ(offset % 64, 0u);
      offset += per_dim * (shape.layers[layer].k_dim + shape.layers[layer].v_dim);
    }
    EXPECT_EQ(offset, group.used_bytes);
  }
  EXPECT_EQ(layers.size(), shape.layers.size());
  EXPECT_EQ(std::set<uint32_t>(layers.begin(), layers.end()).size(), shape.layers.size());
}

uint64_t SequenceBytes(const KvLayout& layout, uint64_t tokens) {
  uint64_t blocks = 0;
  for (const LayerGroup& group : layout.groups) {
    const uint64_t kept = group.window == 0 ? tokens : std::min<uint64_t>(tokens, group.window);
    blocks += (kept + layout.shape.block_tokens - 1) / layout.shape.block_tokens;
  }
  return blocks * layout.slot_bytes;
}

TEST(KvLayoutPlan, NoOtherGroupSizeNeedsFewerBytes) {
  for (uint32_t layers = 1; layers <= 64; ++layers) {
    for (const uint32_t period : {1u, 2u, 3u, 6u}) {
      const KvLayout layout = Plan(SlidingPattern(layers, period, 256, 2, 64), 8192);
      ExpectSound(layout);
      const uint32_t full = layers / period;
      const uint32_t sliding = layers - full;
      for (uint32_t g = 1; g <= layers; ++g) {
        const uint32_t full_groups = (full + g - 1) / g;
        const uint32_t sliding_groups = (sliding + g - 1) / g;
        if (full_groups + sliding_groups > 16) continue;
        const uint64_t slot = g * 16 * KvBytesPerToken(layout.shape.layers[0], layout.shape.type);
        EXPECT_LE(SequenceBytes(layout, 8192), slot * (full_groups * 512 + sliding_groups * 16))
            << layers << " layers, period " << period << ", g " << g;
      }
    }
  }
}

TEST(KvLayoutPlan, LayersOfUnequalShapeShareASlotSize) {
  KvShape shape = Uniform(4, {.kv_heads = 2, .k_dim = 64, .v_dim = 64});
  shape.layers[2].kv_heads = 5;
  shape.layers[3] = {.kv_heads = 1, .k_dim = 80, .v_dim = 0};
  shape.block_tokens = 48;
  ExpectSound(Plan(shape));
}

TEST(KvLayoutPlan, RefusesWhatCannotBeLaidOut) {
  const LayerKvShape good{.kv_heads = 2, .k_dim = 64, .v_dim = 64};
  const auto expect_refused = [](KvShape shape, const std::string& word) {
    const Result<KvLayout> layout = PlanKvLayout(shape, 4096);
    ASSERT_FALSE(layout.ok()) << word;
    EXPECT_EQ(layout.status().code(), Code::kInvalid);
    EXPECT_NE(layout.status().message().find(word), std::string::npos) << layout.status().message();
  };
  expect_refused({}, "layers");
  expect_refused(Uniform(100'000, good), "layers");
  expect_refused(Uniform(2, {.kv_heads = 0, .k_dim = 64, .v_dim = 64}), "kv_heads");
  expect_refused(Uniform(2, {.kv_heads = 2, .k_dim = 0, .v_dim = 64}), "k_dim");
  expect_refused(Uniform(2, {.kv_heads = 2, .k_dim = 63, .v_dim = 64}), "k_dim");
  expect_refused(Uniform(2, {.kv_heads = 2, .k_dim = 64, .v_dim = 65}), "v_dim");
  expect_refused(Uniform(2, {.kv_heads = 2, .k_dim = 0xFFFFFFFE, .v_dim = 64}), "k_dim");
  expect_refused(Uniform(2, {.kv_heads = 1u << 20, .k_dim = 1u << 20, .v_dim = 64}), "bytes");
  for (const uint32_t block_tokens : {0u, 8u, 17u, 1u << 30}) {
    KvShape shape = Uniform(2, good);
    shape.block_tokens = block_tokens;
    expect_refused(shape, "block_tokens");
  }
  KvShape many_windows;
  for (uint32_t i = 0; i < 17; ++i) many_windows.layers.push_back({2, 64, 64, i});
  expect_refused(many_windows, "windows");
  many_windows.layers.pop_back();
  ExpectSound(Plan(many_windows));
}

}  // namespace
}  // namespace cachalot
