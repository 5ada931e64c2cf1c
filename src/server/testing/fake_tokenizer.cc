#include "server/testing/fake_tokenizer.h"

#include "base/check.h"

namespace cachalot::server {
namespace {

constexpr std::array<std::string_view, 4> kSpecial = {"<bos>", "<eos>", "<|turn|>", "<|end|>"};

}  // namespace

FakeTokenizer::FakeTokenizer(Options options) : options_(options) {
  for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<char>(i);
}

std::vector<TokenId> FakeTokenizer::Encode(std::string_view text, const text::EncodeOptions& options) const {
  std::vector<TokenId> ids;
  if (options.add_bos && options_.adds_bos) ids.push_back(kBos);
  if (options_.strips_first_space && !text.empty()) ids.push_back(' ');
  while (!text.empty()) {
    bool special = false;
    for (size_t i = 0; options.parse_special && i < kSpecial.size(); ++i) {
      if (!text.starts_with(kSpecial[i])) continue;
      ids.push_back(static_cast<TokenId>(256 + i));
      text.remove_prefix(kSpecial[i].size());
      special = true;
      break;
    }
    if (special) continue;
    ids.push_back(static_cast<unsigned char>(text[0]));
    text.remove_prefix(1);
  }
  return ids;
}

std::string_view FakeTokenizer::TokenBytes(TokenId id, bool with_special) const {
  CACHALOT_CHECK(id < kVocabulary);
  if (id < 256) return {&bytes_[id], 1};
  return with_special ? kSpecial[id - 256] : std::string_view();
}

std::string FakeTokenizer::Decode(std::span<const TokenId> ids, bool with_special) const {
  std::string out;
  for (const TokenId id : ids) out += TokenBytes(id, with_special);
  return out;
}

text::TokenKind FakeTokenizer::Kind(TokenId id) const {
  return id < 256 ? text::TokenKind::kByte : text::TokenKind::kControl;
}

std::optional<TokenId> FakeTokenizer::FindSpecial(std::string_view spelling) const {
  for (size_t i = 0; i < kSpecial.size(); ++i) {
    if (kSpecial[i] == spelling) return static_cast<TokenId>(256 + i);
  }
  return std::nullopt;
}

std::span<const TokenId> FakeTokenizer::end_tokens() const {
  static constexpr std::array<TokenId, 2> kEnds = {kEos, kEnd};
  return kEnds;
}

}  // namespace cachalot::server
