// SessionPage writes the answer to a command about sessions.
// Threads:   pure.
// Ownership: none.
// Invariant: the body is valid JSON; what went wrong has the API's form of an error.
// Cost:      linear in what is told.
#pragma once

#include <string>

#include "engine/session.h"
#include "server/http_types.h"

namespace cachalot::server {

// `command`: what was asked, without its prompt.
HttpResponse SessionPage(const engine::SessionCommand& command, const engine::SessionAnswer& answer);

}  // namespace cachalot::server
