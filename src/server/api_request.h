// ApiRequest is the body of a chat or completion request, checked and typed.
// Threads:   plain data; the parsers are pure functions.
// Ownership: owns what it holds.
// Invariant: types and counts are valid; what depends on the model (token ids, ranges of sampling, lengths) is checked
//            by PreparePrompts.
// Cost:      linear in the body.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/retention.h"
#include "base/sampling.h"
#include "server/api_error.h"
#include "server/session_fields.h"

namespace cachalot::server {

inline constexpr size_t kMaxStopStrings = 64;
inline constexpr size_t kMaxStopBytes = 1024;  // of one
inline constexpr uint32_t kMaxChoices = 128;   // n
inline constexpr size_t kMaxPrompts = 256;
inline constexpr size_t kMaxLogitBiases = 1024;
inline constexpr size_t kMaxStopTokens = 64;
inline constexpr size_t kMaxCacheSaltBytes = 1024;

enum class Endpoint : uint8_t { kChat, kCompletion };

using PromptSource = std::variant<std::string, std::vector<TokenId>>;

struct ApiRequest {
  Endpoint endpoint = Endpoint::kChat;
  std::string model;  // empty: not named
  std::optional<uint32_t> max_tokens;
  uint32_t n = 1;  // choices per prompt
  bool stream = false;
  bool include_usage = false;  // a last chunk with the usage
  bool ignore_eos = false;     // end tokens end nothing
  bool has_seed = false;       // sampling.seed was given
  std::string cache_salt;      // empty: not given
  std::optional<RetentionHints> retention;
  SessionFields session;
  SamplingParams sampling;
  std::vector<std::string> stop;
  std::vector<TokenId> stop_token_ids;  // more end tokens

  // Of chat.
  Json messages;            // array, normalised for templates: see ParseMessages
  Json tools;               // array, or null
  Json template_variables;  // object, or null
  bool add_generation_prompt = true;

  // Of completions.
  std::vector<PromptSource> prompts;
  bool echo = false;  // the prompt comes first in the answer
};

ApiResult<ApiRequest> ParseChatRequest(const Json& body);
ApiResult<ApiRequest> ParseCompletionRequest(const Json& body);

// The messages as templates expect them: role "developer" becomes "system", text parts are joined by newlines into one
// string, arguments of tool calls become objects.
ApiResult<Json> ParseMessages(const Json& messages, const std::string& path);

// Fields that both endpoints share.
class FieldReader;
void ReadCommonFields(FieldReader& reader, ApiRequest* request);

}  // namespace cachalot::server
