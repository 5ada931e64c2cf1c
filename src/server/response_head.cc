#include "server/response_head.h"

#include <chrono>

#include <fmt/format.h>

namespace cachalot::server {
namespace {

void AppendHeader(std::string* head, std::string_view name, std::string_view value) {
  head->append(name).append(": ");
  for (const char c : value) {
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) head->push_back(c);
  }
  head->append("\r\n");
}

}  // namespace

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 417: return "Expectation Failed";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
  }
}

std::string FormatHead(const HttpResponse& response, const HeadOptions& options) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, ReasonPhrase(response.status));
  if (!options.date.empty()) AppendHeader(&head, "Date", options.date);
  if (response.status != 204) {
    AppendHeader(&head, "Content-Type", response.content_type);
    if (options.content_length) AppendHeader(&head, "Content-Length", fmt::format("{}", *options.content_length));
  }
  if (options.chunked) AppendHeader(&head, "Transfer-Encoding", "chunked");
  if (!options.keep_alive) {
    AppendHeader(&head, "Connection", "close");
  } else if (!options.http_1_1) {
    AppendHeader(&head, "Connection", "keep-alive");
  }
  if (!options.cors_origin.empty()) AppendHeader(&head, "Access-Control-Allow-Origin", options.cors_origin);
  for (const auto& [name, value] : response.headers) AppendHeader(&head, name, value);
  return head + "\r\n";
}

std::string HttpDate(int64_t unix_seconds) {
  constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::chrono::sys_seconds moment{std::chrono::seconds(unix_seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(moment);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(moment - day);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[std::chrono::weekday(day).c_encoding()],
                     static_cast<unsigned>(date.day()), kMonths[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), time.hours().count(), time.minutes().count(),
                     time.seconds().count());
}

const std::string& DateCache::At(int64_t unix_seconds) {
  if (unix_seconds != second_) {
    second_ = unix_seconds;
    text_ = HttpDate(unix_seconds);
  }
  return text_;
}

}  // namespace cachalot::server
