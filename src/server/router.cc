#include "server/router.h"

#include <charconv>

namespace cachalot::server {
namespace {

constexpr std::string_view kRead = "GET, HEAD, OPTIONS";
constexpr std::string_view kWrite = "POST, OPTIONS";
constexpr std::string_view kModelPrefix = "/v1/models/";

struct Row {
  std::string_view path;
  Route route;
  std::string_view allowed;
  Access access;
};

constexpr Row kRows[] = {
    {"/", Route::kRoot, kRead, Access::kAnyone},
    {"/health", Route::kHealth, kRead, Access::kAnyone},
    {"/version", Route::kVersion, kRead, Access::kAnyone},
    {"/metrics", Route::kMetrics, kRead, Access::kAnyone},
    {"/v1/models", Route::kModels, kRead, Access::kClient},
    {"/v1/chat/completions", Route::kChatCompletions, kWrite, Access::kClient},
    {"/v1/completions", Route::kCompletions, kWrite, Access::kClient},
    {"/v1/kv", Route::kKv, kRead, Access::kAdmin},
    {"/v1/kv/probe", Route::kKvProbe, kWrite, Access::kAdmin},
    {"/v1/kv/clear", Route::kKvClear, kWrite, Access::kAdmin},
};

std::string PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const char* digits = text.data() + i + 1;
      const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
      if (error == std::errc() && end == digits + 2) {
        out.push_back(static_cast<char>(value));
        i += 2;
        continue;
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

}  // namespace

RouteMatch MatchRoute(std::string_view target) {
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  for (const Row& row : kRows) {
    if (row.path == path) return {row.route, "", row.allowed, row.access};
  }
  if (path.starts_with(kModelPrefix)) {
    return {Route::kModel, PercentDecode(path.substr(kModelPrefix.size())), kRead, Access::kClient};
  }
  return {};
}

bool Allows(const RouteMatch& match, Method method) {
  switch (method) {
    case Method::kOptions: return true;
    case Method::kGet:
    case Method::kHead: return match.allowed == kRead;
    case Method::kPost: return match.allowed == kWrite;
    case Method::kOther: return false;
  }
  return false;
}

}  // namespace cachalot::server
