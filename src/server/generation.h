// Generation is one API request on its way: it gathers what the engine says of its prompts and choices and answers the
// client, at once or as a stream.
// Threads:   I/O thread.
// Ownership: owns the exchange; borrows model, clock and metrics.
// Invariant: answers exactly once. Until the first token or ending of a choice nothing is sent but heartbeats, so that
//            a refusal still gets its own status.
// Cost:      per token some microseconds; one write to the client per Flush.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/request.h"
#include "server/answer_format.h"
#include "server/choice_stream.h"
#include "server/http_types.h"
#include "server/prompt.h"
#include "server/served_model.h"

namespace cachalot::server {

class Generation {
 public:
  struct Context {
    const ServedModel& model;
    const Clock& clock;
    Metrics& metrics;
  };

  // `arrived` is when the request was complete.
  Generation(Context context, PreparedRequest prepared, AnswerFormat::Head head, std::shared_ptr<Exchange> exchange,
             Nanos arrived);
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  size_t prompt_count() const { return prompts_.size(); }
  // What the engine shall do for one prompt; whose it is, is left to be said. `seed` is used when the client named
  // none. Call once per prompt.
  engine::GenerateRequest TakeRequest(size_t prompt, RequestId id, uint64_t seed);

  // What the engine said of one prompt. Nothing is sent before Flush.
  void OnPrompt(size_t prompt, const engine::PromptEvent& event);
  void OnToken(size_t prompt, const engine::TokenEvent& event);
  void OnFinish(size_t prompt, const engine::FinishEvent& event);

  // Ends the answer with an error: as its status, or as the last event of a stream that has begun.
  void Fail(const ApiError& error);
  void Flush();
  // Keeps a silent stream open.
  void SendHeartbeat(Nanos silence);

  // Choices of this prompt are still running.
  bool running(size_t prompt) const { return prompts_[prompt].open_choices > 0; }
  // The answer is complete.
  bool done() const { return done_; }

 private:
  struct Prompt {
    uint32_t open_choices;
    std::vector<TokenId> tokens;  // empty unless their logprobs are asked for
    std::string text;             // what echo repeats; empty unless asked for
    size_t next = 0;              // the token whose logprob comes next
    uint64_t offset = 0;          // code points in front of it
    bool added_bos = false;
    uint64_t code_points = 0;    // of text
    uint64_t pinned_tokens = 0;  // of the prompt itself
  };
  struct Choice {
    ChoiceStream stream;
    std::string text;       // not sent yet
    LogprobsText logprobs;  // not sent yet
    bool begun = false;     // its echo is in `text`
    bool role_sent = false;
    bool finish_sent = false;
    std::string_view finish_reason;   // empty while it runs
    std::optional<Nanos> last_token;  // when it came
  };

  // The request says something about its KV, and is told what became of it.
  bool minds_kv() const { return request_.retention || !request_.session.id.empty(); }
  bool wants_logprobs() const { return request_.sampling.logprobs >= 0; }
  Choice& ChoiceOf(size_t prompt, uint32_t choice) { return choices_[prompt * request_.n + choice]; }
  void CountKv(Prompt& prompt, const engine::FinishEvent& event);
  void AppendToChoices(size_t prompt, const LogprobsText& logprobs);
  void Begin(size_t prompt, Choice& choice);
  void Collect(Choice& choice);
  void ObserveToken(Choice& choice);
  void AddPromptToken(Prompt& prompt, size_t index, const SampledToken* sampled, LogprobsText* out);
  ChoicePart PartOf(size_t index) const;
  void AppendEvents(size_t index, std::string* out);
  void SendWhole();
  void SendStream();
  void WriteStream(const std::string& events);

  const Context context_;
  const ApiRequest request_;
  const std::vector<TokenId> end_tokens_;
  const std::shared_ptr<const text::StopSet> stops_;
  const AnswerFormat format_;
  const std::shared_ptr<Exchange> exchange_;
  const Nanos arrived_;

  std::vector<PreparedPrompt> prepared_;  // until TakeRequest
  std::vector<Prompt> prompts_;
  std::vector<Choice> choices_;  // [prompt * n + choice]
  Usage usage_;
  size_t open_prompts_;
  Nanos last_sent_;
  bool any_token_ = false;
  bool stream_begun_ = false;
  bool done_ = false;
};

}  // namespace cachalot::server
