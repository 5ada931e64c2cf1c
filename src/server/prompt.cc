#include "server/prompt.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "server/cache_salt.h"
#include "server/chat_text.h"
#include "server/field_reader.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace cachalot::server {
namespace {

// Of completions that name no limit, as in the API that this one follows.
constexpr uint32_t kCompletionMaxTokens = 16;

// More values than this cost too much memory once parsed (some 100 bytes each); a prompt of a million token ids fits.
constexpr int64_t kMaxJsonValues = 2'000'000;

// Logprob entries that echo may ask for: prompt tokens times those told of each (about 60 bytes of JSON each).
constexpr uint64_t kMaxEchoEntries = 2'000'000;

std::optional<ApiError> CheckModel(const ServedModel& model, const std::string& wanted) {
  if (wanted.empty()) return std::nullopt;
  if (std::find(model.names.begin(), model.names.end(), wanted) != model.names.end()) return std::nullopt;
  return UnknownModel(model, wanted);
}

std::optional<ApiError> CheckSampling(const SamplingParams& sampling, uint32_t vocabulary) {
  const std::vector<std::string> problems = cachalot::Problems(sampling, vocabulary);
  if (problems.empty()) return std::nullopt;
  // A problem starts with the name of its field.
  return ApiError{.status = 400,
                  .message = fmt::format("{}", fmt::join(problems, "; ")),
                  .param = problems[0].substr(0, problems[0].find(' '))};
}

std::optional<ApiError> CheckTokens(const std::vector<TokenId>& tokens, uint32_t vocabulary, const std::string& path) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < vocabulary) continue;
    return InvalidField(ElementPath(path, i),
                        fmt::format("token {} is outside the vocabulary of {} tokens", tokens[i], vocabulary));
  }
  return std::nullopt;
}

// A text that is far too long whatever its tokens are is refused before it is read: megabytes of it would keep a text
// worker busy for seconds.
std::optional<ApiError> CheckLength(const ServedModel& model, std::string_view text) {
  constexpr uint64_t kMostComposed = 4;  // bytes of which normalisation makes one, at most
  if (model.longest_token_bytes == 0) return std::nullopt;
  const uint64_t least = text.size() / (kMostComposed * model.longest_token_bytes);
  if (least <= model.context_tokens) return std::nullopt;
  return ContextLengthExceeded(fmt::format("the model's context is {} tokens; the prompt's {} bytes are at least {}",
                                           model.context_tokens, text.size(), least));
}

ApiResult<PreparedPrompt> PrepareChat(const PrepareContext& context, const ApiRequest& request) {
  ApiResult<std::string> text = RenderChat(context.model, request, context.unix_seconds);
  if (auto* error = std::get_if<ApiError>(&text)) return std::move(*error);
  if (auto error = CheckLength(context.model, std::get<std::string>(text))) return *error;
  PreparedPrompt prompt;
  prompt.tokens = context.model.tokenizer->Encode(std::get<std::string>(text), {.add_bos = false});
  if (prompt.tokens.empty()) return InvalidField("messages", "they give an empty prompt");
  return prompt;
}

ApiResult<PreparedPrompt> PrepareCompletion(const PrepareContext& context, const ApiRequest& request, size_t index) {
  const text::Tokenizer& tokenizer = *context.model.tokenizer;
  const bool several = request.prompts.size() > 1;
  const std::string path = several ? ElementPath("prompt", index) : "prompt";
  PreparedPrompt prompt;
  if (const auto* ids = std::get_if<1>(&request.prompts[index])) {
    if (auto error = CheckTokens(*ids, tokenizer.vocabulary_size(), path)) return *error;
    prompt.tokens = *ids;
    if (request.echo) prompt.text = tokenizer.Decode(prompt.tokens, true);
    return prompt;
  }
  const std::string& text = std::get<0>(request.prompts[index]);
  if (auto error = CheckLength(context.model, text)) return *error;
  prompt.tokens = tokenizer.Encode(text, {.add_bos = true});
  if (prompt.tokens.empty()) return InvalidField(path, "gives no token");
  if (request.echo) {
    prompt.text = text;
    prompt.added_bos = tokenizer.adds_bos() && prompt.tokens.front() == tokenizer.bos() &&
                       !text.starts_with(tokenizer.Spelling(prompt.tokens.front()));
  }
  return prompt;
}

