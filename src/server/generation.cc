#include "server/generation.h"

#include <algorithm>
#include <utility>

#include "text/text_stop_condition.h"
#include "text/tokenizer.h"

namespace cachalot::server {
namespace {

std::string_view FinishName(engine::FinishReason reason) {
  return reason == engine::FinishReason::kLength ? "length" : "stop";
}

HttpResponse StreamHead() {
  HttpResponse head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  return head;
}

}  // namespace

Generation::Generation(Context context, PreparedRequest prepared, AnswerFormat::Head head,
                       std::shared_ptr<Exchange> exchange, Nanos arrived)
    : context_(context),
      request_(std::move(prepared.api)),
      end_tokens_(std::move(prepared.end_tokens)),
      stops_(std::move(prepared.stops)),
      format_(std::move(head), *context.model.tokenizer),
      exchange_(std::move(exchange)),
      arrived_(arrived),
      prepared_(std::move(prepared.prompts)),
      open_prompts_(prepared_.size()),
      last_sent_(arrived) {
  for (PreparedPrompt& source : prepared_) {
    Prompt& prompt = prompts_.emplace_back();
    prompt.open_choices = request_.n;
    prompt.text = std::move(source.text);
    prompt.added_bos = source.added_bos;
    prompt.code_points = CountCodePoints(prompt.text);
    if (request_.echo && wants_logprobs()) prompt.tokens = source.tokens;
    for (uint32_t i = 0; i < request_.n; ++i) {
      choices_.push_back({.stream = ChoiceStream(*context.model.tokenizer, stops_, prompt.code_points)});
    }
  }
}

engine::GenerateRequest Generation::TakeRequest(size_t prompt, RequestId id, uint64_t seed) {
  engine::GenerateRequest request;
  request.id = id;
  request.prompt = std::move(prepared_[prompt].tokens);
  request.max_tokens = prepared_[prompt].max_tokens;
  request.scope = prepared_[prompt].scope;
  if (request_.retention) request.retention = *request_.retention;
  if (!request_.session.id.empty()) request.session = engine::SessionName{.owner = {}, .id = request_.session.id};
  request.session_ttl_seconds = request_.session.ttl_seconds;
  request.returns = request_.session.returns;
  request.n = request_.n;
  request.sampling = request_.sampling;
  if (!request_.has_seed) request.sampling.seed = seed;
  request.end_tokens = end_tokens_;
  if (stops_ != nullptr) {
    request.stop = [tokenizer = context_.model.tokenizer, stops = stops_] {
      return std::make_unique<text::TextStopCondition>(*tokenizer, stops);
    };
  }
  if (request_.echo) request.prompt_logprobs = request_.sampling.logprobs;
  return request;
}

// Null `sampled`: the prompt's first token, which no logprob belongs to.
void Generation::AddPromptToken(Prompt& prompt, size_t index, const SampledToken* sampled, LogprobsText* out) {
  ShownToken shown{.token = {}, .offset = prompt.offset};
  if (sampled != nullptr) {
    shown.token = *sampled;
    format_.AppendLogprobs(out, shown, static_cast<uint32_t>(request_.sampling.logprobs));
  } else {
    shown.token.token = prompt.tokens[index];
    format_.AppendNoLogprob(out, shown);
  }
  const bool outside_text = prompt.added_bos && index == 0;
  if (outside_text) return;
  std::string_view bytes = context_.model.tokenizer->TokenBytes(prompt.tokens[index], /*with_special=*/true);
  const bool first_of_text = index == (prompt.added_bos ? 1 : 0);
  if (first_of_text && context_.model.tokenizer->strips_first_space() && bytes.starts_with(' ')) bytes.remove_prefix(1);
  prompt.offset += CountCodePoints(bytes);
}

void Generation::OnPrompt(size_t prompt_index, const engine::PromptEvent& event) {
  Prompt& prompt = prompts_[prompt_index];
  LogprobsText added;
  for (size_t i = 0; i < event.tokens.size(); ++i) {
    const size_t index = event.first + i;
    if (index >= prompt.tokens.size()) break;
    if (prompt.next == 0) {
      AddPromptToken(prompt, 0, nullptr, &added);
      prompt.next = 1;
    }
    if (index != prompt.next) continue;
    AddPromptToken(prompt, index, &event.tokens[i], &added);
    prompt.next = index + 1;
  }
  AppendToChoices(prompt_index, added);
}

void Generation::AppendToChoices(size_t prompt, const LogprobsText& logprobs) {
  for (uint32_t i = 0; i < request_.n; ++i) ChoiceOf(prompt, i).logprobs.Append(logprobs);
}

// The echo comes before the first token, with the entry of a prompt of one token, which no event spoke of.
void Generation::Begin(size_t prompt_index, Choice& choice) {
  if (choice.begun) return;
  choice.begun = true;
  Prompt& prompt = prompts_[prompt_index];
  choice.text = prompt.text;
  if (prompt.next > 0 || prompt.tokens.empty()) return;
  LogprobsText added;
  AddPromptToken(prompt, 0, nullptr, &added);
  prompt.next = 1;
  AppendToChoices(prompt_index, added);
}

void Generation::OnToken(size_t prompt, const engine::TokenEvent& event) {
  Choice& choice = ChoiceOf(prompt, event.choice);
  Begin(prompt, choice);
  ObserveToken(choice);
  // An end token ends the choice and is not part of its text.
  if (std::binary_search(end_tokens_.begin(), end_tokens_.end(), event.token.token)) return;
  choice.stream.Push(event.token);
  Collect(choice);
}

void Generation::OnFinish(size_t prompt_index, const engine::FinishEvent& event) {
  Prompt& prompt = prompts_[prompt_index];
  Choice& choice = ChoiceOf(prompt_index, event.choice);
  if (prompt.open_choices == request_.n) {
    usage_.prompt_tokens += event.prompt_tokens;
    usage_.cached_tokens += event.cached_tokens;
    context_.metrics.Observe(Histogram::kPromptTokens, event.prompt_tokens);
  }
  --prompt.open_choices;
  if (prompt.open_choices == 0) --open_prompts_;
  usage_.output_tokens += event.output_tokens;
  context_.metrics.Observe(Histogram::kOutputTokens, event.output_tokens);
  if (minds_kv()) CountKv(prompt, event);
  if (event.reason == engine::FinishReason::kError) return Fail(ServerFault(event.error.message()));
  if (event.reason == engine::FinishReason::kCancelled) return Fail(ShuttingDown());
  Begin(prompt_index, choice);
  choice.stream.Finish();
  Collect(choice);
  choice.finish_reason = FinishName(event.reason);
  context_.metrics.Add(Counter::kRequests, 1, choice.finish_reason);
}

void Generation::CountKv(Prompt& prompt, const engine::FinishEvent& event) {
  if (!usage_.kv) usage_.kv.emplace();
  KvUsage& kv = *usage_.kv;
  const engine::RetentionReport& report = event.retention;
  kv.kept = kv.kept && report.kept;
  if (event.session) kv.session = {request_.session.id, *event.session};
  const bool mixed = kv.pin != engine::PinOutcome::kNotAsked && kv.pin != report.pin;
  kv.pin = mixed ? engine::PinOutcome::kShortened : report.pin;
  // The choices share the prompt.
  const uint64_t of_prompt = std::min(report.pinned_tokens, event.prompt_tokens);
  const uint64_t more = of_prompt - std::min(of_prompt, prompt.pinned_tokens);
  prompt.pinned_tokens += more;
  kv.pinned_tokens += more + report.pinned_tokens - of_prompt;
}

void Generation::Collect(Choice& choice) {
  choice.text += choice.stream.TakeText();
  for (const ShownToken& shown : choice.stream.TakeTokens()) {
    if (wants_logprobs()) {
      format_.AppendLogprobs(&choice.logprobs, shown, static_cast<uint32_t>(request_.sampling.logprobs));
    }
  }
}

void Generation::ObserveToken(Choice& choice) {
  const Nanos now = context_.clock.Now();
  if (!any_token_) context_.metrics.Observe(Histogram::kTimeToFirstToken, ToSeconds(now - arrived_));
  if (choice.last_token) context_.metrics.Observe(Histogram::kInterTokenTime, ToSeconds(now - *choice.last_token));
  any_token_ = true;
  choice.last_token = now;
}

void Generation::Fail(const ApiError& error) {
  if (done_) return;
  done_ = true;
  context_.metrics.Add(Counter::kRequests, 1, error.status >= 500 ? "error" : "rejected");
  if (!stream_begun_) return exchange_->Respond(ErrorResponse(error));
  exchange_->Write("data: " + ErrorBody(error) + "\n\n");
  exchange_->EndStream();
}

void Generation::Flush() {
  if (done_) return;
  if (request_.stream) {
    SendStream();
  } else if (open_prompts_ == 0) {
    SendWhole();
  }
  if (done_) context_.metrics.Observe(Histogram::kRequestTime, ToSeconds(context_.clock.Now() - arrived_));
}

ChoicePart Generation::PartOf(size_t index) const {
  const Choice& choice = choices_[index];
  return {.index = static_cast<uint32_t>(index),
          .text = choice.text,
          .logprobs = wants_logprobs() ? &choice.logprobs : nullptr,
          .finish_reason = choice.finish_reason};
}

void Generation::SendWhole() {
  std::vector<ChoicePart> parts;
  for (size_t i = 0; i < choices_.size(); ++i) parts.push_back(PartOf(i));
  HttpResponse response;
  response.headers = {{"X-Request-Id", format_.id()}};
  response.body = format_.WholeAnswer(parts, usage_);
  exchange_->Respond(std::move(response));
  done_ = true;
}

void Generation::AppendEvents(size_t index, std::string* out) {
  Choice& choice = choices_[index];
  if (!choice.begun || choice.finish_sent) return;
  const bool finished = !choice.finish_reason.empty();
  if (request_.endpoint == Endpoint::kChat && !std::exchange(choice.role_sent, true)) {
    format_.AppendRoleChunk(out, static_cast<uint32_t>(index));
  }
  if (!choice.text.empty() || (finished && !choice.logprobs.empty())) {
    ChoicePart part = PartOf(index);
    part.finish_reason = {};
    format_.AppendTextChunk(out, part);
    choice.text.clear();
    choice.logprobs = {};
  }
  if (!finished) return;
  format_.AppendFinishChunk(out, {.index = static_cast<uint32_t>(index), .finish_reason = choice.finish_reason});
  choice.finish_sent = true;
}

void Generation::SendStream() {
  std::string events;
  for (size_t i = 0; i < choices_.size(); ++i) AppendEvents(i, &events);
  done_ = open_prompts_ == 0;
  if (done_ && request_.include_usage) format_.AppendUsageChunk(&events, usage_);
  if (done_) events += kDoneEvent;
  WriteStream(events);
  if (done_) exchange_->EndStream();
}

void Generation::WriteStream(const std::string& events) {
  if (events.empty()) return;
  last_sent_ = context_.clock.Now();
  if (std::exchange(stream_begun_, true)) return exchange_->Write(events);
  HttpResponse head = StreamHead();
  head.headers.emplace_back("X-Request-Id", format_.id());
  head.body = events;
  exchange_->BeginStream(std::move(head));
}

void Generation::SendHeartbeat(Nanos silence) {
  if (done_ || !request_.stream || context_.clock.Now() - last_sent_ < silence) return;
  WriteStream(std::string(kHeartbeat));
}

}  // namespace cachalot::server
