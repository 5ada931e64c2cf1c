// ChatTemplate renders a conversation into the prompt text of a model, with the model's own Jinja template.
// Threads:   immutable; Render may be called from any thread at once.
// Ownership: owns the parsed template.
// Invariant: the output equals Python jinja2's (trim_blocks, lstrip_blocks, loopcontrols) as transformers sets it up.
// Cost:      Render is bounded in steps, nesting and output bytes; a template that exceeds a bound fails.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace cachalot::text {

struct ChatInput {
  Json messages;  // array of {role, content, ...} as the client sent it
  Json tools;     // array, or null for none
  bool add_generation_prompt = true;
  std::string bos_token, eos_token;  // spellings
  int64_t unix_seconds = 0;          // what strftime_now reads; UTC
  Json extra;                        // object of further variables (chat_template_kwargs), or null
};

class ChatTemplate {
 public:
  // kInvalid with line number and reason when the template does not parse or uses what is not supported.
  static Result<ChatTemplate> Parse(std::string_view source);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // kInvalid with the template's own message (raise_exception) or the reason for any other failure.
  Result<std::string> Render(const ChatInput& input) const;

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<const Program> program);
  std::unique_ptr<const Program> program_;
};

}  // namespace cachalot::text
