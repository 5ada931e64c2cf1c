#include "sim/formats/fields.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/trimmed.h"
#include "base/utf8.h"

namespace cachalot::sim {
namespace {

constexpr double kMaxMilliseconds = 1e12;  // some thirty years

// For messages: text from a file, of which nobody knows what and how much it is.
std::string Quoted(std::string_view text) {
  constexpr size_t kMostBytes = 40;
  return fmt::format("\"{}{}\"", ReplaceInvalidUtf8(text.substr(0, kMostBytes)), text.size() > kMostBytes ? "..." : "");
}

Status CheckTokens(uint64_t tokens, bool negative, std::string_view shown, std::string_view key,
                   const TraceLimits& limits) {
  if (!negative && tokens >= limits.least_tokens && tokens <= limits.most_tokens) return OkStatus();
  return Invalid(fmt::format("\"{}\": expected a number of tokens from {} to {}, got {}", key, limits.least_tokens,
                             limits.most_tokens, shown));
}

// The number that `text` begins with, of exactly so many digits; the text goes on behind it.
std::optional<int> Digits(std::string_view* text, size_t digits) {
  int number = 0;
  if (text->size() < digits) return std::nullopt;
  for (size_t i = 0; i < digits; ++i) {
    const char c = (*text)[i];
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  text->remove_prefix(digits);
  return number;
}

bool Skip(std::string_view* text, char c) {
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

// ".9799600" and the like; digits beyond nanoseconds are dropped.
std::optional<Nanos> Fraction(std::string_view* text) {
  int64_t nanos = 0, unit = 100'000'000;
  if (!Skip(text, '.') && !Skip(text, ',')) return Nanos(0);
  size_t digits = 0;
  for (; digits < text->size() && (*text)[digits] >= '0' && (*text)[digits] <= '9'; ++digits, unit /= 10) {
    nanos += ((*text)[digits] - '0') * unit;
  }
  if (digits == 0) return std::nullopt;
  text->remove_prefix(digits);
  return Nanos(nanos);
}

// "", "Z", "+01:00" or "+0100": what local time is ahead.
std::optional<std::chrono::minutes> Offset(std::string_view text) {
  if (text.empty() || text == "Z" || text == "z") return std::chrono::minutes(0);
  const bool behind = text.front() == '-';
  if (!Skip(&text, '+') && !Skip(&text, '-')) return std::nullopt;
  const std::optional<int> hours = Digits(&text, 2);
  Skip(&text, ':');
  const std::optional<int> minutes = Digits(&text, 2);
  if (!hours || !minutes || !text.empty() || *hours > 23 || *minutes > 59) return std::nullopt;
  return std::chrono::minutes((behind ? -1 : 1) * (*hours * 60 + *minutes));
}

std::optional<Nanos> DateTime(std::string_view text) {
  const std::optional<int> year = Digits(&text, 4);
  const bool after_year = Skip(&text, '-');
  const std::optional<int> month = Digits(&text, 2);
  const bool after_month = Skip(&text, '-');
  const std::optional<int> day = Digits(&text, 2);
  const bool after_day = Skip(&text, ' ') || Skip(&text, 'T');
  const std::optional<int> hour = Digits(&text, 2);
  const bool after_hour = Skip(&text, ':');
  const std::optional<int> minute = Digits(&text, 2);
  const bool after_minute = Skip(&text, ':');
  const std::optional<int> second = Digits(&text, 2);
  if (!year || !after_year || !month || !after_month || !day || !after_day || !hour || !after_hour || !minute ||
      !after_minute || !second) {
    return std::nullopt;
  }
  const std::optional<Nanos> fraction = Fraction(&text);
  const std::optional<std::chrono::minutes> offset = Offset(text);
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!fraction || !offset || !date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  if (*year < 1970 || *year > 2200) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second) + *fraction - *offset;
}

}  // namespace

Result<Json> ParseObject(std::string_view line) {
  CACHALOT_ASSIGN_OR_RETURN(Json object, ParseJson(line));
  if (object.AsObject() == nullptr) return Invalid(fmt::format("expected an object, got {}", object.TypeName()));
  return object;
}

Result<const Json*> Member(const Json& object, std::string_view key) {
  const Json* value = object.Find(key);
  if (value == nullptr) return Invalid(fmt::format("\"{}\" is missing", key));
  return value;
}

Result<uint64_t> TokenCount(const Json& value, std::string_view key, const TraceLimits& limits) {
  const int64_t* count = value.AsInt();
  if (count == nullptr) {
    const std::string got = value.AsNumber() ? value.Dump() : std::string(value.TypeName());
    return Invalid(fmt::format("\"{}\": expected a whole number of tokens from {} to {}, got {}", key,
                               limits.least_tokens, limits.most_tokens, got));
  }
  CACHALOT_RETURN_IF_ERROR(CheckTokens(static_cast<uint64_t>(*count), *count < 0, std::to_string(*count), key, limits));
  return static_cast<uint64_t>(*count);
}

Result<uint64_t> TokenMember(const Json& object, std::string_view key, const TraceLimits& limits) {
  CACHALOT_ASSIGN_OR_RETURN(const Json* value, Member(object, key));
  return TokenCount(*value, key, limits);
}

Result<uint64_t> OptionalId(const Json& object, std::string_view key) {
  const Json* value = object.Find(key);
  if (value == nullptr) return uint64_t{0};
  if (value->AsInt() == nullptr || *value->AsInt() < 0) {
    return Invalid(fmt::format("\"{}\": expected an integer of at least 0, got {}", key, Quoted(value->Dump())));
  }
  return static_cast<uint64_t>(*value->AsInt());
}

Result<Nanos> MillisecondMember(const Json& object, std::string_view key) {
  CACHALOT_ASSIGN_OR_RETURN(const Json* value, Member(object, key));
  const std::optional<double> milliseconds = value->AsNumber();
  if (!milliseconds || !(*milliseconds >= 0 && *milliseconds <= kMaxMilliseconds)) {
    return Invalid(fmt::format("\"{}\": expected milliseconds from 0 to {:g}, got {}", key, kMaxMilliseconds,
                               milliseconds ? value->Dump() : value->TypeName()));
  }
  return Nanos(static_cast<int64_t>(std::llround(*milliseconds * 1e6)));
}

Result<std::vector<std::string_view>> SplitColumns(std::string_view line) {
  if (line.find('"') != std::string_view::npos) return Invalid("expected columns without quotes");
  std::vector<std::string_view> columns;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(',', begin), line.size());
    columns.push_back(Trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return columns;
}

Result<uint64_t> TokenColumn(std::string_view text, std::string_view name, const TraceLimits& limits) {
  uint64_t tokens = 0;
  const bool negative = !text.empty() && text.front() == '-';
  const auto [end, error] = std::from_chars(text.data() + negative, text.data() + text.size(), tokens);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
    return Invalid(fmt::format("\"{}\": expected a number of tokens, got {}", name, Quoted(text)));
  }
  CACHALOT_RETURN_IF_ERROR(CheckTokens(tokens, negative || error != std::errc(), Quoted(text), name, limits));
  return tokens;
}

Result<Nanos> SecondsColumn(std::string_view text, std::string_view name) {
  double seconds = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(seconds >= 0 && seconds <= kMaxMilliseconds / 1e3)) {
    return Invalid(
        fmt::format("\"{}\": expected seconds from 0 to {:g}, got {}", name, kMaxMilliseconds / 1e3, Quoted(text)));
  }
  return Nanos(std::llround(seconds * 1e9));
}

Result<Nanos> ParseDateTime(std::string_view text) {
  const std::optional<Nanos> moment = DateTime(text);
  if (moment) return *moment;
  return Invalid(fmt::format("expected a date and time such as 2023-11-16 18:17:03.979, got {}", Quoted(text)));
}

}  // namespace cachalot::sim
