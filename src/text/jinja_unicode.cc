#include "text/jinja_unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.h"

namespace cachalot::text::jinja {
namespace {

struct CodeRun {
  char32_t first, last;
  uint32_t stride;
};
struct CaseRun {
  char32_t first, last;
  uint32_t stride;
  int32_t delta;
};
struct CaseFull {
  char32_t from;
  char32_t to[3];  // zero-terminated when shorter
};

#include "text/jinja_unicode_tables.inc"

template <class Run, size_t N>
const Run* FindRun(const Run (&runs)[N], char32_t c) {
  const Run* run = std::lower_bound(std::begin(runs), std::end(runs), c,
                                    [](const Run& r, char32_t value) { return r.last < value; });
  if (run == std::end(runs) || c < run->first || (c - run->first) % run->stride != 0) return nullptr;
  return run;
}

template <size_t N>
bool InRuns(const CodeRun (&runs)[N], char32_t c) {
  return FindRun(runs, c) != nullptr;
}

template <size_t N, size_t M>
void AppendMapped(std::string* out, char32_t c, const CaseRun (&runs)[N], const CaseFull (&full)[M]) {
  if (const CaseRun* run = FindRun(runs, c)) {
    AppendUtf8(out, static_cast<char32_t>(static_cast<int32_t>(c) + run->delta));
    return;
  }
  const CaseFull* found = std::lower_bound(std::begin(full), std::end(full), c,
                                           [](const CaseFull& f, char32_t value) { return f.from < value; });
  if (found == std::end(full) || found->from != c) {
    AppendUtf8(out, c);
    return;
  }
  for (char32_t mapped : found->to) {
    if (mapped != 0) AppendUtf8(out, mapped);
  }
}

void AppendUpper(std::string* out, char32_t c) { AppendMapped(out, c, kToUpperRuns, kToUpperFull); }
void AppendTitle(std::string* out, char32_t c) { AppendMapped(out, c, kToTitleRuns, kToTitleFull); }

constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kSmallSigma = 0x3C3;
constexpr char32_t kFinalSigma = 0x3C2;

bool IsCased(char32_t c) { return IsLower(c) || IsUpper(c) || IsTitle(c); }

// Whether the capital sigma at [pos, pos + 2) ends a word: a cased letter before it and none after it, where
// case-ignorable characters do not count.
bool SigmaIsFinal(std::string_view text, size_t pos) {
  size_t i = pos;
  bool cased_before = false;
  while (i > 0) {
    i = PreviousChar(text, i);
    const char32_t c = DecodeUtf8(text, i).code_point;
    if (InRuns(kCaseIgnorable, c)) continue;
    cased_before = IsCased(c);
    break;
  }
  if (!cased_before) return false;
  for (i = pos + 2; i < text.size();) {
    const Utf8Char next = DecodeUtf8(text, i);
    if (!InRuns(kCaseIgnorable, next.code_point)) return !IsCased(next.code_point);
    i += next.bytes;
  }
  return true;
}

void AppendLower(std::string* out, std::string_view text, size_t pos, char32_t c) {
  if (c == kCapitalSigma) {
    AppendUtf8(out, SigmaIsFinal(text, pos) ? kFinalSigma : kSmallSigma);
    return;
  }
  AppendMapped(out, c, kToLowerRuns, kToLowerFull);
}

// Calls f(position, character) for each character.
template <class F>
void ForEachChar(std::string_view text, F&& f) {
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    f(pos, c.code_point);
    pos += c.bytes;
  }
}

}  // namespace

bool IsSpace(char32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsLineBreak(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool IsAlpha(char32_t c) { return InRuns(kAlpha, c); }
bool IsDecimal(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : InRuns(kDecimal, c); }
bool IsDigit(char32_t c) { return IsDecimal(c) || (c >= 0x80 && InRuns(kDigitNotDecimal, c)); }
bool IsNumeric(char32_t c) { return IsDigit(c) || (c >= 0x80 && InRuns(kNumericNotDigit, c)); }
bool IsAlnum(char32_t c) { return IsAlpha(c) || IsNumeric(c); }
bool IsLower(char32_t c) { return c < 0x80 ? c >= 'a' && c <= 'z' : InRuns(kLower, c); }
bool IsUpper(char32_t c) { return c < 0x80 ? c >= 'A' && c <= 'Z' : InRuns(kUpper, c); }
bool IsTitle(char32_t c) { return InRuns(kTitle, c); }
bool IsPrintable(char32_t c) { return c < 0x80 ? c >= 32 && c < 127 : !InRuns(kNotPrintable, c); }
bool IsIdStart(char32_t c) { return IsAlpha(c) != InRuns(kIdStartDiffersFromAlpha, c); }
bool IsIdContinue(char32_t c) { return IsAlnum(c) != InRuns(kIdContinueDiffersFromAlnum, c); }

std::string ToUpper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEachChar(text, [&](size_t, char32_t c) { AppendUpper(&out, c); });
  return out;
}

std::string ToLower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEachChar(text, [&](size_t pos, char32_t c) { AppendLower(&out, text, pos, c); });
  return out;
}

std::string ToTitle(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_word = false;
  ForEachChar(text, [&](size_t pos, char32_t c) {
    in_word ? AppendLower(&out, text, pos, c) : AppendTitle(&out, c);
    in_word = IsCased(c);
  });
  return out;
}

std::string Capitalize(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEachChar(text, [&](size_t pos, char32_t c) { pos == 0 ? AppendTitle(&out, c) : AppendLower(&out, text, pos, c); });
  return out;
}

std::string SwapCase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEachChar(text, [&](size_t pos, char32_t c) {
    if (IsUpper(c)) {
      AppendLower(&out, text, pos, c);
    } else if (IsLower(c)) {
      AppendUpper(&out, c);
    } else {
      AppendUtf8(&out, c);
    }
  });
  return out;
}

std::string FoldCase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEachChar(text, [&](size_t, char32_t c) { AppendMapped(&out, c, kFoldCaseRuns, kFoldCaseFull); });
  return out;
}

std::string EscapedCode(char32_t c) {
  const auto code = static_cast<uint32_t>(c);
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

size_t CountChars(std::string_view text) {
  size_t count = 0;
  ForEachChar(text, [&](size_t, char32_t) { ++count; });
  return count;
}

size_t CharOffset(std::string_view text, size_t index) {
  size_t pos = 0;
  while (index > 0 && pos < text.size()) {
    pos += DecodeUtf8(text, pos).bytes;
    --index;
  }
  return pos;
}

size_t PreviousChar(std::string_view text, size_t end) {
  const size_t limit = end > 4 ? end - 4 : 0;
  for (size_t start = end - 1;; --start) {
    if ((static_cast<unsigned char>(text[start]) & 0xC0) != 0x80 || start == limit) {
      return start + DecodeUtf8(text, start).bytes == end ? start : end - 1;
    }
  }
}

}  // namespace cachalot::text::jinja
