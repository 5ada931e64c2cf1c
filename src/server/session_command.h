// What a request asks of a session, as the engine is told it.
// Threads:   pure functions of their arguments.
// Ownership: results own what they hold.
// Invariant: ids and names of files in a command are valid; its id and owner are left to be said.
// Cost:      linear in the body; a prompt is rendered and tokenized.
#pragma once

#include <string_view>

#include "engine/session.h"
#include "server/api_error.h"
#include "server/prompt.h"
#include "server/router.h"

namespace cachalot::server {

inline constexpr size_t kMaxSessionBodyBytes = 4096;
inline constexpr size_t kMaxSessionFileBytes = 128;  // of a file's name

// Of the routes that concern one session, by its id. An empty body is one without fields.
ApiResult<engine::SessionCommand> ReadSessionCommand(const RouteMatch& match, Method method, std::string_view body);

// kSessions: which part of the list the target's query asks for.
ApiResult<engine::SessionCommand> ReadSessionList(std::string_view target);

// kKvPrefetch: of the session that the body names, or of the prompt of a chat or a completion. The scope is the
// prompt's.
ApiResult<engine::SessionCommand> ReadPrefetch(const PrepareContext& context, std::string_view body);

}  // namespace cachalot::server
