// SmallVocab builds the metadata of small vocabularies, by hand or from tests/data/text.
// Threads:   one test, one thread.
// Ownership: owns the strings that data() views.
// Invariant: token ids are in the order of the calls.
// Cost:      one small string per token.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "text/vocab.h"

namespace cachalot::text {

// GGUF's numbers of token types.
enum TokenType : int64_t { kNormalType = 1, kUnknownType, kControlType, kUserDefinedType, kUnusedType, kByteType };

class SmallVocab {
 public:
  explicit SmallVocab(std::string_view model, std::string_view pre = "") {
    data_.model = Keep(model);
    data_.pre = Keep(pre);
  }

  // A token of every byte, spelled as byte-level BPE spells it, then the result of each merge ("a b"), in order.
  static SmallVocab ByteLevel(std::string_view pre, std::initializer_list<std::string_view> merges) {
    SmallVocab vocab("gpt2", pre);
    for (uint32_t byte = 0, next = 256; byte < 256; ++byte) {
      const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      vocab.Token(Utf8Of(itself ? byte : next++));
    }
    for (std::string_view merge : merges) vocab.Merge(merge);
    return vocab;
  }

  // <unk>, <s>, </s>, the 256 byte tokens, then pieces, the best first.
  static SmallVocab Pieces(std::initializer_list<std::string_view> pieces) {
    SmallVocab vocab("llama");
    vocab.Token("<unk>", kUnknownType).Token("<s>", kControlType).Token("</s>", kControlType);
    for (int byte = 0; byte < 256; ++byte) {
      constexpr char kHex[] = "0123456789ABCDEF";
      vocab.Token(std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">", kByteType);
    }
    float score = 0;
    for (std::string_view piece : pieces) vocab.Token(piece, kNormalType, score -= 1);
    vocab.data_.unknown = 0;
    vocab.data_.bos = 1;
    vocab.data_.eos = 2;
    return vocab;
  }

  SmallVocab& Token(std::string_view spelling, int64_t type = kNormalType, float score = 0) {
    data_.tokens.push_back(Keep(spelling));
    data_.token_types.push_back(type);
    if (data_.model == "llama") data_.scores.push_back(score);
    return *this;
  }

  // Also adds the token that the merge makes.
  SmallVocab& Merge(std::string_view merge) {
    data_.merges.push_back(Keep(merge));
    const size_t space = merge.find(' ');
    return Token(std::string(merge.substr(0, space)).append(merge.substr(space + 1)));
  }

  std::string_view Keep(std::string_view text) { return strings_.emplace_back(text); }

  VocabData& data() { return data_; }
  uint32_t size() const { return static_cast<uint32_t>(data_.tokens.size()); }

 private:
  static std::string Utf8Of(uint32_t code_point) {
    if (code_point < 0x80) return {static_cast<char>(code_point)};
    return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
  }

  std::deque<std::string> strings_;  // never move
  VocabData data_;
};

}  // namespace cachalot::text
