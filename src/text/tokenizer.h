// Tokenizer turns text into token ids and back, exactly as the model's own rules say (from GGUF metadata).
// Threads:   immutable; any thread may call any method at once.
// Ownership: owns its tables; the GgufFile may be closed after Create.
// Invariant: Decode(Encode(t)) == t for valid UTF-8 t where the model's rules allow it.
// Cost:      Encode is linear in the text for every input (O(n log n) inside one pre-token).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/token_kind.h"

namespace cachalot::model {
class GgufFile;
}

namespace cachalot::text {

struct VocabData;

struct EncodeOptions {
  bool add_bos = true;        // adds what the model's metadata asks for (add_bos_token / add_eos_token), if anything
  bool parse_special = true;  // control tokens written in the text become their ids; else they are plain text.
                              // User-defined (non-control added) tokens are always matched.
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Reads tokenizer.ggml.*. kInvalid names an unsupported tokenizer model or pre-tokenizer, with those supported,
  // or the metadata that is missing or inconsistent.
  static Result<std::unique_ptr<const Tokenizer>> Create(const model::GgufFile& file);
  // The same from metadata at hand (tests).
  static Result<std::unique_ptr<const Tokenizer>> Create(const VocabData& data);

  virtual std::vector<TokenId> Encode(std::string_view text, const EncodeOptions& options) const = 0;

  // The bytes of one token; may be part of a UTF-8 character. Control tokens give "" unless `with_special`.
  virtual std::string_view TokenBytes(TokenId id, bool with_special) const = 0;
  // Bytes of all tokens, including what the rules strip at the start (SentencePiece's leading space).
  virtual std::string Decode(std::span<const TokenId> ids, bool with_special) const = 0;
  // Whether Encode put a space before the text that Decode drops again at its start (SentencePiece's add_space_prefix).
  virtual bool strips_first_space() const = 0;

  virtual TokenKind Kind(TokenId id) const = 0;
  // The token's own spelling in the vocabulary (e.g. "<|im_end|>"), for templates and messages.
  virtual std::string_view Spelling(TokenId id) const = 0;
  // The id of a special token by spelling.
  virtual std::optional<TokenId> FindSpecial(std::string_view spelling) const = 0;

  virtual uint32_t vocabulary_size() const = 0;
  virtual std::optional<TokenId> bos() const = 0;
  virtual std::optional<TokenId> eos() const = 0;
  virtual bool adds_bos() const = 0;
  // Tokens that end a generation: eos, eot, and the well-known end-of-turn spellings of the vocabulary; sorted.
  virtual std::span<const TokenId> end_tokens() const = 0;
};

}  // namespace cachalot::text
