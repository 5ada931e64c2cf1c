// Any JSON as the body of either request: it is typed and within its limits, or the error is a 400 that can be sent.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"
#include "server/api_request.h"

namespace {

using namespace cachalot;          // NOLINT
using namespace cachalot::server;  // NOLINT

void Check(const ApiResult<ApiRequest>& result) {
  if (const auto* error = std::get_if<ApiError>(&result)) {
    CACHALOT_CHECK(error->status == 400 && !error->message.empty());
    CACHALOT_CHECK(ParseJson(ErrorBody(*error)).ok());
    return;
  }
  const ApiRequest& request = std::get<ApiRequest>(result);
  CACHALOT_CHECK(request.n >= 1 && request.n <= kMaxChoices);
  CACHALOT_CHECK(request.stop.size() <= kMaxStopStrings && request.prompts.size() <= kMaxPrompts);
  CACHALOT_CHECK(request.sampling.logprobs >= -1 && request.sampling.logprobs <= 20);
  for (const std::string& stop : request.stop) CACHALOT_CHECK(!stop.empty() && stop.size() <= kMaxStopBytes);
  for (const PromptSource& prompt : request.prompts) {
    CACHALOT_CHECK(std::visit([](const auto& p) { return !p.empty(); }, prompt));
  }
  if (request.endpoint == Endpoint::kCompletion) {
    CACHALOT_CHECK(!request.prompts.empty());
    return;
  }
  CACHALOT_CHECK(request.messages.AsArray() != nullptr && !request.messages.AsArray()->empty());
  for (const Json& message : *request.messages.AsArray()) {
    const Json* content = message.Find("content");
    CACHALOT_CHECK(message.Find("role")->AsString() != nullptr && content != nullptr);
    CACHALOT_CHECK(content->AsString() != nullptr || (content->is_null() && message.Find("tool_calls") != nullptr));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const Result<Json> body = ParseJson({reinterpret_cast<const char*>(data), bytes});
  if (!body.ok()) return 0;
  Check(ParseChatRequest(*body));
  Check(ParseCompletionRequest(*body));
  return 0;
}
