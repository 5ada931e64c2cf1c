// The first lines of an HTTP response, and the dates in them.
// Threads:   pure functions; a DateCache belongs to one thread.
// Ownership: none.
// Invariant: no header value breaks a line: control characters in it are dropped.
// Cost:      one small string; a date is formatted once per second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/http_types.h"

namespace cachalot::server {

struct HeadOptions {
  std::optional<uint64_t> content_length;  // none: the body is chunked, or ends with the connection
  bool chunked = false;
  bool keep_alive = true;
  bool http_1_1 = true;
  std::string_view date;         // empty: no Date header
  std::string_view cors_origin;  // empty: no Access-Control-Allow-Origin header
};

std::string FormatHead(const HttpResponse& response, const HeadOptions& options);

// "Not Found" for 404.
std::string_view ReasonPhrase(int status);

// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string HttpDate(int64_t unix_seconds);

class DateCache {
 public:
  const std::string& At(int64_t unix_seconds);

 private:
  int64_t second_ = -1;
  std::string text_;
};

}  // namespace cachalot::server
