// Vocab is the checked table of a tokenizer's tokens; VocabData is the metadata it is made from, as the file states it.
// Threads:   a Vocab is immutable; any thread may read.
// Ownership: VocabData holds views into the model file; a Vocab owns copies of all it needs.
// Invariant: every token has a kind; spellings are unique but for empty ones; all ids are in range.
// Cost:      Build is linear in the bytes of the spellings.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/spelling_index.h"
#include "text/string_table.h"
#include "text/token_kind.h"

namespace cachalot::model {
class GgufFile;
}

namespace cachalot::text {

struct VocabData {
  std::string_view model;  // "gpt2": byte-level BPE; "llama": SentencePiece BPE
  std::string_view pre;    // the pre-tokenizer of a "gpt2" model
  std::vector<std::string_view> tokens;
  std::vector<int64_t> token_types;      // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte; or empty
  std::vector<float> scores;             // or empty
  std::vector<std::string_view> merges;  // "left right", first come first merged
  std::optional<uint64_t> bos, eos, unknown, end_of_turn, end_of_message;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

// The tokenizer.ggml.* keys. kInvalid when one has another type than it must have.
Result<VocabData> ReadVocabData(const model::GgufFile& file);

// A longer spelling is refused: the longest real ones have a tenth of it, and it bounds what a hostile file can cost.
inline constexpr size_t kMaxSpellingBytes = 1024;

class Vocab {
 public:
  // kInvalid names what is missing or inconsistent.
  static Result<Vocab> Build(const VocabData& data);

  uint32_t size() const { return static_cast<uint32_t>(kinds_.size()); }
  // Requires id < size(), as all below.
  std::string_view spelling(TokenId id) const { return spellings_[id]; }
  TokenKind kind(TokenId id) const { return kinds_[id]; }
  // Whether merging plain text may give this token: not if it is control, unknown or a byte, so that no text becomes a
  // control token unless the caller asks for it.
  bool IsText(TokenId id) const {
    return kinds_[id] == TokenKind::kNormal || kinds_[id] == TokenKind::kUserDefined ||
           kinds_[id] == TokenKind::kUnused;
  }

  std::optional<TokenId> Find(std::string_view spelling) const { return index_.Find(spelling); }
  const SpellingIndex& index() const { return index_; }

  std::optional<TokenId> bos() const { return bos_; }
  std::optional<TokenId> eos() const { return eos_; }
  std::optional<TokenId> unknown() const { return unknown_; }
  // Sorted: eos, end of turn, end of message, and tokens with a well-known spelling of that meaning.
  std::span<const TokenId> end_tokens() const { return end_tokens_; }

 private:
  Vocab() : index_(0) {}
  Status AddTokens(const VocabData& data);
  Status AddKinds(const VocabData& data);
  Status AddIds(const VocabData& data);
  void AddEndTokens(std::optional<TokenId> end_of_turn, std::optional<TokenId> end_of_message);

  StringTable spellings_;
  std::vector<TokenKind> kinds_;
  SpellingIndex index_;
  std::optional<TokenId> bos_, eos_, unknown_;
  std::vector<TokenId> end_tokens_;
};

// "<0x41>" is 0x41; nothing for any other spelling.
std::optional<uint8_t> ByteOfSpelling(std::string_view spelling);

// A spelling for messages: in quotes, what is not printable ASCII or valid UTF-8 escaped, cut after 60 bytes.
std::string Quote(std::string_view spelling);

}  // namespace cachalot::text
