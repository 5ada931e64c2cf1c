#include "text/pretokenizer.h"

#include "text/unicode.h"

namespace cachalot::text {
namespace {

struct NamedPreTokenizer {
  std::string_view name;
  PreTokenizer kind;
};
constexpr NamedPreTokenizer kNames[] = {
    {"gpt-2", PreTokenizer::kGpt2},       {"smollm", PreTokenizer::kSmollm}, {"qwen2", PreTokenizer::kQwen2},
    {"llama-bpe", PreTokenizer::kLlama3}, {"llama3", PreTokenizer::kLlama3}, {"llama-v3", PreTokenizer::kLlama3},
};

constexpr uint8_t kPastEnd = 0xFF;  // the class of what follows the last character
constexpr auto kOther = static_cast<uint8_t>(CharClass::kOther);
constexpr auto kLetter = static_cast<uint8_t>(CharClass::kLetter);
constexpr auto kNumber = static_cast<uint8_t>(CharClass::kNumber);
constexpr auto kSpace = static_cast<uint8_t>(CharClass::kSpace);

struct Char {
  char32_t code_point;
  uint8_t char_class;  // or kPastEnd
  size_t end;          // where the next character begins
};

class Scanner {
 public:
  // `numbers_cut`: the text was cut before and after each number, as kSmollm does, so that a number follows in another
  // text. That cut goes by Unicode 17.0.
  Scanner(std::string_view text, bool numbers_cut)
      : text_(text), classes_(UnicodeClasses()), numbers_cut_(numbers_cut) {}

  bool numbers_cut() const { return numbers_cut_; }

  Char At(size_t pos) const {
    if (pos >= text_.size()) return {0, kPastEnd, pos};
    const auto byte = static_cast<unsigned char>(text_[pos]);
    if (byte < 0x80) return {byte, static_cast<uint8_t>(classes_[byte] & kClassMask), pos + 1};
    const LaxChar c = DecodeLax(text_, pos);
    const uint8_t bits = classes_[c.code_point];
    const bool newer_number = numbers_cut_ && (bits & kNumberSince17) != 0;
    return {c.code_point, newer_number ? kNumber : static_cast<uint8_t>(bits & kClassMask), pos + c.bytes};
  }

  // The end of the longest run of one class that begins at `pos`.
  size_t RunEnd(size_t pos, uint8_t char_class) const {
    for (Char c = At(pos); c.char_class == char_class; c = At(pos)) pos = c.end;
    return pos;
  }

  size_t NewlinesEnd(size_t pos) const {
    while (pos < text_.size() && (text_[pos] == '\r' || text_[pos] == '\n')) ++pos;
    return pos;
  }

  // \s+(?!\S)|\s+ at a space: the run of spaces without its last, which goes with what follows, unless nothing does or
  // the last is the only one.
  size_t SpacesEnd(size_t pos) const {
    const size_t first_end = At(pos).end;
    size_t last = pos;
    Char c = At(pos);
    while (c.char_class == kSpace) {
      last = pos;
      pos = c.end;
      c = At(pos);
    }
    const bool something_follows = c.char_class != kPastEnd && !(numbers_cut_ && c.char_class == kNumber);
    return something_follows && last >= first_end ? last : pos;
  }

  // \s*[\r\n]+ at a space: past the last line break of the run of spaces; `pos` when there is none.
  size_t LineBreaksEnd(size_t pos) const {
    size_t end = pos;
    for (Char c = At(pos); c.char_class == kSpace; c = At(c.end))
      if (c.code_point == '\r' || c.code_point == '\n') end = c.end;
    return end;
  }

  // 's|'t|'re|'ve|'m|'ll|'d at an apostrophe; `pos` when none of them is there.
  size_t ContractionEnd(size_t pos, bool any_case) const {
    const Char first = At(pos + 1);
    const char32_t a = Fold(first.code_point, any_case);
    if (first.char_class == kPastEnd) return pos;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return first.end;
    const Char second = At(first.end);
    const char32_t b = Fold(second.code_point, any_case);
    if (second.char_class != kPastEnd && ((b == 'e' && (a == 'r' || a == 'v')) || (b == 'l' && a == 'l')))
      return second.end;
    return pos;
  }

 private:
  static char32_t Fold(char32_t c, bool any_case) {
    if (!any_case) return c;
    // U+017F, the long s, is the only other character that folds to one of these letters.
    return c == 0x17F ? U's' : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
  }

  std::string_view text_;
  const uint8_t* classes_;
  bool numbers_cut_;
};

size_t Gpt2End(const Scanner& scan, size_t begin) {
  const Char first = scan.At(begin);
  if (first.code_point == '\'')
    if (const size_t end = scan.ContractionEnd(begin, /*any_case=*/false); end != begin) return end;
  if (scan.numbers_cut() && first.char_class == kNumber) return first.end;
  const bool spaced = first.code_point == ' ';
  const Char word = spaced ? scan.At(first.end) : first;
  const bool word_may_follow =
      word.char_class == kLetter || word.char_class == kOther || (word.char_class == kNumber && !scan.numbers_cut());
  if (word_may_follow) return scan.RunEnd(word.end, word.char_class);
  return scan.SpacesEnd(begin);
}

size_t Llama3End(const Scanner& scan, size_t begin, int max_digits) {
  const Char first = scan.At(begin);
  if (first.code_point == '\'')
    if (const size_t end = scan.ContractionEnd(begin, /*any_case=*/true); end != begin) return end;
  if (first.char_class == kLetter) return scan.RunEnd(first.end, kLetter);
  if (first.char_class == kNumber) {
    size_t end = first.end;
    for (int digits = 1; digits < max_digits; ++digits) {
      const Char next = scan.At(end);
      if (next.char_class != kNumber) break;
      end = next.end;
    }
    return end;
  }
  const Char second = scan.At(first.end);
  if (second.char_class == kLetter && first.code_point != '\r' && first.code_point != '\n')
    return scan.RunEnd(second.end, kLetter);
  const Char& other = first.code_point == ' ' ? second : first;
  if (other.char_class == kOther) return scan.NewlinesEnd(scan.RunEnd(other.end, kOther));
  if (const size_t end = scan.LineBreaksEnd(begin); end != begin) return end;
  return scan.SpacesEnd(begin);
}

}  // namespace

std::optional<PreTokenizer> FindPreTokenizer(std::string_view name) {
  for (const NamedPreTokenizer& named : kNames)
    if (named.name == name) return named.kind;
  return std::nullopt;
}

std::string SupportedPreTokenizers() {
  std::string out;
  for (const NamedPreTokenizer& named : kNames) out += (out.empty() ? "" : ", ") + std::string(named.name);
  return out;
}

size_t PreTokenEnd(PreTokenizer kind, std::string_view text, size_t begin) {
  const Scanner scan(text, /*numbers_cut=*/kind == PreTokenizer::kSmollm);
  switch (kind) {
    case PreTokenizer::kGpt2:
    case PreTokenizer::kSmollm: return Gpt2End(scan, begin);
    case PreTokenizer::kQwen2: return Llama3End(scan, begin, /*max_digits=*/1);
    case PreTokenizer::kLlama3: return Llama3End(scan, begin, /*max_digits=*/3);
  }
  return text.size();
}

}  // namespace cachalot::text
