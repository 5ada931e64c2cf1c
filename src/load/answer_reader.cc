#include "load/answer_reader.h"

#include <algorithm>

#include <fmt/format.h>

namespace cachalot::load {
namespace {

constexpr size_t kErrorBodyBytes = 4096;
constexpr size_t kErrorMessageBytes = 300;

// A count in the usage; zero for what is none.
uint64_t CountIn(const Json& object, std::string_view key) {
  const Json* value = object.Find(key);
  const int64_t* count = value == nullptr ? nullptr : value->AsInt();
  return count == nullptr ? 0 : static_cast<uint64_t>(std::max<int64_t>(*count, 0));
}

std::string_view TextIn(const Json& object, std::string_view key) {
  const Json* value = object.Find(key);
  const std::string* text = value == nullptr ? nullptr : value->AsString();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

}  // namespace

void AnswerReader::OnHead(const ResponseHead& head) {
  answer_.status = head.status;
  answer_.failed = head.status != 200;
  is_stream_ = head.content_type.starts_with("text/event-stream");
}

Status AnswerReader::OnBody(std::string_view bytes) {
  if (answer_.status != 200) {
    error_body_.append(bytes.substr(0, kErrorBodyBytes - error_body_.size()));
    return OkStatus();
  }
  if (!is_stream_) return Invalid("the answer is not an event stream");
  return events_.Feed(bytes, [this](std::string_view data) { return OnEvent(data); });
}

void AnswerReader::OnEnd() {
  if (error_body_.empty()) return;
  const Result<Json> body = ParseJson(error_body_);
  const Json* error = body.ok() ? body.value().Find("error") : nullptr;
  OnError(error == nullptr ? Json(error_body_) : *error);
}

void AnswerReader::OnError(const Json& error) {
  answer_.failed = true;
  const std::string* text = error.AsString();
  answer_.error_message =
      (text == nullptr ? TextIn(error, "message") : std::string_view(*text)).substr(0, kErrorMessageBytes);
}

Status AnswerReader::OnEvent(std::string_view data) {
  if (data == "[DONE]") {
    answer_.finished = true;
    return OkStatus();
  }
  const Result<Json> event = ParseJson(data);
  if (!event.ok()) return event.status().Annotate("event of the stream");
  const Json& value = event.value();
  if (value.AsObject() == nullptr)
    return Invalid(fmt::format("event of the stream: {} instead of object", value.TypeName()));
  if (const Json* error = value.Find("error"); error != nullptr && !error->is_null()) OnError(*error);
  if (const Json* usage = value.Find("usage"); usage != nullptr && usage->AsObject() != nullptr) OnUsage(*usage);
  const Json* choices = value.Find("choices");
  if (choices == nullptr || choices->AsArray() == nullptr || choices->AsArray()->empty()) return OkStatus();
  OnChoice(choices->AsArray()->front());
  return OkStatus();
}

void AnswerReader::OnChoice(const Json& choice) {
  if (const Json* delta = choice.Find("delta")) {
    OnPiece(TextIn(*delta, "reasoning_content"));
    OnPiece(TextIn(*delta, "content"));
  } else {
    OnPiece(TextIn(choice, "text"));
  }
  if (!TextIn(choice, "finish_reason").empty()) {
    answer_.finished = true;
    if (!answer_.first_piece) answer_.first_piece = clock_.Now();
  }
}

void AnswerReader::OnPiece(std::string_view text) {
  if (text.empty()) return;
  const Nanos now = clock_.Now();
  if (answer_.pieces++ == 0) {
    answer_.first_piece = now;
  } else {
    answer_.gaps.push_back(now - last_piece_);
  }
  last_piece_ = now;
  answer_.text.append(text);
}

void AnswerReader::OnUsage(const Json& usage) {
  TokenUsage tokens;
  tokens.prompt_tokens = CountIn(usage, "prompt_tokens");
  tokens.output_tokens = CountIn(usage, "completion_tokens");
  const Json* details = usage.Find("prompt_tokens_details");
  if (details != nullptr && details->Find("cached_tokens") != nullptr) {
    tokens.cached_tokens = CountIn(*details, "cached_tokens");
  }
  answer_.usage = tokens;
}

}  // namespace cachalot::load
