#include "load/conversation.h"

#include "base/json.h"

namespace cachalot::load {
namespace {

void AppendMessage(std::string_view role, std::string_view content, std::string* messages) {
  if (!messages->empty()) *messages += ',';
  JsonWriter writer(messages);
  writer.BeginObject();
  writer.Key("role").String(role);
  writer.Key("content").String(content);
  writer.EndObject();
}

// Words have a space before them; a message needs none.
std::string_view WithoutSpace(std::string_view text) {
  if (text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

}  // namespace

Conversation::Conversation(Session session, const RequestStyle& style) : session_(std::move(session)), style_(style) {
  if (style_.endpoint == Endpoint::kCompletions) {
    history_ = session_.prefix;
  } else if (!session_.prefix.empty()) {
    AppendMessage("system", WithoutSpace(session_.prefix), &history_);
  }
  BeginTurn();
}

void Conversation::BeginTurn() {
  if (!has_turn()) return;
  const std::string& text = session_.turns[turn_].text;
  if (style_.endpoint == Endpoint::kCompletions) {
    history_ += text;
  } else {
    AppendMessage("user", WithoutSpace(text), &history_);
  }
}

void Conversation::Answered(std::string_view answer) {
  if (style_.endpoint == Endpoint::kCompletions) {
    history_ += answer;
  } else {
    AppendMessage("assistant", answer, &history_);
  }
  ++turn_;
  BeginTurn();
}

std::string Conversation::Body(std::string_view more) const {
  std::string body = "{";
  if (style_.endpoint == Endpoint::kChat) {
    body += "\"messages\":[" + history_ + "]";
  } else {
    body += "\"prompt\":";
    JsonWriter(&body).String(WithoutSpace(history_));
  }
  if (!style_.model.empty()) {
    body += ",\"model\":";
    JsonWriter(&body).String(style_.model);
  }
  body += ",\"max_tokens\":";
  JsonWriter(&body).UInt(session_.turns[turn_].max_tokens);
  body += ",\"temperature\":0,\"stream\":true,\"stream_options\":{\"include_usage\":true}";
  if (style_.ignore_eos) body += ",\"ignore_eos\":true";
  if (!more.empty()) body.append(",").append(more);
  return body + "}";
}

}  // namespace cachalot::load
