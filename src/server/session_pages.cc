#include "server/session_pages.h"

#include <optional>
#include <string_view>

#include "base/json.h"
#include "server/api_error.h"
#include "server/field_reader.h"

namespace cachalot::server {
namespace {

using engine::SessionAnswer;
using engine::SessionCommand;
using engine::SessionVerb;
using engine::SessionView;

std::string_view StateName(engine::SessionState state) {
  switch (state) {
    case engine::SessionState::kHot: return "hot";
    case engine::SessionState::kWarm: return "warm";
    case engine::SessionState::kCold: break;
  }
  return "cold";
}

void WriteTier(JsonWriter& w, std::string_view name, const engine::TierShare& share) {
  w.Key(name).BeginObject();
  w.Key("tokens").UInt(share.tokens);
  w.Key("bytes").UInt(share.bytes);
  w.EndObject();
}

void WriteCost(JsonWriter& w, const SessionView& view) {
  w.Key("cost").BeginObject();
  w.Key("recompute_seconds").Double(view.recompute_seconds);
  w.Key("load_seconds");
  view.load_seconds ? w.Double(*view.load_seconds) : w.Null();
  w.EndObject();
}

// The members of a session's object.
void WriteView(JsonWriter& w, const SessionView& view) {
  w.Key("id").String(view.name.id);
  w.Key("object").String("kv.session");
  if (!view.name.owner.empty()) w.Key("tenant").String(view.name.owner);
  w.Key("state").String(StateName(view.state));
  w.Key("tokens").UInt(view.tokens);
  w.Key("created").UInt(view.created);
  w.Key("last_used").UInt(view.last_used);
  w.Key("ttl");
  view.ttl_seconds > 0 ? w.UInt(view.ttl_seconds) : w.Null();
  w.Key("pinned").Bool(view.pinned);
  w.Key("in_use").Bool(view.in_use);
  w.Key("other_model").Bool(view.other_model);
  w.Key("tiers").BeginObject();
  WriteTier(w, "hot", view.hot);
  WriteTier(w, "host", view.host);
  WriteTier(w, "disk", view.disk);
  w.EndObject();
  w.Key("reusable_tokens").UInt(view.reusable_tokens);
  WriteCost(w, view);
}

std::string ListBody(const SessionAnswer& answer) {
  std::string body;
  JsonWriter w(&body);
  w.BeginObject().Key("object").String("list").Key("data").BeginArray();
  for (const SessionView& view : answer.sessions) {
    w.BeginObject();
    WriteView(w, view);
    w.EndObject();
  }
  w.EndArray();
  w.Key("has_more").Bool(answer.more);
  w.EndObject();
  return body;
}

// What the verb did, besides what the session is now.
void WriteDeed(JsonWriter& w, const SessionCommand& command, const SessionAnswer& answer) {
  switch (command.verb) {
    case SessionVerb::kSuspend:
      w.Key("stored_tokens").UInt(answer.moved_tokens);
      w.Key("durable").Bool(answer.durable);
      return;
    case SessionVerb::kPin: w.Key("pinned_tokens").UInt(answer.moved_tokens); [[fallthrough]];
    case SessionVerb::kFork: w.Key("durable").Bool(answer.durable); return;
    case SessionVerb::kDelete:
      w.Key("id").String(command.name.id);
      w.Key("deleted").Bool(true);
      w.Key("durable").Bool(answer.durable);
      return;
    case SessionVerb::kRestore:
    case SessionVerb::kSave:
      w.Key("file").String(command.other);
      w.Key("file_bytes").UInt(answer.moved_bytes);
      if (command.verb == SessionVerb::kSave) return;
      [[fallthrough]];
    case SessionVerb::kResume:
    case SessionVerb::kPrefetch: w.Key("loaded_tokens").UInt(answer.moved_tokens); return;
    case SessionVerb::kList:
    case SessionVerb::kShow: return;
  }
}

ApiError NotThere(const SessionCommand& command, const SessionAnswer& answer) {
  std::string message(answer.status.message());
  if (message.empty()) message = fmt::format("there is no session {}", Excerpt(command.name.id));
  return {.status = 404, .message = std::move(message), .code = "session_not_found"};
}

ApiError ErrorOf(const SessionCommand& command, const SessionAnswer& answer) {
  std::string message(answer.status.message());
  switch (answer.status.code()) {
    case Code::kInvalid:
      if (command.verb == SessionVerb::kPrefetch) return InvalidBody(std::move(message));
      return {.status = 409, .message = std::move(message), .code = "session_conflict"};
    case Code::kOverloaded:
    case Code::kUnavailable:
      return {.status = 503,
              .message = std::move(message),
              .type = "server_error",
              .code = answer.status.code() == Code::kOverloaded ? "overloaded" : "tier_unavailable",
              .retry_after_seconds = 1};
    case Code::kCorrupt: return {.status = 422, .message = std::move(message), .code = "session_damaged"};
    case Code::kOk:
    case Code::kInternal: break;
  }
  return ServerFault(std::move(message));
}

}  // namespace

HttpResponse SessionPage(const SessionCommand& command, const SessionAnswer& answer) {
  if (!answer.found) return ErrorResponse(NotThere(command, answer));
  if (!answer.status.ok()) return ErrorResponse(ErrorOf(command, answer));
  HttpResponse response;
  if (command.verb == SessionVerb::kList) {
    response.body = ListBody(answer);
    return response;
  }
  JsonWriter w(&response.body);
  w.BeginObject();
  if (!answer.sessions.empty()) WriteView(w, answer.sessions[0]);
  WriteDeed(w, command, answer);
  w.EndObject();
  return response;
}

}  // namespace cachalot::server
