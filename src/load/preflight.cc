#include "load/preflight.h"

#include <fmt/format.h>

#include "base/json.h"
#include "load/record.h"

namespace cachalot::load {
namespace {

constexpr uint64_t kSmallProbeWords = 32;
constexpr uint64_t kLargeProbeWords = 160;

Result<std::string> FirstModel(const LoadOptions& options, const Url& url, Asker* asker) {
  const Status hint = Unavailable("no model is named and GET " + url.path + "/models tells none");
  Result<Json> answer = asker->AskForJson(FormatRequest(url, options.api_key, "/models", nullptr));
  if (!answer.ok()) return answer.status().Annotate(hint.message());
  const Json* data = answer->Find("data");
  if (data == nullptr || data->AsArray() == nullptr || data->AsArray()->empty()) return hint;
  const Json* id = data->AsArray()->front().Find("id");
  if (id == nullptr || id->AsString() == nullptr) return hint;
  return *id->AsString();
}

Result<TokenProbe> Measure(const LoadOptions& options, const Target& target, uint64_t words, Asker* asker) {
  Turn turn{.text = {}, .max_tokens = 1, .think = Nanos(0)};
  AppendWords({.seed = options.seed, .kind = TextKind::kProbe, .index = words, .part = 0}, words, &turn.text);
  Session session;
  session.turns.push_back(std::move(turn));
  const RequestRecord record =
      asker->AskForAnswer(FormatTurn(options, target, Conversation(std::move(session), target.style).Body()));
  if (record.outcome != Outcome::kOk) {
    return Unavailable(fmt::format("the first request failed: {}: {}", OutcomeName(record.outcome), record.why));
  }
  return TokenProbe{words, record.answer.usage ? record.answer.usage->prompt_tokens : 0};
}

}  // namespace

std::string FormatTurn(const LoadOptions& options, const Target& target, const std::string& body) {
  const bool chat = target.style.endpoint == Endpoint::kChat;
  return FormatRequest(target.url, options.api_key, chat ? "/chat/completions" : "/completions", &body);
}

Result<Target> Preflight(const LoadOptions& options, const Url& url, Asker* asker) {
  Target target{.url = url,
                .style = {.endpoint = options.endpoint == "chat" ? Endpoint::kChat : Endpoint::kCompletions,
                          .model = options.model,
                          .ignore_eos = options.ignore_eos},
                .fit = {}};
  if (target.style.model.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(target.style.model, FirstModel(options, url, asker));
  }
  if (options.tokens_per_word > 0) {
    target.fit.tokens_per_word = options.tokens_per_word;
    return target;
  }
  CACHALOT_ASSIGN_OR_RETURN(const TokenProbe small, Measure(options, target, kSmallProbeWords, asker));
  CACHALOT_ASSIGN_OR_RETURN(const TokenProbe large, Measure(options, target, kLargeProbeWords, asker));
  target.fit = FitTokens(small, large);
  return target;
}

}  // namespace cachalot::load
