#include "server/session_command.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "server/field_reader.h"
#include "server/retention_fields.h"
#include "server/session_fields.h"

namespace cachalot::server {
namespace {

using engine::SessionCommand;
using engine::SessionVerb;

constexpr std::string_view kIn = "in", kId = "id", kFile = "file";
constexpr std::string_view kOfPrefetch[] = {"session", kIn};

// The fields that a verb's body may have.
std::span<const std::string_view> FieldsOf(SessionVerb verb) {
  switch (verb) {
    case SessionVerb::kResume: return {&kIn, 1};
    case SessionVerb::kFork: return {&kId, 1};
    case SessionVerb::kSave:
    case SessionVerb::kRestore: return {&kFile, 1};
    default: return {};
  }
}

SessionVerb VerbOf(Route route, Method method) {
  switch (route) {
    case Route::kSessionSuspend: return SessionVerb::kSuspend;
    case Route::kSessionResume: return SessionVerb::kResume;
    case Route::kSessionPin:
    case Route::kSessionUnpin: return SessionVerb::kPin;
    case Route::kSessionFork: return SessionVerb::kFork;
    case Route::kSessionSave: return SessionVerb::kSave;
    case Route::kSessionRestore: return SessionVerb::kRestore;
    default: return method == Method::kDelete ? SessionVerb::kDelete : SessionVerb::kShow;
  }
}

bool IsFileName(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= kMaxSessionFileBytes && name[0] != '.' && std::ranges::all_of(name, is_plain);
}

void RefuseUnknown(FieldReader& reader, const Json& body, std::span<const std::string_view> known) {
  for (const auto& [key, value] : *body.AsObject()) {
    if (std::ranges::count(known, key) > 0) continue;
    reader.Fail(Excerpt(key), known.empty() ? "is not known; nothing is expected here"
                                            : fmt::format("is not known; expected {}", fmt::join(known, " or ")));
  }
}

void ReadWhen(FieldReader& reader, Nanos* when) {
  float seconds = 0;
  reader.Float("in", &seconds);
  if (seconds < 0 || seconds > static_cast<float>(kMaxTtlSeconds)) {
    return reader.Fail("in", fmt::format("is {}; it must be between 0 and {} seconds", seconds, kMaxTtlSeconds));
  }
  *when = Nanos(static_cast<Nanos::rep>(double{seconds} * 1e9));
}

void ReadId(FieldReader& reader, std::string_view key, std::string* id) {
  reader.String(key, id);
  if (auto problem = SessionIdProblem(*id)) reader.Fail(std::string(key), *std::move(problem));
}

void ReadField(FieldReader& reader, SessionCommand* command) {
  switch (command->verb) {
    case SessionVerb::kResume: return ReadWhen(reader, &command->when);
    case SessionVerb::kFork: return ReadId(reader, "id", &command->other);
    case SessionVerb::kSave:
    case SessionVerb::kRestore:
      reader.String("file", &command->other);
      if (IsFileName(command->other)) return;
      return reader.Fail("file", fmt::format("{} is no name of a file; 1 to {} of A-Z, a-z, 0-9, '.', '_' and '-' are "
                                             "allowed, and no '.' at its beginning",
                                             Excerpt(command->other), kMaxSessionFileBytes));
    default: return;
  }
}

void ReadAfter(std::string_view target, std::string_view key, std::string* name, std::optional<ApiError>* error) {
  *name = QueryValue(target, key).value_or("");
  if (name->empty()) return;
  if (auto problem = SessionIdProblem(*name)) *error = InvalidField(std::string(key), *std::move(problem));
}

ApiResult<SessionCommand> ReadPrompt(const PrepareContext& context, const Json& body, Nanos when) {
  const bool chat = body.Find("messages") != nullptr;
  ApiResult<PreparedRequest> prepared =
      PrepareRequest(context, chat ? ParseChatRequest(body) : ParseCompletionRequest(body));
  if (auto* error = std::get_if<ApiError>(&prepared)) return std::move(*error);
  std::vector<PreparedPrompt>& prompts = std::get<PreparedRequest>(prepared).prompts;
  if (prompts.size() != 1) {
    return InvalidField("prompt", fmt::format("has {} prompts; one at a time is prefetched", prompts.size()));
  }
  SessionCommand command{.verb = SessionVerb::kPrefetch, .scope = prompts[0].scope, .when = when};
  command.prompt = std::move(prompts[0].tokens);
  return command;
}

}  // namespace

ApiResult<SessionCommand> ReadSessionCommand(const RouteMatch& match, Method method, std::string_view body) {
  SessionCommand command{.verb = VerbOf(match.route, method)};
  command.name.id = match.argument;
  command.pinned = match.route == Route::kSessionPin;
  if (auto problem = SessionIdProblem(match.argument)) {
    return InvalidBody(fmt::format("the session's id in the path {}", *problem));
  }
  if (body.size() > kMaxSessionBodyBytes) {
    return ApiError{
        .status = 413,
        .message = fmt::format("the body has {} bytes; at most {} are allowed here", body.size(), kMaxSessionBodyBytes),
        .code = "request_too_large"};
  }
  ApiResult<Json> parsed = body.empty() ? ApiResult<Json>(Json(Json::Object())) : ParseBody(body);
  if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  const Json& json = std::get<Json>(parsed);
  if (json.AsObject() == nullptr) return InvalidBody("expected a JSON object");
  FieldReader reader(json, "");
  RefuseUnknown(reader, json, FieldsOf(command.verb));
  ReadField(reader, &command);
  if (!reader.ok()) return *reader.error();
  return command;
}

ApiResult<SessionCommand> ReadSessionList(std::string_view target) {
  SessionCommand command{.verb = SessionVerb::kList};
  std::optional<ApiError> problem;
  if (const auto limit = QueryValue(target, "limit")) {
    const auto [end, error] = std::from_chars(limit->data(), limit->data() + limit->size(), command.limit);
    const bool whole = error == std::errc() && end == limit->data() + limit->size();
    if (!whole || command.limit == 0 || command.limit > engine::kMostListedSessions) {
      return InvalidField("limit", fmt::format("is {}; it must be a number from 1 to {}", Excerpt(*limit),
                                               engine::kMostListedSessions));
    }
  }
  ReadAfter(target, "after", &command.after.id, &problem);
  ReadAfter(target, "after_tenant", &command.after.owner, &problem);
  if (problem) return *problem;
  return command;
}

ApiResult<SessionCommand> ReadPrefetch(const PrepareContext& context, std::string_view body) {
  ApiResult<Json> parsed = ParseBody(body);
  if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  const Json& json = std::get<Json>(parsed);
  if (json.AsObject() == nullptr) return InvalidBody("expected a JSON object");
  FieldReader reader(json, "");
  SessionCommand command{.verb = SessionVerb::kResume};
  ReadWhen(reader, &command.when);
  const bool has_prompt = json.Find("messages") != nullptr || json.Find("prompt") != nullptr;
  if (reader.Find("session") == nullptr) {
    if (!has_prompt) reader.Fail("session", "is missing; a session, messages or a prompt is expected");
    if (!reader.ok()) return *reader.error();
    return ReadPrompt(context, json, command.when);
  }
  ReadId(reader, "session", &command.name.id);
  if (!has_prompt) RefuseUnknown(reader, json, kOfPrefetch);
  if (has_prompt) reader.Fail("session", "is given, and so is a prompt; one of both is expected");
  if (!reader.ok()) return *reader.error();
  return command;
}

}  // namespace cachalot::server
