#include "server/chat_text.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cachalot::server {

ApiResult<std::string> RenderChat(const ServedModel& model, const ApiRequest& request, int64_t unix_seconds) {
  if (model.chat_template == nullptr) {
    ApiError error = InvalidBody(fmt::format(
        "the model {} has no chat template, so it does not answer chat requests; use /v1/completions, or start the "
        "server with --chat-template",
        model.names[0]));
    error.code = "no_chat_template";
    return error;
  }
  const auto spelling = [&model](std::optional<TokenId> id) {
    return id ? std::string(model.tokenizer->Spelling(*id)) : std::string();
  };
  text::ChatInput input;
  input.messages = request.messages;
  input.tools = request.tools;
  input.add_generation_prompt = request.add_generation_prompt;
  input.bos_token = spelling(model.tokenizer->bos());
  input.eos_token = spelling(model.tokenizer->eos());
  input.unix_seconds = unix_seconds;
  input.extra = request.template_variables;
  Result<std::string> text = model.chat_template->Render(input);
  if (!text.ok()) {
    ApiError error = InvalidField("messages", "the model's chat template refused them: " + text.status().message());
    error.code = "chat_template_error";
    return error;
  }
  return std::move(text).value();
}

}  // namespace cachalot::server
