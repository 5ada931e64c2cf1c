// The paths of the API and what may be done with them.
// Threads:   pure functions.
// Ownership: a match refers to the target only through its own strings.
// Invariant: an unknown path is kUnknown, whatever the method.
// Cost:      some string comparisons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/http_types.h"

namespace cachalot::server {

enum class Route : uint8_t {
  kUnknown,
  kRoot,
  kHealth,
  kVersion,
  kMetrics,
  kModels,
  kModel,
  kChatCompletions,
  kCompletions,
  kKv,
  kKvProbe,
  kKvClear,
  kKvDecisions,
  kKvPrefetch,
  kSessions,
  kSession,
  kSessionSuspend,
  kSessionResume,
  kSessionPin,
  kSessionUnpin,
  kSessionFork,
  kSessionSave,
  kSessionRestore,
};

// Whose key a path needs.
enum class Access : uint8_t { kAnyone, kClient, kAdmin, kClientOrAdmin };

struct RouteMatch {
  Route route = Route::kUnknown;
  std::string argument;      // of kModel and what concerns one session: its id
  std::string_view allowed;  // methods, for the Allow header
  Access access = Access::kAnyone;
};

// `target` is the request's, with its query.
RouteMatch MatchRoute(std::string_view target);

// What the target's query says of `key`, which needs no decoding itself.
std::optional<std::string> QueryValue(std::string_view target, std::string_view key);

// Whether the route answers that method; HEAD goes where GET goes, OPTIONS everywhere.
bool Allows(const RouteMatch& match, Method method);

}  // namespace cachalot::server
