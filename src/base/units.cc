#include "base/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/ascii.h"

namespace cachalot {
namespace {

using Wide = unsigned __int128;

struct Unit {
  std::string_view name;
  uint64_t bytes;
};

constexpr uint64_t kKi = 1024;
constexpr uint64_t kKilo = 1000;

constexpr std::array kParsed = {
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", kKi},
    Unit{"kib", kKi},
    Unit{"kb", kKilo},
    Unit{"m", kKi* kKi},
    Unit{"mib", kKi* kKi},
    Unit{"mb", kKilo* kKilo},
    Unit{"g", kKi* kKi* kKi},
    Unit{"gib", kKi* kKi* kKi},
    Unit{"gb", kKilo* kKilo* kKilo},
    Unit{"t", kKi* kKi* kKi* kKi},
    Unit{"tib", kKi* kKi* kKi* kKi},
    Unit{"tb", kKilo* kKilo* kKilo* kKilo},
};

constexpr std::array<const char*, 7> kPrinted = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

std::string_view TakeDigits(std::string_view* text) {
  const size_t n = std::find_if_not(text->begin(), text->end(), IsDigit) - text->begin();
  const std::string_view digits = text->substr(0, n);
  text->remove_prefix(n);
  return digits;
}

std::optional<uint64_t> UnitBytes(std::string_view text) {
  const size_t spaces = text.find_first_not_of(' ');
  if (spaces == std::string_view::npos && !text.empty()) return std::nullopt;
  std::string name(text.substr(std::min(spaces, text.size())));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Unit& unit : kParsed) {
    if (unit.name == name) return unit.bytes;
  }
  return std::nullopt;
}

// `digits` as a number; nothing when it is past uint64.
std::optional<uint64_t> WholeNumber(std::string_view digits) {
  Wide value = 0;
  for (const char c : digits) {
    value = value * 10 + static_cast<Wide>(c - '0');
    if (value > std::numeric_limits<uint64_t>::max()) return std::nullopt;
  }
  return static_cast<uint64_t>(value);
}

// 0.<digits> of a unit, rounded down; digits past the 18th cannot matter to a byte.
uint64_t FractionOf(std::string_view digits, uint64_t unit_bytes) {
  Wide numerator = 0;
  Wide denominator = 1;
  for (const char c : digits.substr(0, 18)) {
    numerator = numerator * 10 + static_cast<Wide>(c - '0');
    denominator *= 10;
  }
  return static_cast<uint64_t>(numerator * unit_bytes / denominator);
}

}  // namespace

std::string FormatBytes(uint64_t bytes) {
  size_t unit = 0;
  uint64_t unit_bytes = 1;
  // Steps up as soon as one decimal would round to 1024.0.
  const auto tenths = [&] { return static_cast<uint64_t>((Wide{bytes} * 20 + unit_bytes) / (Wide{unit_bytes} * 2)); };
  while (tenths() >= 10'240) {
    unit_bytes *= kKi;
    ++unit;
  }
  const uint64_t value = tenths();
  if (value % 10 == 0) return fmt::format("{} {}", value / 10, kPrinted[unit]);
  return fmt::format("{}.{} {}", value / 10, value % 10, kPrinted[unit]);
}

Result<uint64_t> ParseBytes(std::string_view text) {
  std::string_view rest = text;
  const std::string_view whole = TakeDigits(&rest);
  std::string_view fraction;
  const bool has_point = !rest.empty() && rest.front() == '.';
  if (has_point) {
    rest.remove_prefix(1);
    fraction = TakeDigits(&rest);
  }
  const std::optional<uint64_t> unit_bytes = UnitBytes(rest);
  if (whole.empty() || (has_point && fraction.empty()) || !unit_bytes) {
    return Invalid(fmt::format("\"{}\" is not a size; expected a number with a unit, such as 512M or 1.5GiB", text));
  }
  const std::optional<uint64_t> units = WholeNumber(whole);
  const Wide bytes = Wide{units.value_or(0)} * *unit_bytes + FractionOf(fraction, *unit_bytes);
  if (!units || bytes > std::numeric_limits<uint64_t>::max()) {
    return Invalid(fmt::format("\"{}\" is more than 2^64 bytes", text));
  }
  return static_cast<uint64_t>(bytes);
}

std::string FormatCount(uint64_t count) {
  std::string out = std::to_string(count);
  for (size_t pos = out.size(); pos > 3; pos -= 3) out.insert(pos - 3, 1, ',');
  return out;
}

}  // namespace cachalot