// Settles max_tokens, or says that prompt and answer don't fit the context.
std::optional<ApiError> FitContext(const PrepareContext& context, const ApiRequest& request, PreparedPrompt* prompt) {
  const uint64_t prompt_tokens = prompt->tokens.size();
  const uint64_t allowed = context.model.context_tokens;
  const uint64_t least = request.max_tokens.value_or(1);
  if (prompt_tokens + least > allowed) {
    return ContextLengthExceeded(
        fmt::format("the model's context is {} tokens; this request needs {}: {} of the prompt and {} of the answer",
                    allowed, prompt_tokens + least, prompt_tokens, least));
  }
  if (request.max_tokens) {
    prompt->max_tokens = *request.max_tokens;
    return std::nullopt;
  }
  uint64_t rest = allowed - prompt_tokens;
  // The choices share the prompt's blocks. A pool that does not even hold the prompt is for the engine to refuse.
  const uint64_t pool = context.model.pool_tokens;
  if (pool >= prompt_tokens + request.n) rest = std::min(rest, (pool - prompt_tokens) / request.n);
  const Load& caps = context.caps;
  if (caps.context_tokens > prompt_tokens) rest = std::min(rest, caps.context_tokens - prompt_tokens);
  if (caps.output_tokens >= request.n) rest = std::min(rest, caps.output_tokens / request.n);
  const uint64_t cap = request.endpoint == Endpoint::kChat ? context.default_max_tokens : kCompletionMaxTokens;
  prompt->max_tokens = static_cast<uint32_t>(cap == 0 ? rest : std::min(rest, cap));
  return std::nullopt;
}

PrefixScope ScopeOf(const PrepareContext& context, const ApiRequest& request, std::span<const TokenId> tokens) {
  PrefixScope scope{.salt = context.salt, .public_tokens = 0};
  if (!request.cache_salt.empty()) scope.salt = NarrowedSalt(scope.salt, request.cache_salt);
  if (context.public_prefixes != nullptr) scope.public_tokens = context.public_prefixes->CommonTokens(tokens);
  return scope;
}

// The session that head or body name.
std::optional<ApiError> SettleSession(const PrepareContext& context, ApiRequest* request) {
  SessionFields& session = request->session;
  if (!context.session.empty()) {
    if (auto problem = SessionIdProblem(context.session)) return InvalidField("X-Cachalot-Session", *problem);
    if (!session.id.empty() && session.id != context.session) {
      return InvalidField("kv.session", fmt::format("is {}, but the header X-Cachalot-Session says {}",
                                                    Excerpt(session.id), Excerpt(context.session)));
    }
    session.id = context.session;
  }
  if (session.id.empty()) {
    if (session.ttl_seconds > 0) return InvalidField("kv.session_ttl", "is given, but no session is named");
  } else if (request->prompts.size() > 1) {
    return InvalidField("prompt", fmt::format("has {} prompts; a session has one", request->prompts.size()));
  }
  return std::nullopt;
}

// The logprobs of long prompts, many prompts or many copies of one would fill the memory.
std::optional<ApiError> CheckEcho(const PreparedRequest& prepared) {
  const ApiRequest& request = prepared.api;
  if (!request.echo || request.sampling.logprobs < 0) return std::nullopt;
  uint64_t entries = 0;
  for (const PreparedPrompt& prompt : prepared.prompts) entries += prompt.tokens.size();
  entries *= uint64_t{request.n} * (static_cast<uint64_t>(request.sampling.logprobs) + 1);
  if (entries <= kMaxEchoEntries) return std::nullopt;
  return InvalidField("echo", fmt::format("the logprobs of these prompts are {} values; at most {} are given at once",
                                          entries, kMaxEchoEntries));
}

