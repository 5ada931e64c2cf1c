#include "text/nfc.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "text/flat_map.h"
#include "text/unicode.h"

namespace cachalot::text {
namespace {

struct Decomposition {
  uint32_t whole, first, second;  // second is 0 when there is only one part
  uint8_t composes;
};
struct CombiningRun {
  uint32_t first;
  uint8_t combining_class;
};

#include "text/nfc.inc"

// Hangul syllables decompose and compose by arithmetic (Unicode, 3.12).
constexpr uint32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTrails = 0x11A7;
constexpr uint32_t kLeadCount = 19, kVowelCount = 21, kTrailCount = 28;
constexpr uint32_t kSyllableCount = kLeadCount * kVowelCount * kTrailCount;

uint64_t PairKey(uint32_t first, uint32_t second) { return uint64_t{first} << 32 | second; }

const FlatMap<uint32_t>& Compositions() {
  static const FlatMap<uint32_t>* const map = [] {
    auto* made = new FlatMap<uint32_t>(std::size(kDecompositions));
    for (const Decomposition& d : kDecompositions)
      if (d.composes) made->Set(PairKey(d.first, d.second), d.whole);
    return made;
  }();
  return *map;
}

uint8_t CombiningClass(char32_t c) {
  if (c < 0x300) return 0;
  const auto* after = std::upper_bound(std::begin(kCombiningRuns), std::end(kCombiningRuns), uint32_t{c},
                                       [](uint32_t value, const CombiningRun& run) { return value < run.first; });
  return std::prev(after)->combining_class;
}

struct Mark {
  char32_t code_point;
  uint8_t combining_class;
};

void AppendDecomposed(char32_t c, std::vector<Mark>* out) {
  if (c - kSyllables < kSyllableCount) {
    const uint32_t index = c - kSyllables;
    out->push_back({kLeads + index / (kVowelCount * kTrailCount), 0});
    out->push_back({kVowels + index / kTrailCount % kVowelCount, 0});
    if (index % kTrailCount != 0) out->push_back({kTrails + index % kTrailCount, 0});
    return;
  }
  const auto* found = std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), uint32_t{c},
                                       [](const Decomposition& d, uint32_t value) { return d.whole < value; });
  if (c < 0xC0 || found == std::end(kDecompositions) || found->whole != c) {
    out->push_back({c, CombiningClass(c)});
    return;
  }
  AppendDecomposed(found->first, out);  // Unicode nests decompositions at most four deep
  if (found->second != 0) AppendDecomposed(found->second, out);
}

// 0 when the two do not compose.
char32_t Compose(char32_t first, char32_t second) {
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount)
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTrailCount;
  if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTrailCount == 0 &&
      second - kTrails - 1 < kTrailCount - 1)
    return first + (second - kTrails);
  const uint32_t* whole = Compositions().Find(PairKey(first, second));
  return whole == nullptr ? 0 : *whole;
}

void SortMarks(std::vector<Mark>* text) {
  for (auto begin = text->begin(); begin != text->end();) {
    if (begin->combining_class == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, text->end(), [](const Mark& m) { return m.combining_class == 0; });
    std::stable_sort(begin, end, [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
    begin = end;
  }
}

void ComposeMarks(std::vector<Mark>* text) {
  constexpr size_t kNone = ~size_t{0};
  size_t starter = kNone;
  size_t size = 0;  // text[0, size) is done
  for (const Mark mark : *text) {
    // Blocked when a mark of the same or a higher class, or any other starter, stands between.
    const bool adjacent = starter + 1 == size;
    const bool open = starter != kNone && (adjacent || (*text)[size - 1].combining_class < mark.combining_class);
    const char32_t whole = open ? Compose((*text)[starter].code_point, mark.code_point) : 0;
    if (whole != 0) {
      (*text)[starter].code_point = whole;
      continue;
    }
    if (mark.combining_class == 0) starter = size;
    (*text)[size++] = mark;
  }
  text->resize(size);
}

}  // namespace

bool IsSurelyNfc(std::string_view text) {
  const uint8_t* classes = UnicodeClasses();
  for (size_t pos = 0; pos < text.size();) {
    if (static_cast<unsigned char>(text[pos]) < 0x80) {
      ++pos;
      continue;
    }
    const LaxChar c = DecodeLax(text, pos);
    if (classes[c.code_point] & kMayChangeInNfc) return false;
    pos += c.bytes;
  }
  return true;
}

std::string ToNfc(std::string_view text) {
  std::vector<Mark> marks;
  marks.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const LaxChar c = DecodeLax(text, pos);
    AppendDecomposed(c.code_point, &marks);
    pos += c.bytes;
  }
  SortMarks(&marks);
  ComposeMarks(&marks);
  std::string out;
  out.reserve(text.size());
  for (const Mark& mark : marks) AppendLax(&out, mark.code_point);
  return out;
}

}  // namespace cachalot::text
