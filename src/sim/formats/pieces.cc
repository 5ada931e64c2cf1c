#include "sim/formats/pieces.h"

#include "base/ascii.h"
#include "base/hash.h"
#include "base/utf8.h"

namespace cachalot::sim {
namespace {

constexpr size_t kMostLetters = 8, kMostDigits = 3;

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Where the run of such characters from `at` on ends, at most so many of them.
template <class Is>
size_t EndOfRun(std::string_view text, size_t at, size_t most, Is is) {
  size_t end = at;
  while (end < text.size() && end - at < most && is(text[end])) ++end;
  return end;
}

size_t EndOfPiece(std::string_view text, size_t begin) {
  const size_t after_blank = begin + (text[begin] == ' ' ? 1 : 0);
  if (after_blank < text.size() && IsLetter(text[after_blank])) {
    return EndOfRun(text, after_blank, kMostLetters, IsLetter);
  }
  if (IsDigit(text[begin])) return EndOfRun(text, begin, kMostDigits, IsDigit);
  if (IsBlank(text[begin])) {
    const size_t end = EndOfRun(text, begin, text.size(), IsBlank);
    // The last blank of a run belongs to the word behind it.
    const bool word_follows = end < text.size() && IsLetter(text[end]) && text[end - 1] == ' ';
    return word_follows && end - begin > 1 ? end - 1 : end;
  }
  return begin + DecodeUtf8(text, begin).bytes;
}

}  // namespace

std::vector<uint32_t> PieceWords(std::string_view text) {
  std::vector<uint32_t> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = EndOfPiece(text, begin);
    words.push_back(static_cast<uint32_t>(Hash64(text.substr(begin, end - begin)) >> 32));
    begin = end;
  }
  return words;
}

}  // namespace cachalot::sim
