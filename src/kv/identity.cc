#include "kv/identity.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace cachalot::kv {
namespace {

// Part of every digest: changed with the order or meaning of what is hashed.
constexpr std::string_view kIdentityDomain = "cachalot identity 1";
constexpr std::string_view kBlockDomain = "cachalot block 1";
constexpr std::string_view kSaltDomain = "cachalot salt 1";

void AddPositions(Sha256& hash, const std::vector<PositionSettings>& positions) {
  hash.UpdateInt(positions.size());
  for (const PositionSettings& p : positions) {
    hash.UpdateInt(std::bit_cast<uint64_t>(p.theta));
    hash.UpdateInt(std::bit_cast<uint64_t>(p.position_scale));
    hash.UpdateInt(p.dims);
    hash.UpdateInt(p.factors.size());
    for (const float factor : p.factors) hash.UpdateInt(std::bit_cast<uint32_t>(factor));
  }
}

void AddLayout(Sha256& hash, const KvLayout& layout) {
  hash.UpdateInt(static_cast<uint64_t>(layout.shape.type));
  hash.UpdateInt(layout.shape.block_tokens);
  hash.UpdateInt(layout.shape.layers.size());
  for (const LayerKvShape& layer : layout.shape.layers) {
    for (const uint32_t value : {layer.kv_heads, layer.k_dim, layer.v_dim, layer.window}) hash.UpdateInt(value);
  }
  hash.UpdateInt(layout.slot_bytes);
  hash.UpdateInt(layout.groups.size());
  for (const LayerGroup& group : layout.groups) {
    hash.UpdateInt(group.window);
    hash.UpdateInt(group.layers.size());
    for (const uint32_t layer : group.layers) hash.UpdateInt(layer);
  }
  hash.UpdateInt(layout.places.size());
  for (const LayerPlace& place : layout.places) {
    for (const uint64_t value : {uint64_t{place.group}, place.k_offset, place.v_offset}) hash.UpdateInt(value);
  }
}

Digest SaltKey(const Digest& identity, const Digest& parent, const CacheSalt& salt) {
  Sha256 hash;
  hash.UpdateField(kSaltDomain);
  hash.UpdateField(std::as_bytes(std::span(identity)));
  hash.UpdateField(std::as_bytes(std::span(parent)));
  hash.UpdateInt(salt.high);
  hash.UpdateInt(salt.low);
  return hash.Finish();
}

}  // namespace

Digest IdentityOf(const IdentityFields& fields) {
  Sha256 hash;
  hash.UpdateField(kIdentityDomain);
  hash.UpdateField(std::as_bytes(std::span(fields.model)));
  hash.UpdateField(std::as_bytes(std::span(fields.adapter)));
  hash.UpdateField(std::as_bytes(std::span(fields.tokenizer)));
  AddPositions(hash, fields.positions);
  hash.UpdateField(fields.codec);
  AddLayout(hash, fields.layout);
  hash.UpdateField(fields.numerics);
  return hash.Finish();
}

Digest BlockKey(const Digest& identity, const Digest& parent, std::span<const TokenId> tokens) {
  static_assert(std::endian::native == std::endian::little, "token ids are hashed as they lie in memory");
  Sha256 hash;
  hash.UpdateField(kBlockDomain);
  hash.UpdateField(std::as_bytes(std::span(identity)));
  hash.UpdateField(std::as_bytes(std::span(parent)));
  hash.UpdateInt(tokens.size());
  hash.Update(std::as_bytes(tokens));
  return hash.Finish();
}

ChainEnd NextInChain(const Digest& identity, const ChainEnd& before, const CacheSalt& salt,
                     std::span<const TokenId> tokens) {
  const Digest parent = salt == before.salt ? before.key : SaltKey(identity, before.key, salt);
  return {BlockKey(identity, parent, tokens), salt};
}

std::vector<Digest> BlockKeys(const Digest& identity, const PrefixScope& scope, uint32_t block_tokens,
                              std::span<const TokenId> tokens, Tail tail) {
  if (tail == Tail::kWholeOnly) tokens = tokens.first(tokens.size() - tokens.size() % block_tokens);
  std::vector<Digest> keys;
  ChainEnd end;
  for (uint64_t begin = 0; begin < tokens.size(); begin += block_tokens) {
    const uint64_t count = std::min<uint64_t>(block_tokens, tokens.size() - begin);
    end = NextInChain(identity, end, SaltAt(scope, begin + block_tokens), tokens.subspan(begin, count));
    keys.push_back(end.key);
  }
  return keys;
}

}  // namespace cachalot::kv
