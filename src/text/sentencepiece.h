// SentencePiece is SentencePiece's BPE: characters are merged to the piece of the best score, then what is no piece is
// written as bytes.
// Threads:   immutable; any thread may call Encode at once.
// Ownership: owns its tables; borrows the Vocab.
// Invariant: ids equal llama.cpp's on any bytes, and on valid UTF-8 those of Hugging Face tokenizers with merges in the
//            order of the scores. They differ where a control token's spelling could be merged from plain text: never
//            here, as in SentencePiece itself.
// Cost:      linear in the text but for one log inside a segment (see Encode).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/flat_map.h"
#include "text/fragment_encoder.h"
#include "text/pair_merger.h"
#include "text/vocab.h"

namespace cachalot::text {

class SentencePiece final : public FragmentEncoder {
 public:
  // `vocab` must outlive the result. kInvalid when there are no usable scores, or some of the 256 byte tokens but not
  // all, or none of them and no unknown token either.
  static Result<std::unique_ptr<const SentencePiece>> Create(const Vocab& vocab, const VocabData& data);

  // Spaces become U+2581, and one more stands before a fragment at the start if the vocabulary asks for it. A character
  // is what its lead byte says, cut at the end of the text, so that broken UTF-8 falls back to its bytes.
  // The text is merged in segments: between two characters that stand side by side in no piece nothing can merge.
  void Encode(std::string_view fragment, bool at_start, EncodeRun* run) const override;

  bool adds_space_prefix() const { return adds_space_prefix_; }

 private:
  SentencePiece(const Vocab& vocab, bool adds_space_prefix);
  Status AddFallback();
  void AddCharacters();
  void AddMerges(const VocabData& data);
  void AddPiece(TokenId piece, uint32_t rank);
  // The segment that begins there, and the symbols of its characters.
  std::string_view NextSegment(std::string_view text, size_t begin, std::vector<Symbol>* symbols) const;
  // Ids of a merged segment. `after_unknown`: the last id was for unknown characters, which more of them join.
  void AppendIds(std::string_view segment, const std::vector<Symbol>& symbols, bool* after_unknown,
                 std::vector<TokenId>* out) const;

  // A character's bytes and their number in one key.
  static uint64_t CharKey(std::string_view text, size_t pos);
  Symbol SymbolOf(uint64_t char_key) const;
  static size_t PairBit(uint64_t left_key, uint64_t right_key);

  const Vocab& vocab_;
  bool adds_space_prefix_;
  std::optional<std::array<TokenId, 256>> byte_tokens_;  // else unknown characters are the unknown token
  FlatMap<Symbol> characters_;                           // of pieces; those that are no piece are numbered past the ids
  MergeTable merges_;
  std::vector<uint64_t> pair_bits_;  // which hashed pairs of characters stand side by side in a piece
};

}  // namespace cachalot::text
