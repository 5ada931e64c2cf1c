// A pre-tokenizer cuts text into the pieces inside which byte-level BPE merges.
// Threads:   pure functions.
// Ownership: none.
// Invariant: pieces tile the text; on valid UTF-8 their ends are those of the regular expressions in published
//            tokenizer.json files, by Unicode 16.0 (equal to Hugging Face tokenizers 0.23.3).
// Cost:      linear in the text: every character is looked at a bounded number of times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cachalot::text {

enum class PreTokenizer : uint8_t {
  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  // Every number by itself (\p{N}, here by Unicode 17.0), then kGpt2 on what is between.
  kSmollm,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  kQwen2,
  // As kQwen2, but \p{N}{1,3}
  kLlama3,
};

// By its name in tokenizer.ggml.pre. "default" is none of them: converters write it when they do not know the rules.
std::optional<PreTokenizer> FindPreTokenizer(std::string_view name);
// "gpt-2, smollm, ..." for messages.
std::string SupportedPreTokenizers();

// Where the piece that begins at `begin` ends. Requires begin < text.size(), at the end of another piece or 0. Reads
// invalid UTF-8 as DecodeLax does.
size_t PreTokenEnd(PreTokenizer kind, std::string_view text, size_t begin);

}  // namespace cachalot::text
