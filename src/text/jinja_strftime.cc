#include "text/jinja_strftime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cachalot::text::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                      "May",       "June",     "July",     "August",
                                                      "September", "October",  "November", "December"};

struct CivilTime {
  int64_t year;
  int month, day;  // from 1
  int hour, minute, second;
  int weekday;   // from Sunday
  int year_day;  // from 0
};

constexpr int64_t kSecondsPerDay = 86400;

bool IsLeap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }
int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

CivilTime ToCivil(int64_t unix_seconds) {
  const int64_t days = FloorDiv(unix_seconds, kSecondsPerDay);
  const int64_t rest = unix_seconds - days * kSecondsPerDay;
  CivilTime time{};
  time.hour = static_cast<int>(rest / 3600);
  time.minute = static_cast<int>(rest / 60 % 60);
  time.second = static_cast<int>(rest % 60);
  time.weekday = static_cast<int>((days % 7 + 11) % 7);  // 1970-01-01 was a Thursday
  // Days since 0000-03-01: years begin in March here, so that the leap day comes last.
  const int64_t shifted = days + 719468;
  const int64_t era = FloorDiv(shifted, 146097);
  const int64_t day_of_era = shifted - era * 146097;
  const int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t march_month = (5 * day_of_year + 2) / 153;
  time.day = static_cast<int>(day_of_year - (153 * march_month + 2) / 5 + 1);
  time.month = static_cast<int>(march_month < 10 ? march_month + 3 : march_month - 9);
  time.year = year_of_era + era * 400 + (time.month <= 2 ? 1 : 0);
  static constexpr int kBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  time.year_day = kBefore[time.month - 1] + time.day - 1 + (time.month > 2 && IsLeap(time.year) ? 1 : 0);
  return time;
}

struct IsoWeek {
  int64_t year;
  int week;
};

IsoWeek ToIsoWeek(const CivilTime& time) {
  const int monday_based = (time.weekday + 6) % 7;
  const int week = (time.year_day - monday_based + 10) / 7;
  const auto weeks_in = [](int64_t year) {
    const auto weekday_of_dec31 = [](int64_t y) { return (y + y / 4 - y / 100 + y / 400) % 7; };
    return weekday_of_dec31(year) == 4 || weekday_of_dec31(year - 1) == 3 ? 53 : 52;
  };
  if (week < 1) return {time.year - 1, weeks_in(time.year - 1)};
  if (week > weeks_in(time.year)) return {time.year + 1, 1};
  return {time.year, week};
}

int Hour12(int hour) { return hour % 12 == 0 ? 12 : hour % 12; }

class TimeFormatter {
 public:
  explicit TimeFormatter(int64_t unix_seconds) : unix_seconds_(unix_seconds), time_(ToCivil(unix_seconds)) {}

