// Preflight learns what a run needs to know of a server: the model's name, and how its tokenizer counts our words.
// Threads:   one thread.
// Ownership: none.
// Invariant: each request has its deadline.
// Cost:      at most three requests, one after the other.
#pragma once

#include <string>

#include "base/status.h"
#include "load/asker.h"
#include "load/conversation.h"
#include "load/load_options.h"
#include "load/prompt_text.h"
#include "load/url.h"

namespace cachalot::load {

struct Target {
  Url url;
  RequestStyle style;
  TokenFit fit;
};

// The first model of GET /models, and two probes of different lengths; what the options say is not asked for.
Result<Target> Preflight(const LoadOptions& options, const Url& url, Asker* asker);

// The text of a request for an answer.
std::string FormatTurn(const LoadOptions& options, const Target& target, const std::string& body);

}  // namespace cachalot::load
