#include "engine/prefix_tags.h"

#include <algorithm>
#include <array>

namespace cachalot::engine {
namespace {

uint64_t LittleEndian(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{bytes[i]} << (8 * i);
  return value;
}

// JSON readers that keep numbers as doubles lose nothing of it.
uint64_t Below2To53(const Digest& digest) { return LittleEndian(std::span(digest).subspan(8, 8)) >> 11; }

}  // namespace

PrefixTags::PrefixTags(const TagKey& key, const PrefixScope& scope, uint32_t block_tokens)
    : block_tokens_(block_tokens),
      salt_(scope.salt),
      salted_from_(scope.public_tokens / block_tokens * block_tokens),
      state_(key) {}

std::vector<uint32_t> PrefixTags::Push(std::span<const TokenId> tokens) {
  std::vector<uint32_t> tags;
  tags.reserve(tokens.size());
  for (const TokenId token : tokens) {
    Push(token);
    tags.push_back(static_cast<uint32_t>(LittleEndian(std::span(state_).first(4))));
  }
  return tags;
}

void PrefixTags::Push(TokenId token) {
  const CacheSalt salt = count_ == salted_from_ ? salt_ : CacheSalt{};
  std::array<std::byte, 56> link{};
  std::ranges::copy(std::as_bytes(std::span(state_)), link.begin());
  const auto put = [&](size_t at, uint64_t value) {
    for (size_t i = 0; i < 8; ++i) link[at + i] = static_cast<std::byte>(value >> (8 * i));
  };
  put(32, token);
  put(40, salt.high);
  put(48, salt.low);
  state_ = Sha256Of(link);
  if (++count_ % block_tokens_ == 0) filled_.push_back(Below2To53(state_));
}

std::vector<uint64_t> PrefixTags::BlockNames() const {
  std::vector<uint64_t> names = filled_;
  if (count_ % block_tokens_ != 0) names.push_back(Below2To53(state_));
  return names;
}

uint64_t TagOf(const TagKey& key, std::string_view kind, std::string_view text) {
  Sha256 hash;
  hash.UpdateField(std::as_bytes(std::span(key)));
  hash.UpdateField(kind);
  hash.UpdateField(text);
  return Below2To53(hash.Finish());
}

}  // namespace cachalot::engine
