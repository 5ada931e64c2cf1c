#include "server/answer_format.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

namespace cachalot::server {
namespace {

// What the API tells in place of logarithms that are infinite or nearly so.
constexpr float kLowestLogprob = -9999.0f;

float Told(float logprob) { return std::max(logprob, kLowestLogprob); }

void Comma(std::string* list) {
  if (!list->empty()) list->push_back(',');
}

void WriteHead(JsonWriter& w, const AnswerFormat::Head& head, std::string_view object) {
  w.Key("id").String(head.id);
  w.Key("object").String(object);
  w.Key("created").Int(head.created);
  w.Key("model").String(head.model);
  w.Key("system_fingerprint").String(head.fingerprint);
}

std::string_view PinName(engine::PinOutcome outcome) {
  switch (outcome) {
    case engine::PinOutcome::kWhole: return "whole";
    case engine::PinOutcome::kShortened: return "shortened";
    case engine::PinOutcome::kRefused:
    case engine::PinOutcome::kNotAsked: break;
  }
  return "refused";
}

void WriteKvUsage(JsonWriter& w, const KvUsage& kv) {
  w.Key("kv").BeginObject();
  w.Key("kept").Bool(kv.kept);
  if (kv.pin != engine::PinOutcome::kNotAsked) {
    w.Key("pin").String(PinName(kv.pin));
    w.Key("pinned_tokens").UInt(kv.pinned_tokens);
  }
  if (kv.session) {
    w.Key("session").BeginObject();
    w.Key("id").String(kv.session->id);
    w.Key("history_tokens").UInt(kv.session->report.history_tokens);
    w.Key("extended_tokens").UInt(kv.session->report.extended_tokens);
    w.Key("kept").Bool(kv.session->report.kept);
    w.EndObject();
  }
  w.EndObject();
}

void WriteUsage(JsonWriter& w, const Usage& usage) {
  w.Key("usage").BeginObject();
  w.Key("prompt_tokens").UInt(usage.prompt_tokens);
  w.Key("completion_tokens").UInt(usage.output_tokens);
  w.Key("total_tokens").UInt(usage.prompt_tokens + usage.output_tokens);
  w.Key("prompt_tokens_details").BeginObject().Key("cached_tokens").UInt(usage.cached_tokens).EndObject();
  if (usage.kv) WriteKvUsage(w, *usage.kv);
  w.EndObject();
}

// `out` is what the writer appends to: lists are put in as they are.
void WriteLogprobs(JsonWriter& w, std::string* out, Endpoint endpoint, const LogprobsText* logprobs) {
  w.Key("logprobs");
  if (logprobs == nullptr) {
    w.Null();
    return;
  }
  const auto list = [&](std::string_view key, const std::string& elements) {
    w.Key(key).BeginArray();
    out->append(elements);
    w.EndArray();
  };
  w.BeginObject();
  if (endpoint == Endpoint::kChat) {
    list("content", logprobs->content);
    w.Key("refusal").Null();
  } else {
    list("tokens", logprobs->tokens);
    list("token_logprobs", logprobs->token_logprobs);
    list("top_logprobs", logprobs->top_logprobs);
    list("text_offset", logprobs->text_offset);
  }
  w.EndObject();
}

void WriteFinishReason(JsonWriter& w, std::string_view reason) {
  w.Key("finish_reason");
  if (reason.empty()) {
    w.Null();
  } else {
    w.String(reason);
  }
}

enum class Delta : uint8_t { kRole, kText, kNothing };

void WriteDelta(JsonWriter& w, Delta delta, std::string_view text) {
  w.Key("delta").BeginObject();
  if (delta == Delta::kRole) w.Key("role").String("assistant");
  if (delta != Delta::kNothing) w.Key("content").String(text);
  w.EndObject();
}

void AppendChunk(std::string* out, const AnswerFormat::Head& head, const ChoicePart& part, Delta delta) {
  const bool chat = head.endpoint == Endpoint::kChat;
  out->append("data: ");
  JsonWriter w(out);
  w.BeginObject();
  WriteHead(w, head, chat ? "chat.completion.chunk" : "text_completion");
  w.Key("choices").BeginArray().BeginObject();
  w.Key("index").UInt(part.index);
  if (chat) {
    WriteDelta(w, delta, part.text);
  } else {
    w.Key("text").String(part.text);
  }
  WriteLogprobs(w, out, head.endpoint, part.logprobs);
  WriteFinishReason(w, part.finish_reason);
  w.EndObject().EndArray();
  if (head.usage_in_chunks) w.Key("usage").Null();
  w.EndObject();
  out->append("\n\n");
}

void WriteWholeChoice(JsonWriter& w, std::string* out, Endpoint endpoint, const ChoicePart& part) {
  w.BeginObject();
  w.Key("index").UInt(part.index);
  if (endpoint == Endpoint::kChat) {
    w.Key("message").BeginObject();
    w.Key("role").String("assistant");
    w.Key("content").String(part.text);
    w.Key("refusal").Null();
    w.EndObject();
  } else {
    w.Key("text").String(part.text);
  }
  WriteLogprobs(w, out, endpoint, part.logprobs);
  WriteFinishReason(w, part.finish_reason);
  w.EndObject();
}

void WriteChatToken(JsonWriter& w, const text::Tokenizer& tokenizer, TokenId token, float logprob) {
  const std::string_view bytes = tokenizer.TokenBytes(token, /*with_special=*/true);
  w.Key("token").String(bytes);
  w.Key("logprob").Float(Told(logprob));
  w.Key("bytes").BeginArray();
  for (const char byte : bytes) w.UInt(static_cast<unsigned char>(byte));
  w.EndArray();
}

}  // namespace

void LogprobsText::Append(const LogprobsText& more) {
  const auto join = [](std::string* list, const std::string& tail) {
    if (tail.empty()) return;
    Comma(list);
    list->append(tail);
  };
  join(&content, more.content);
  join(&tokens, more.tokens);
  join(&token_logprobs, more.token_logprobs);
  join(&top_logprobs, more.top_logprobs);
  join(&text_offset, more.text_offset);
}

void AnswerFormat::AppendRoleChunk(std::string* out, uint32_t index) const {
  AppendChunk(out, head_, {.index = index}, Delta::kRole);
}

void AnswerFormat::AppendTextChunk(std::string* out, const ChoicePart& part) const {
  AppendChunk(out, head_, part, Delta::kText);
}

void AnswerFormat::AppendFinishChunk(std::string* out, const ChoicePart& part) const {
  AppendChunk(out, head_, part, Delta::kNothing);
}

void AnswerFormat::AppendUsageChunk(std::string* out, const Usage& usage) const {
  out->append("data: ");
  JsonWriter w(out);
  w.BeginObject();
  WriteHead(w, head_, head_.endpoint == Endpoint::kChat ? "chat.completion.chunk" : "text_completion");
  w.Key("choices").BeginArray().EndArray();
  WriteUsage(w, usage);
  w.EndObject();
  out->append("\n\n");
}

std::string AnswerFormat::WholeAnswer(const std::vector<ChoicePart>& choices, const Usage& usage) const {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  WriteHead(w, head_, head_.endpoint == Endpoint::kChat ? "chat.completion" : "text_completion");
  w.Key("choices").BeginArray();
  for (const ChoicePart& part : choices) WriteWholeChoice(w, &out, head_.endpoint, part);
  w.EndArray();
  WriteUsage(w, usage);
  w.EndObject();
  return out;
}

void AnswerFormat::AppendLogprobs(LogprobsText* out, const ShownToken& shown, uint32_t top) const {
  if (head_.endpoint == Endpoint::kChat) {
    AppendChatLogprobs(out, shown.token, top);
  } else {
    AppendCompletionLogprobs(out, shown, top);
  }
}

void AnswerFormat::AppendChatLogprobs(LogprobsText* out, const SampledToken& token, uint32_t top) const {
  Comma(&out->content);
  JsonWriter w(&out->content);
  w.BeginObject();
  WriteChatToken(w, tokenizer_, token.token, token.logprob);
  w.Key("top_logprobs").BeginArray();
  for (size_t i = 0; i < std::min<size_t>(top, token.top.size()); ++i) {
    w.BeginObject();
    WriteChatToken(w, tokenizer_, token.top[i].token, token.top[i].logprob);
    w.EndObject();
  }
  w.EndArray().EndObject();
}

// Bytes that are no text by themselves are spelled out, so that clients can tell such tokens apart.
std::string AnswerFormat::CompletionTokenText(TokenId token) const {
  const std::string_view bytes = tokenizer_.TokenBytes(token, /*with_special=*/true);
  if (FindInvalidUtf8(bytes) == std::string_view::npos) return std::string(bytes);
  std::string out = "bytes:";
  for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return out;
}

void AnswerFormat::AppendCompletionLogprobs(LogprobsText* out, const ShownToken& shown, uint32_t top) const {
  const std::string text = CompletionTokenText(shown.token.token);
  for (std::string* list : {&out->tokens, &out->token_logprobs, &out->top_logprobs, &out->text_offset}) Comma(list);
  JsonWriter(&out->tokens).String(text);
  JsonWriter(&out->token_logprobs).Float(Told(shown.token.logprob));
  JsonWriter(&out->text_offset).UInt(shown.offset);
  // The best ones and the token itself; names may coincide, and JSON allows each once.
  std::vector<std::string> named;
  JsonWriter w(&out->top_logprobs);
  w.BeginObject();
  const auto add = [&](std::string name, float logprob) {
    if (std::find(named.begin(), named.end(), name) != named.end()) return;
    w.Key(name).Float(Told(logprob));
    named.push_back(std::move(name));
  };
  for (size_t i = 0; i < std::min<size_t>(top, shown.token.top.size()); ++i) {
    add(CompletionTokenText(shown.token.top[i].token), shown.token.top[i].logprob);
  }
  add(text, shown.token.logprob);
  w.EndObject();
}

void AnswerFormat::AppendNoLogprob(LogprobsText* out, const ShownToken& shown) const {
  for (std::string* list : {&out->tokens, &out->token_logprobs, &out->top_logprobs, &out->text_offset}) Comma(list);
  JsonWriter(&out->tokens).String(CompletionTokenText(shown.token.token));
  JsonWriter(&out->token_logprobs).Null();
  JsonWriter(&out->top_logprobs).Null();
  JsonWriter(&out->text_offset).UInt(shown.offset);
}

}  // namespace cachalot::server
