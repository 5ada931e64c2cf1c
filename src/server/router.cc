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
  bool needs_key;
};

constexpr Row kRows[] = {
    {"/", Route::kRoot, kRead, false},
    {"/health", Route::kHealth, kRead, false},
    {"/version", Route::kVersion, kRead, false},
    {"/metrics", Route::kMetrics, kRead, false},
    {"/v1/models", Route::kModels, kRead, true},
    {"/v1/chat/completions", Route::kChatCompletions, kWrite, true},
    {"/v1/completions", Route::kCompletions, kWrite, true},
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
    if (row.path == path) return {row.route, "", row.allowed, row.needs_key};
  }
  if (path.starts_with(kModelPrefix)) {
    return {Route::kModel, PercentDecode(path.substr(kModelPrefix.size())), kRead, true};
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