std::vector<TokenId> EndTokens(const text::Tokenizer& tokenizer, const ApiRequest& request) {
  std::vector<TokenId> ends = request.stop_token_ids;
  if (!request.ignore_eos) ends.insert(ends.end(), tokenizer.end_tokens().begin(), tokenizer.end_tokens().end());
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

}  // namespace

ApiError UnknownModel(const ServedModel& model, const std::string& wanted) {
  return {.status = 404,
          .message = fmt::format("the model {} does not exist; this server has {}", Excerpt(wanted), model.names[0]),
          .param = "model",
          .code = "model_not_found"};
}

ApiError ContextLengthExceeded(std::string message) {
  return {.status = 400, .message = std::move(message), .code = "context_length_exceeded"};
}

ApiResult<Json> ParseBody(std::string_view body) {
  if (body.empty()) return InvalidBody("the body is empty; expected a JSON object");
  if (std::count(body.begin(), body.end(), ',') > kMaxJsonValues) {
    return InvalidBody(fmt::format("the body has more than {} values", kMaxJsonValues));
  }
  Result<Json> json = ParseJson(body);
  if (!json.ok()) return InvalidBody(json.status().message());
  return std::move(json).value();
}

ApiResult<PreparedRequest> PrepareRequest(const PrepareContext& context, Endpoint endpoint, std::string_view body) {
  const auto parse = [&]() -> ApiResult<ApiRequest> {
    const ApiResult<Json> json = ParseBody(body);
    if (const auto* error = std::get_if<ApiError>(&json)) return *error;
    const Json& value = std::get<Json>(json);
    return endpoint == Endpoint::kChat ? ParseChatRequest(value) : ParseCompletionRequest(value);
  };
  return PrepareRequest(context, parse());
}

ApiResult<PreparedRequest> PrepareRequest(const PrepareContext& context, ApiResult<ApiRequest> parsed) {
  if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  PreparedRequest out{.api = std::get<ApiRequest>(std::move(parsed)), .tenant = context.tenant};
  if (auto error = SettleSession(context, &out.api)) return *error;
  const ApiRequest& request = out.api;
  const text::Tokenizer& tokenizer = *context.model.tokenizer;
  const uint32_t vocabulary = tokenizer.vocabulary_size();
  if (auto error = CheckModel(context.model, request.model)) return *error;
  if (auto error = CheckSampling(request.sampling, vocabulary)) return *error;
  if (auto error = CheckTokens(request.stop_token_ids, vocabulary, "stop_token_ids")) return *error;

  const bool chat = request.endpoint == Endpoint::kChat;
  const size_t prompts = chat ? 1 : request.prompts.size();
  for (size_t i = 0; i < prompts; ++i) {
    ApiResult<PreparedPrompt> prompt = chat ? PrepareChat(context, request) : PrepareCompletion(context, request, i);
    if (auto* error = std::get_if<ApiError>(&prompt)) return std::move(*error);
    out.prompts.push_back(std::get<PreparedPrompt>(std::move(prompt)));
    if (auto error = FitContext(context, request, &out.prompts.back())) return *error;
    out.prompts.back().scope = ScopeOf(context, request, out.prompts.back().tokens);
  }
  if (auto error = CheckEcho(out)) return *error;
  out.end_tokens = EndTokens(tokenizer, request);
  if (!request.stop.empty()) {
    Result<std::shared_ptr<const text::StopSet>> stops = text::StopSet::Create(request.stop);
    if (!stops.ok()) return InvalidField("stop", stops.status().message());
    out.stops = std::move(stops).value();
  }
  // The texts have served; a request may wait for long.
  out.api.messages = out.api.tools = out.api.template_variables = Json();
  out.api.prompts.clear();
  return out;
}

}  // namespace cachalot::server
