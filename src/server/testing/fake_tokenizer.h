// FakeTokenizer has one token per byte and a few special ones: a tokenizer that tests can compute in their heads.
// Threads:   immutable.
// Ownership: none.
// Invariant: token b is the byte b, for b below 256.
// Cost:      linear.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace cachalot::server {

class FakeTokenizer final : public text::Tokenizer {
 public:
  static constexpr TokenId kBos = 256;   // "<bos>"
  static constexpr TokenId kEos = 257;   // "<eos>", an end token
  static constexpr TokenId kTurn = 258;  // "<|turn|>"
  static constexpr TokenId kEnd = 259;   // "<|end|>", an end token
  static constexpr TokenId kVocabulary = 260;

  struct Options {
    bool adds_bos = false;
    bool strips_first_space = false;
  };

  FakeTokenizer() : FakeTokenizer(Options{}) {}
  explicit FakeTokenizer(Options options);

  std::vector<TokenId> Encode(std::string_view text, const text::EncodeOptions& options) const override;
  std::string_view TokenBytes(TokenId id, bool with_special) const override;
  std::string Decode(std::span<const TokenId> ids, bool with_special) const override;
  bool strips_first_space() const override { return options_.strips_first_space; }
  text::TokenKind Kind(TokenId id) const override;
  std::string_view Spelling(TokenId id) const override { return TokenBytes(id, true); }
  std::optional<TokenId> FindSpecial(std::string_view spelling) const override;
  uint32_t vocabulary_size() const override { return kVocabulary; }
  std::optional<TokenId> bos() const override { return kBos; }
  std::optional<TokenId> eos() const override { return kEos; }
  bool adds_bos() const override { return options_.adds_bos; }
  std::span<const TokenId> end_tokens() const override;

 private:
  const Options options_;
  std::array<char, 256> bytes_;
};

}  // namespace cachalot::server
