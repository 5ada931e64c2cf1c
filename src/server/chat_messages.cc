#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "server/api_request.h"
#include "server/field_reader.h"

namespace cachalot::server {
namespace {

constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};

// The text of an array of parts; only text parts are known.
Json JoinParts(FieldReader& reader, const Json::Array& parts, const std::string& path) {
  std::string joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string where = ElementPath(path, i);
    if (parts[i].AsObject() == nullptr) {
      reader.WrongType(where, "object", parts[i]);
      return Json();
    }
    FieldReader part(parts[i], where);
    std::string type, text;
    part.String("type", &type);
    if (part.ok() && type != "text") {
      part.Fail(part.PathOf("type"), fmt::format("{} is not supported by this server; only \"text\"", Excerpt(type)));
    }
    if (part.ok() && part.Find("text") == nullptr) part.Fail(part.PathOf("text"), "is missing");
    part.String("text", &text);
    if (!part.ok()) {
      reader.Adopt(part.error());
      return Json();
    }
    if (i > 0) joined += '\n';
    joined += text;
  }
  return joined;
}

// Null is for an assistant that only called tools.
Json ReadContent(FieldReader& message, const std::string& role, bool has_tool_calls) {
  const Json* content = message.Find("content");
  const std::string path = message.PathOf("content");
  if (content == nullptr) {
    if (role != "assistant") message.Fail(path, "is missing");
    return has_tool_calls ? Json() : Json("");
  }
  if (content->AsString() != nullptr) return *content;
  if (const Json::Array* parts = content->AsArray()) return JoinParts(message, *parts, path);
  message.WrongType(path, "string or array", *content);
  return Json();
}

// The API carries a call's arguments as text; templates print them as the object that this text is.
Json WithParsedArguments(const Json& call) {
  Json::Object out;
  for (const auto& [key, value] : *call.AsObject()) {
    const Json::Object* function = key == "function" ? value.AsObject() : nullptr;
    if (function == nullptr) {
      out.emplace_back(key, value);
      continue;
    }
    Json::Object inner = *function;
    for (auto& [name, argument] : inner) {
      const std::string* text = name == "arguments" ? argument.AsString() : nullptr;
      if (text == nullptr) continue;
      Result<Json> parsed = ParseJson(*text);
      if (parsed.ok() && parsed->AsObject() != nullptr) argument = std::move(parsed).value();
    }
    out.emplace_back(key, std::move(inner));
  }
  return out;
}

Json ReadToolCalls(FieldReader& message, const Json& calls) {
  const std::string path = message.PathOf("tool_calls");
  const Json::Array* array = calls.AsArray();
  if (array == nullptr) {
    message.WrongType(path, "array", calls);
    return Json();
  }
  Json::Array out;
  for (size_t i = 0; i < array->size(); ++i) {
    const Json* function = (*array)[i].Find("function");
    if ((*array)[i].AsObject() == nullptr) {
      message.WrongType(ElementPath(path, i), "object", (*array)[i]);
    } else if (function == nullptr || function->AsObject() == nullptr) {
      message.Fail(ElementPath(path, i) + ".function", "expected object");
    }
    if (!message.ok()) return Json();
    out.push_back(WithParsedArguments((*array)[i]));
  }
  return out;
}

std::string ReadRole(FieldReader& message) {
  std::string role;
  if (message.Find("role") == nullptr) message.Fail(message.PathOf("role"), "is missing");
  message.String("role", &role);
  if (message.ok() && std::find(std::begin(kRoles), std::end(kRoles), role) == std::end(kRoles)) {
    message.Fail(message.PathOf("role"),
                 fmt::format("{} is unknown; expected one of {}", Excerpt(role), fmt::join(kRoles, ", ")));
  }
  return role;
}

ApiResult<Json> ReadMessage(const Json& source, const std::string& path) {
  FieldReader message(source, path);
  const std::string role = ReadRole(message);
  Json::Object out;
  out.emplace_back("role", role == "developer" ? "system" : role);
  const Json* calls = message.Find("tool_calls");
  Json parsed_calls = calls == nullptr ? Json() : ReadToolCalls(message, *calls);
  const bool has_calls = parsed_calls.AsArray() != nullptr && !parsed_calls.AsArray()->empty();
  out.emplace_back("content", ReadContent(message, role, has_calls));
  if (has_calls) out.emplace_back("tool_calls", std::move(parsed_calls));
  std::string name;
  message.String("name", &name);
  if (!message.ok()) return *message.error();
  for (const auto& [key, value] : *source.AsObject()) {
    if (key != "role" && key != "content" && key != "tool_calls" && !value.is_null()) out.emplace_back(key, value);
  }
  return Json(std::move(out));
}

}  // namespace

ApiResult<Json> ParseMessages(const Json& messages, const std::string& path) {
  const Json::Array* array = messages.AsArray();
  if (array == nullptr) return InvalidField(path, fmt::format("expected array, got {}", messages.TypeName()));
  if (array->empty()) return InvalidField(path, "is empty");
  Json::Array out;
  out.reserve(array->size());
  for (size_t i = 0; i < array->size(); ++i) {
    const std::string where = ElementPath(path, i);
    if ((*array)[i].AsObject() == nullptr) {
      return InvalidField(where, fmt::format("expected object, got {}", (*array)[i].TypeName()));
    }
    ApiResult<Json> message = ReadMessage((*array)[i], where);
    if (auto* error = std::get_if<ApiError>(&message)) return std::move(*error);
    out.push_back(std::get<Json>(std::move(message)));
  }
  return Json(std::move(out));
}

}  // namespace cachalot::server
