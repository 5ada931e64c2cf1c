#include "kv/identity.h"

#include <functional>
#include <limits>
#include <set>

#include <gtest/gtest.h>

namespace cachalot::kv {
namespace {

Digest DigestOf(uint8_t byte) {
  Digest digest{};
  digest.back() = byte;
  return digest;
}

KvLayout LayoutOf(KvType type, uint32_t block_tokens, std::vector<LayerKvShape> layers) {
  return PlanKvLayout({.layers = std::move(layers), .type = type, .block_tokens = block_tokens}, 1024).value();
}

// What one field may be; each entry puts one value in.
using Values = std::vector<std::function<void(IdentityFields*)>>;

std::vector<Values> AllFields() {
  std::vector<Values> fields(7);
  for (const uint8_t byte : {0, 1}) {
    fields[0].push_back([=](IdentityFields* f) { f->model = DigestOf(byte); });
    fields[1].push_back([=](IdentityFields* f) { f->adapter = DigestOf(byte); });
    fields[2].push_back([=](IdentityFields* f) { f->tokenizer = DigestOf(byte); });
  }
  const std::vector<std::vector<PositionSettings>> positions = {{},
                                                                {{1e4, 1, 64, {}}},
                                                                {{1e4, 1, 64, {1}}},
                                                                {{1e4, 1, 64, {1, 1}}},
                                                                {{1e4, 0.5, 64, {}}},
                                                                {{1e4, 1, 32, {}}},
                                                                {{1e6, 1, 64, {}}},
                                                                {{1e4, 1, 64, {}}, {1e6, 1, 64, {}}},
                                                                {{1e6, 1, 64, {}}, {1e4, 1, 64, {}}},
                                                                {{1e4, 1, 64, {-0.0f}}},
                                                                {{1e4, 1, 64, {0.0f}}}};
  for (const auto& value : positions) fields[3].push_back([=](IdentityFields* f) { f->positions = value; });
  // Strings whose parts could change places with those of their neighbours.
  const std::string texts[] = {"", "a", "ab", "ba", std::string("a\0", 2), std::string("\0a", 2), "cpu-1", "cpu-11"};
  for (const std::string& text : texts) {
    fields[4].push_back([=](IdentityFields* f) { f->codec = text; });
    fields[6].push_back([=](IdentityFields* f) { f->numerics = text; });
  }
  const LayerKvShape full = {2, 64, 64, 0}, sliding = {2, 64, 64, 128};
  const KvLayout layouts[] = {{},
                              LayoutOf(KvType::kF16, 16, {full, full}),
                              LayoutOf(KvType::kBF16, 16, {full, full}),
                              LayoutOf(KvType::kF16, 32, {full, full}),
                              LayoutOf(KvType::kF16, 16, {full, full, full}),
                              LayoutOf(KvType::kF16, 16, {full, sliding}),
                              LayoutOf(KvType::kF16, 16, {sliding, full}),
                              LayoutOf(KvType::kF16, 16, {{4, 32, 64, 0}, {2, 64, 64, 0}})};
  for (const KvLayout& layout : layouts) fields[5].push_back([=](IdentityFields* f) { f->layout = layout; });
  return fields;
}

TEST(Identity, EveryCombinationOfFieldsHasItsOwn) {
  const std::vector<Values> fields = AllFields();
  std::set<Digest> seen;
  size_t combinations = 1;
  for (const Values& values : fields) combinations *= values.size();
  for (size_t number = 0; number < combinations; ++number) {
    IdentityFields combination;
    size_t rest = number;
    for (const Values& values : fields) {
      values[rest % values.size()](&combination);
      rest /= values.size();
    }
    EXPECT_TRUE(seen.insert(IdentityOf(combination)).second) << number;
  }
  EXPECT_EQ(seen.size(), combinations);
  EXPECT_EQ(IdentityOf({}), IdentityOf({}));
}

TEST(Identity, EachPartOfALayoutCounts) {
  const KvLayout layout = LayoutOf(KvType::kF16, 16, {{2, 64, 64, 0}, {2, 64, 64, 128}});
  std::vector<KvLayout> layouts(11, layout);
  layouts[1].slot_bytes += 64;
  layouts[2].groups[1].window = 64;
  std::swap(layouts[3].groups[0].layers, layouts[3].groups[1].layers);
  layouts[4].places[1].k_offset += 64;
  layouts[5].places[1].v_offset += 64;
  layouts[6].places[1].group = 0;
  layouts[7].shape.layers[0].kv_heads = 4;
  layouts[8].shape.layers[0].k_dim = 32;
  layouts[9].shape.layers[0].v_dim = 32;
  layouts[10].shape.layers[0].window = 8;
  std::set<Digest> seen;
  for (const KvLayout& l : layouts) seen.insert(IdentityOf({.layout = l}));
  EXPECT_EQ(seen.size(), layouts.size());
}

std::vector<TokenId> Counting(uint32_t count) {
  std::vector<TokenId> tokens(count);
  for (uint32_t i = 0; i < count; ++i) tokens[i] = i;
  return tokens;
}

constexpr uint32_t kBlockTokens = 4;
const CacheSalt kAlice{1, 2}, kBob{2, 1};

std::vector<Digest> KeysOf(const PrefixScope& scope, const std::vector<TokenId>& tokens, uint8_t identity = 1) {
  return BlockKeys(DigestOf(identity), scope, kBlockTokens, tokens);
}

TEST(BlockKeys, AreAChain) {
  const std::vector<TokenId> tokens = Counting(14);
  const std::vector<Digest> keys = KeysOf({}, tokens);
  ASSERT_EQ(keys.size(), 3u);  // whole blocks
  EXPECT_EQ(keys[1], BlockKey(DigestOf(1), keys[0], std::span(tokens).subspan(4, 4)));
  std::vector<TokenId> other = tokens;
  other[5] = 99;
  const std::vector<Digest> others = KeysOf({}, other);
  EXPECT_EQ(others[0], keys[0]);
  EXPECT_NE(others[1], keys[1]);
  EXPECT_NE(others[2], keys[2]);  // equal tokens after another beginning
  EXPECT_NE(KeysOf({}, tokens, 2)[0], keys[0]);
}

TEST(BlockKeys, ShortBlocksDifferFromWhatContinuesThem) {
  const std::vector<TokenId> tokens = {1, 2, 0, 0};
  std::set<Digest> seen;
  for (size_t count = 0; count <= 4; ++count) {
    seen.insert(BlockKey(DigestOf(1), DigestOf(0), std::span(tokens).first(count)));
  }
  EXPECT_EQ(seen.size(), 5u);
}

TEST(BlockKeys, TenantsShareThePublicPrefixAndNothingElse) {
  const std::vector<TokenId> tokens = Counting(16);
  const std::vector<Digest> everybodys = KeysOf({}, tokens);
  for (uint64_t shared = 0; shared <= 16; ++shared) {
    const std::vector<Digest> alice = KeysOf({kAlice, shared}, tokens), bob = KeysOf({kBob, shared}, tokens);
    for (uint64_t block = 0; block < 4; ++block) {
      const bool is_public = (block + 1) * kBlockTokens <= shared;
      EXPECT_EQ(alice[block] == bob[block], is_public) << shared << " " << block;
      EXPECT_EQ(alice[block] == everybodys[block], is_public) << shared << " " << block;
    }
  }
}

TEST(BlockKeys, ASaltIsNoBlock) {
  // The salt's bytes as tokens, under everybody's.
  const std::vector<TokenId> salt_as_tokens = {1, 0, 2, 0};
  const Digest forged = BlockKey(DigestOf(1), DigestOf(0), salt_as_tokens);
  const std::vector<TokenId> tokens = Counting(4);
  EXPECT_NE(BlockKey(DigestOf(1), forged, tokens), KeysOf({kAlice, 0}, tokens)[0]);
}

}  // namespace
}  // namespace cachalot::kv
