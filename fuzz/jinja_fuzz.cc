// Any bytes as a chat template, rendered for a fixed conversation: it renders or fails with kInvalid and a message,
// the same way twice, inside small budgets.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_json.h"
#include "text/jinja_parser.h"
#include "text/jinja_scope.h"

namespace cachalot::text::jinja {
namespace {

constexpr std::string_view kVariables = R"({
  "messages": [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "h\u00e9llo <b> \u6f22 \ud83d\ude42"}, {"type": "image"}]},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "c1", "function": {"name": "f", "arguments": {"x": 1.5, "y": [1, null, true], "z": "a\nb"}}}]},
    {"role": "tool", "content": "{\"t\": 20}", "name": "f"}],
  "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
    "x": {"type": "number"}}, "required": ["x"]}}}],
  "documents": null, "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>",
  "i": 7, "n": -3, "f": 2.5, "s": "Hello World", "l": [3, 1, 2], "d": {"a": 1, "b": {"c": []}}
})";

constexpr Limits kLimits{.steps = 200'000, .heap_bytes = size_t{4} << 20, .output_bytes = size_t{1} << 18};

Result<std::string> Render(const Template& tree) {
  static const Json variables = ParseJson(kVariables).value();
  Interpreter interpreter(tree, kLimits, 1722470405);
  for (const Json::Member& member : *variables.AsObject()) {
    CACHALOT_ASSIGN_OR_RETURN(Value value, FromJson(interpreter, member.second));
    interpreter.SetVariable(member.first, std::move(value));
  }
  return interpreter.Render();
}

Status Check(std::string_view source) {
  CACHALOT_ASSIGN_OR_RETURN(Template tree, ParseTemplate(source));
  CACHALOT_RETURN_IF_ERROR(ResolveNames(&tree));
  const Result<std::string> first = Render(tree);
  const Result<std::string> second = Render(tree);
  CACHALOT_CHECK(first.ok() == second.ok());
  if (!first.ok()) {
    CACHALOT_CHECK(first.status().message() == second.status().message());
    return first.status();
  }
  CACHALOT_CHECK(first.value() == second.value());
  CACHALOT_CHECK(FindInvalidUtf8(first.value()) == std::string_view::npos);
  CACHALOT_CHECK(first.value().size() <= kLimits.output_bytes);
  return OkStatus();
}

}  // namespace
}  // namespace cachalot::text::jinja

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const cachalot::Status status =
      cachalot::text::jinja::Check(std::string_view(reinterpret_cast<const char*>(data), bytes));
  CACHALOT_CHECK(status.ok() || status.code() == cachalot::Code::kInvalid);
  return 0;
}
