#include "text/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

namespace cachalot::text {
namespace {

struct ClassRun {
  uint32_t first;
  uint8_t bits;
};

#include "text/unicode_class.inc"

using ClassTable = std::array<uint8_t, kCodePointLimit>;

std::unique_ptr<const ClassTable> MakeTable() {
  auto table = std::make_unique<ClassTable>();
  for (size_t i = 0; i < std::size(kClassRuns); ++i) {
    const uint32_t end = i + 1 < std::size(kClassRuns) ? kClassRuns[i + 1].first : uint32_t{kCodePointLimit};
    std::fill(table->begin() + kClassRuns[i].first, table->begin() + end, kClassRuns[i].bits);
  }
  return table;
}

}  // namespace

const uint8_t* UnicodeClasses() {
  static const std::unique_ptr<const ClassTable> table = MakeTable();
  return table->data();
}

void AppendLax(std::string* out, char32_t code_point) {
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  const uint32_t c = code_point;
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

std::string ReadLax(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (size_t pos = 0; pos < text.size();) {
    const LaxChar c = DecodeLax(text, pos);
    AppendLax(&out, c.code_point);
    pos += c.bytes;
  }
  return out;
}

}  // namespace cachalot::text
