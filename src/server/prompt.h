// PrepareRequest turns the body of a request into what the engine needs: checked, rendered, tokenized.
// Threads:   pure functions of their arguments; run on the text workers.
// Ownership: results own what they hold.
// Invariant: whatever the body is, the result is a valid request or an ApiError.
// Cost:      linear in the body.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/prefix_scope.h"
#include "base/tenant.h"
#include "server/api_error.h"
#include "server/api_request.h"
#include "server/public_prefixes.h"
#include "server/served_model.h"

namespace cachalot::text {
class StopSet;
}

namespace cachalot::server {

struct PreparedPrompt {
  std::vector<TokenId> tokens;  // not empty
  std::string text;             // what echo repeats; empty unless asked for
  bool added_bos = false;       // the first token is not in the text
  uint32_t max_tokens = 0;
  PrefixScope scope;
};

struct PreparedRequest {
  ApiRequest api;
  TenantId tenant;
  std::vector<PreparedPrompt> prompts;
  std::vector<TokenId> end_tokens;             // sorted
  std::shared_ptr<const text::StopSet> stops;  // null without stop strings
};

struct PrepareContext {
  const ServedModel& model;
  uint32_t default_max_tokens = 0;  // 0: no limit but the context
  int64_t unix_seconds = 0;         // for templates that print the date
  CacheSalt salt;                   // of the sender
  TenantId tenant;
  Load caps;                                        // of one request
  const PublicPrefixes* public_prefixes = nullptr;  // null: none
  std::string session;                              // that the request's head names; empty: none
};

// 404 model_not_found.
ApiError UnknownModel(const ServedModel& model, const std::string& wanted);
// 400 context_length_exceeded; the message says what is needed and what is allowed.
ApiError ContextLengthExceeded(std::string message);

// 400 for anything but a JSON document of bounded size.
ApiResult<Json> ParseBody(std::string_view body);

ApiResult<PreparedRequest> PrepareRequest(const PrepareContext& context, ApiResult<ApiRequest> parsed);
ApiResult<PreparedRequest> PrepareRequest(const PrepareContext& context, Endpoint endpoint, std::string_view body);

}  // namespace cachalot::server
