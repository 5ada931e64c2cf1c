#include "server/router.h"

#include <algorithm>
#include <charconv>

namespace cachalot::server {
namespace {

constexpr std::string_view kRead = "GET, HEAD, OPTIONS";
constexpr std::string_view kWrite = "POST, OPTIONS";
constexpr std::string_view kKeep = "GET, HEAD, DELETE, OPTIONS";

// In a path `{}` stands for one segment, `*` for all that follows.
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
    {"/v1/models/*", Route::kModel, kRead, Access::kClient},
    {"/v1/chat/completions", Route::kChatCompletions, kWrite, Access::kClient},
    {"/v1/completions", Route::kCompletions, kWrite, Access::kClient},
    {"/v1/kv", Route::kKv, kRead, Access::kAdmin},
    {"/v1/kv/probe", Route::kKvProbe, kWrite, Access::kAdmin},
    {"/v1/kv/clear", Route::kKvClear, kWrite, Access::kAdmin},
    {"/v1/kv/decisions", Route::kKvDecisions, kRead, Access::kAdmin},
    {"/v1/kv/prefetch", Route::kKvPrefetch, kWrite, Access::kClientOrAdmin},
    {"/v1/kv/sessions", Route::kSessions, kRead, Access::kClientOrAdmin},
    {"/v1/kv/sessions/{}", Route::kSession, kKeep, Access::kClientOrAdmin},
    {"/v1/kv/sessions/{}/suspend", Route::kSessionSuspend, kWrite, Access::kClientOrAdmin},
    {"/v1/kv/sessions/{}/resume", Route::kSessionResume, kWrite, Access::kClientOrAdmin},
    {"/v1/kv/sessions/{}/pin", Route::kSessionPin, kWrite, Access::kClientOrAdmin},
    {"/v1/kv/sessions/{}/unpin", Route::kSessionUnpin, kWrite, Access::kClientOrAdmin},
    {"/v1/kv/sessions/{}/fork", Route::kSessionFork, kWrite, Access::kClientOrAdmin},
    {"/v1/kv/sessions/{}/save", Route::kSessionSave, kWrite, Access::kClientOrAdmin},
    {"/v1/kv/sessions/{}/restore", Route::kSessionRestore, kWrite, Access::kClientOrAdmin},
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

// Whether the path is one of the pattern; `argument` is then what stands in its hole.
bool Matches(std::string_view pattern, std::string_view path, std::string_view* argument) {
  const size_t hole = std::min(pattern.find_first_of("{*"), pattern.size());
  if (!path.starts_with(pattern.substr(0, hole))) return false;
  std::string_view rest = pattern.substr(hole);
  path.remove_prefix(hole);
  if (rest == "*") {
    *argument = path;
    return true;
  }
  if (!rest.empty()) {
    *argument = path.substr(0, path.find('/'));
    if (argument->empty()) return false;
    rest.remove_prefix(2);
    path.remove_prefix(argument->size());
  }
  return path == rest;
}

std::string_view NameOf(Method method) {
  switch (method) {
    case Method::kGet: return "GET";
    case Method::kHead: return "HEAD";
    case Method::kPost: return "POST";
    case Method::kDelete: return "DELETE";
    case Method::kOptions: return "OPTIONS";
    case Method::kOther: break;
  }
  return "another";
}

}  // namespace

RouteMatch MatchRoute(std::string_view target) {
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  for (const Row& row : kRows) {
    std::string_view argument;
    if (Matches(row.path, path, &argument)) return {row.route, PercentDecode(argument), row.allowed, row.access};
  }
  return {};
}

std::optional<std::string> QueryValue(std::string_view target, std::string_view key) {
  target = target.substr(0, target.find('#'));
  std::string_view query = target.substr(std::min(target.find('?'), target.size()));
  while (!query.empty()) {
    query.remove_prefix(1);
    const std::string_view item = query.substr(0, query.find('&'));
    query.remove_prefix(item.size());
    const size_t sign = std::min(item.find('='), item.size());
    if (item.substr(0, sign) == key) return PercentDecode(item.substr(std::min(sign + 1, item.size())));
  }
  return std::nullopt;
}

// No method's name is part of another's.
bool Allows(const RouteMatch& match, Method method) {
  return match.allowed.find(NameOf(method)) != std::string_view::npos;
}

}  // namespace cachalot::server
