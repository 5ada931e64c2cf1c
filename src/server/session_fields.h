// ReadSession reads what a request says of the conversation that it belongs to: members of the object "kv".
// Threads:   pure.
// Ownership: none.
// Invariant: an id that is read may be put into a path, percent-encoded, and back.
// Cost:      a few look-ups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/request.h"
#include "server/field_reader.h"

namespace cachalot::server {

struct SessionFields {
  std::string id;            // empty: none is named
  uint64_t ttl_seconds = 0;  // 0: not given
  engine::ReturnHint returns;
};

SessionFields ReadSession(FieldReader& reader);

// What is wrong with this as an id; nothing when it may be one.
std::optional<std::string> SessionIdProblem(std::string_view id);

}  // namespace cachalot::server
