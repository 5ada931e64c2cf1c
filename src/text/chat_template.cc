#include "text/chat_template.h"

#include <utility>

#include "text/jinja_interpreter.h"
#include "text/jinja_json.h"
#include "text/jinja_parser.h"
#include "text/jinja_scope.h"

namespace cachalot::text {

struct ChatTemplate::Program {
  jinja::Template tree;
};

namespace {

// Variables that a client's extra ones cannot replace.
bool IsReserved(std::string_view name) {
  return name == "messages" || name == "tools" || name == "add_generation_prompt";
}

Status SetVariables(const ChatInput& input, jinja::Interpreter* interpreter) {
  interpreter->SetVariable("documents", jinja::Value::None());
  interpreter->SetVariable("bos_token", interpreter->Str(input.bos_token));
  interpreter->SetVariable("eos_token", interpreter->Str(input.eos_token));
  if (const Json::Object* extra = input.extra.AsObject()) {
    for (const Json::Member& member : *extra) {
      if (IsReserved(member.first)) continue;
      CACHALOT_ASSIGN_OR_RETURN(jinja::Value value, jinja::FromJson(*interpreter, member.second));
      interpreter->SetVariable(member.first, std::move(value));
    }
  }
  CACHALOT_ASSIGN_OR_RETURN(jinja::Value messages, jinja::FromJson(*interpreter, input.messages));
  CACHALOT_ASSIGN_OR_RETURN(jinja::Value tools, jinja::FromJson(*interpreter, input.tools));
  interpreter->SetVariable("messages", std::move(messages));
  interpreter->SetVariable("tools", std::move(tools));
  interpreter->SetVariable("add_generation_prompt", jinja::Value::Bool(input.add_generation_prompt));
  return OkStatus();
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::Parse(std::string_view source) {
  auto program = std::make_unique<Program>();
  CACHALOT_ASSIGN_OR_RETURN(program->tree, jinja::ParseTemplate(source));
  CACHALOT_RETURN_IF_ERROR(jinja::ResolveNames(&program->tree));
  return ChatTemplate(std::move(program));
}

Result<std::string> ChatTemplate::Render(const ChatInput& input) const {
  jinja::Interpreter interpreter(program_->tree, jinja::Limits(), input.unix_seconds);
  CACHALOT_RETURN_IF_ERROR(SetVariables(input, &interpreter));
  return interpreter.Render();
}

}  // namespace cachalot::text
