// Bpe is byte-level BPE: pre-tokenize, write each byte as a token, then merge pairs by rank.
// Threads:   immutable; any thread may call Encode at once.
// Ownership: owns its merge table; the word index borrows the strings it was made from.
// Invariant: ids equal Hugging Face tokenizers' on valid UTF-8 and llama.cpp's on any other text (see Encode).
// Cost:      linear in the text but for one log inside a pre-token.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/fragment_encoder.h"
#include "text/pair_merger.h"
#include "text/pretokenizer.h"
#include "text/vocab.h"

namespace cachalot::text {

class Bpe final : public FragmentEncoder {
 public:
  // `texts` holds what each token stands for (see ByteLevelText); both must outlive the result. kInvalid for an
  // unsupported pre-tokenizer and for merges that do not fit the vocabulary.
  static Result<std::unique_ptr<const Bpe>> Create(const Vocab& vocab, const StringTable& texts, const VocabData& data);

  // Text that is not valid UTF-8 is read as llama.cpp reads it: what is broken becomes U+FFFD, one for each byte, while
  // overlong forms and surrogates count as the characters that they spell.
  // A byte without a token of its own is left out before merging, as Hugging Face does when there is no unknown token:
  // SmolLM2 has none for 21 of the 256.
  void Encode(std::string_view fragment, bool at_start, EncodeRun* run) const override;

 private:
  Bpe(PreTokenizer kind, size_t merges) : kind_(kind), merges_(merges) {}
  Status AddMerges(const Vocab& vocab, const VocabData& data);
  void AddWords(const Vocab& vocab, const StringTable& texts);
  void EncodeWord(std::string_view word, EncodeRun* run) const;

  PreTokenizer kind_;
  std::array<Symbol, 256> byte_symbols_;
  MergeTable merges_;
  std::optional<SpellingIndex> words_;  // set where a pre-token that is a token is taken as it is (`ignore_merges`)
};

// What a byte-level spelling stands for: "Ġa" is " a". A spelling with other characters in it stands for itself.
std::string ByteLevelText(std::string_view spelling);

}  // namespace cachalot::text
