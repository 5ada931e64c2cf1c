// Prompt texts of wanted lengths, made of common English words; what a text holds is a function of a key.
// Threads:   pure functions.
// Ownership: none.
// Invariant: equal keys give equal words, and a shorter text is a prefix of a longer one of the same key; different
//            keys give texts that part within a few words.
// Cost:      some nanoseconds per word.
#pragma once

#include <cstdint>
#include <string>

namespace cachalot::load {

// What a text is for: texts of different kinds share nothing.
enum class TextKind : uint32_t { kProbe = 1, kPrefix = 2, kTurn = 3, kTraceBlock = 4 };

struct TextKey {
  uint64_t seed = 0;
  TextKind kind = TextKind::kTurn;
  uint64_t index = 0;
  uint32_t part = 0;  // a further number, e.g. the turn
};

// Random bits that belong to a key alone.
uint64_t BitsOf(const TextKey& key);

// Each word with a space before it.
void AppendWords(const TextKey& key, uint64_t words, std::string* out);

// What the server's tokenizer and template make of words.
struct TokenFit {
  double tokens_per_word = 1;
  double extra_tokens = 0;  // per prompt, whatever its length
  bool measured = false;
};

struct TokenProbe {
  uint64_t words = 0;
  uint64_t prompt_tokens = 0;
};

// The line through two probes; the fallback of one token per word when they do not give a sensible one.
TokenFit FitTokens(const TokenProbe& small, const TokenProbe& large);

// At least 1.
uint64_t WordsFor(double tokens, const TokenFit& fit);

}  // namespace cachalot::load
