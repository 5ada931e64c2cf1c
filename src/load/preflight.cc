#include "load/preflight.h"

#include <fmt/format.h>

#include "base/json.h"
#include "load/answer_reader.h"
#include "load/record.h"

namespace cachalot::load {
namespace {

constexpr size_t kModelsBytes = 1 << 20;
constexpr uint64_t kSmallProbeWords = 32;
constexpr uint64_t kLargeProbeWords = 160;

// A short answer, whole.
class Collector final : public HttpObserver {
 public:
  void OnHead(const ResponseHead& head) override { status_ = head.status; }
  Status OnBody(std::string_view bytes) override {
    if (body_.size() + bytes.size() > kModelsBytes) return Invalid("the answer is too long");
    body_.append(bytes);
    return OkStatus();
  }
  void OnEnd(HttpEnd end, const std::string& why) override {
    ended_ = true;
    if (end != HttpEnd::kComplete) failure_ = Unavailable(why);
    if (end == HttpEnd::kComplete && status_ != 200) failure_ = Unavailable(fmt::format("HTTP {}", status_));
  }
  bool ended() const { return ended_; }
  Result<Json> Take() const {
    if (!failure_.ok()) return failure_;
    return ParseJson(body_);
  }

 private:
  int status_ = 0;
  std::string body_;
  bool ended_ = false;
  Status failure_;
};

class Probe final : public HttpObserver {
 public:
  explicit Probe(const Clock& clock) : reader_(clock) {}
  void OnHead(const ResponseHead& head) override { reader_.OnHead(head); }
  Status OnBody(std::string_view bytes) override { return reader_.OnBody(bytes); }
  void OnEnd(HttpEnd end, const std::string& why) override {
    ended_ = true;
    reader_.OnEnd();
    record_.answer = reader_.Take();
    Classify(end, why, &record_);
  }
  bool ended() const { return ended_; }
  const RequestRecord& record() const { return record_; }

 private:
  AnswerReader reader_;
  bool ended_ = false;
  RequestRecord record_;
};

class Asker {
 public:
  Asker(const LoadOptions& options, const Clock& clock, HttpClient* client, FunctionRef<bool()> go_on)
      : options_(options), clock_(clock), client_(client), go_on_(go_on) {}

  template <class Observer>
  void Ask(std::string text, Observer* observer) {
    const Nanos timeout(static_cast<Nanos::rep>(options_.timeout * 1e9));
    client_->Send(std::move(text), clock_.Now() + timeout, observer);
    while (!observer->ended()) {
      client_->Run(timeout);
      if (!go_on_()) client_->AbortAll();
    }
  }

  Result<std::string> FirstModel(const Url& url) {
    Collector collector;
    Ask(FormatRequest(url, options_.api_key, "/models", nullptr), &collector);
    const Status hint = Unavailable("no model is named and GET " + url.path + "/models tells none");
    Result<Json> answer = collector.Take();
    if (!answer.ok()) return answer.status().Annotate(hint.message());
    const Json* data = answer->Find("data");
    if (data == nullptr || data->AsArray() == nullptr || data->AsArray()->empty()) return hint;
    const Json* id = data->AsArray()->front().Find("id");
    if (id == nullptr || id->AsString() == nullptr) return hint;
    return *id->AsString();
  }

  Result<TokenProbe> Measure(const Target& target, uint64_t words) {
    Turn turn{.text = {}, .max_tokens = 1, .think = Nanos(0)};
    AppendWords({.seed = options_.seed, .kind = TextKind::kProbe, .index = words, .part = 0}, words, &turn.text);
    Session session;
    session.turns.push_back(std::move(turn));
    Probe probe(clock_);
    Ask(FormatTurn(options_, target, Conversation(std::move(session), target.style).Body()), &probe);
    const RequestRecord& record = probe.record();
    if (record.outcome != Outcome::kOk) {
      return Unavailable(fmt::format("the first request failed: {}: {}", OutcomeName(record.outcome), record.why));
    }
    return TokenProbe{words, record.answer.usage ? record.answer.usage->prompt_tokens : 0};
  }

 private:
  const LoadOptions& options_;
  const Clock& clock_;
  HttpClient* const client_;
  const FunctionRef<bool()> go_on_;
};

}  // namespace

std::string FormatTurn(const LoadOptions& options, const Target& target, const std::string& body) {
  const bool chat = target.style.endpoint == Endpoint::kChat;
  return FormatRequest(target.url, options.api_key, chat ? "/chat/completions" : "/completions", &body);
}

Result<Target> Preflight(const LoadOptions& options, const Url& url, const Clock& clock, HttpClient* client,
                         FunctionRef<bool()> go_on) {
  Target target{.url = url,
                .style = {.endpoint = options.endpoint == "chat" ? Endpoint::kChat : Endpoint::kCompletions,
                          .model = options.model,
                          .ignore_eos = options.ignore_eos},
                .fit = {}};
  Asker asker(options, clock, client, go_on);
  if (target.style.model.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(target.style.model, asker.FirstModel(url));
  }
  if (options.tokens_per_word > 0) {
    target.fit.tokens_per_word = options.tokens_per_word;
    return target;
  }
  CACHALOT_ASSIGN_OR_RETURN(const TokenProbe small, asker.Measure(target, kSmallProbeWords));
  CACHALOT_ASSIGN_OR_RETURN(const TokenProbe large, asker.Measure(target, kLargeProbeWords));
  target.fit = FitTokens(small, large);
  return target;
}

}  // namespace cachalot::load
