// RenderChat writes the prompt of a conversation with the model's chat template.
// Threads:   pure function of its arguments; runs on the text workers.
// Ownership: none.
// Invariant: what the template refuses is an ApiError with its own message.
// Cost:      that of the template, which is bounded.
#pragma once

#include <cstdint>
#include <string>

#include "server/api_error.h"
#include "server/api_request.h"
#include "server/served_model.h"

namespace cachalot::server {

// `unix_seconds` is for templates that print the date. The text spells out every token itself, the one at its beginning
// included.
ApiResult<std::string> RenderChat(const ServedModel& model, const ApiRequest& request, int64_t unix_seconds);

}  // namespace cachalot::server