  std::string Run(std::string_view format) {
    std::string out;
    for (size_t pos = 0; pos < format.size(); ++pos) {
      if (format[pos] != '%' || pos + 1 == format.size()) {
        out.push_back(format[pos]);
        continue;
      }
      const size_t start = pos++;
      flag_ = '\0';
      bool upper = false;
      for (; pos < format.size() && std::string_view("-_0^#").find(format[pos]) != std::string_view::npos; ++pos) {
        if (format[pos] == '^') upper = true;
        if (format[pos] != '^' && format[pos] != '#') flag_ = format[pos];
      }
      if (pos < format.size() && (format[pos] == 'E' || format[pos] == 'O') && pos + 1 < format.size()) ++pos;
      std::string text;
      if (pos >= format.size() || !Directive(format[pos], &text)) text = format.substr(start, pos + 1 - start);
      if (upper) std::ranges::transform(text, text.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
      out += text;
    }
    return out;
  }

 private:
  // A number of at least `width` digits, padded as the flag says.
  std::string Number(int64_t value, int width, char pad = '0') const {
    if (flag_ == '-') return fmt::format("{}", value);
    const bool zeros = flag_ == '0' || (flag_ == '\0' && pad == '0');
    return zeros ? fmt::format("{:0{}}", value, width) : fmt::format("{:{}}", value, width);
  }

  bool Directive(char directive, std::string* out) {
    if (DateText(directive, out) || DateNumber(directive, out) || TimeOfDay(directive, out)) return true;
    switch (directive) {
      case '%': *out = "%"; return true;
      case 'n': *out = "\n"; return true;
      case 't': *out = "\t"; return true;
      case 'z':
      case 'Z': out->clear(); return true;  // a time without a zone
      case 's': *out = fmt::format("{}", unix_seconds_); return true;
      case 'f': *out = "000000"; return true;
      default: return false;
    }
  }

  bool DateText(char directive, std::string* out) {
    const std::string_view day = kDays[static_cast<size_t>(time_.weekday)];
    const std::string_view month = kMonths[static_cast<size_t>(time_.month - 1)];
    switch (directive) {
      case 'A': *out = day; return true;
      case 'a': *out = day.substr(0, 3); return true;
      case 'B': *out = month; return true;
      case 'b':
      case 'h': *out = month.substr(0, 3); return true;
      case 'c': *out = Compound("%a %b %e %H:%M:%S %Y"); return true;
      case 'D':
      case 'x': *out = Compound("%m/%d/%y"); return true;
      case 'F': *out = Compound("%Y-%m-%d"); return true;
      default: return false;
    }
  }

  bool DateNumber(char directive, std::string* out) {
    switch (directive) {
      case 'C': *out = Number(FloorDiv(time_.year, 100), 2); return true;
      case 'd': *out = Number(time_.day, 2); return true;
      case 'e': *out = Number(time_.day, 2, ' '); return true;
      case 'j': *out = Number(time_.year_day + 1, 3); return true;
      case 'm': *out = Number(time_.month, 2); return true;
      case 'u': *out = Number(time_.weekday == 0 ? 7 : time_.weekday, 1); return true;
      case 'w': *out = Number(time_.weekday, 1); return true;
      case 'U': *out = Number((time_.year_day + 7 - time_.weekday) / 7, 2); return true;
      case 'W': *out = Number((time_.year_day + 7 - (time_.weekday + 6) % 7) / 7, 2); return true;
      case 'V': *out = Number(ToIsoWeek(time_).week, 2); return true;
      case 'G': *out = Number(ToIsoWeek(time_).year, 1); return true;
      case 'g': *out = Number(ToIsoWeek(time_).year % 100, 2); return true;
      case 'Y': *out = Number(time_.year, 1); return true;
      case 'y': *out = Number((time_.year % 100 + 100) % 100, 2); return true;
      default: return false;
    }
  }

  bool TimeOfDay(char directive, std::string* out) {
    switch (directive) {
      case 'H': *out = Number(time_.hour, 2); return true;
      case 'I': *out = Number(Hour12(time_.hour), 2); return true;
      case 'k': *out = Number(time_.hour, 2, ' '); return true;
      case 'l': *out = Number(Hour12(time_.hour), 2, ' '); return true;
      case 'M': *out = Number(time_.minute, 2); return true;
      case 'S': *out = Number(time_.second, 2); return true;
      case 'p': *out = time_.hour < 12 ? "AM" : "PM"; return true;
      case 'P': *out = time_.hour < 12 ? "am" : "pm"; return true;
      case 'r': *out = Compound("%I:%M:%S %p"); return true;
      case 'R': *out = Compound("%H:%M"); return true;
      case 'T':
      case 'X': *out = Compound("%H:%M:%S"); return true;
      default: return false;
    }
  }

  std::string Compound(std::string_view format) const { return TimeFormatter(unix_seconds_).Run(format); }

  int64_t unix_seconds_;
  CivilTime time_;
  char flag_ = '\0';  // '-', '_' or '0' of the directive at hand
};

// 9999-12-31T23:59:59Z and 0001-01-01T00:00:00Z: what Python's datetime can hold.
constexpr int64_t kLastSecond = 253402300799;
constexpr int64_t kFirstSecond = -62135596800;

}  // namespace

std::string FormatTime(std::string_view format, int64_t unix_seconds) {
  return TimeFormatter(std::clamp(unix_seconds, kFirstSecond, kLastSecond)).Run(format);
}

}  // namespace cachalot::text::jinja
