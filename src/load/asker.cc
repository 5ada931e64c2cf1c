#include "load/asker.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "load/answer_reader.h"

namespace cachalot::load {
namespace {

constexpr size_t kShortAnswerBytes = 1 << 20;
constexpr size_t kToldBytes = 300;

class Collector final : public HttpObserver {
 public:
  void OnHead(const ResponseHead& head) override { answer_.status = head.status; }
  Status OnBody(std::string_view bytes) override {
    if (answer_.body.size() + bytes.size() > kShortAnswerBytes) return Invalid("the answer is too long");
    answer_.body.append(bytes);
    return OkStatus();
  }
  void OnEnd(HttpEnd end, const std::string& why) override {
    ended_ = true;
    if (end != HttpEnd::kComplete) failure_ = Unavailable(why);
  }
  const bool& ended() const { return ended_; }
  Result<ShortAnswer> Take() {
    if (!failure_.ok()) return failure_;
    return std::move(answer_);
  }

 private:
  ShortAnswer answer_;
  bool ended_ = false;
  Status failure_;
};

class Recorder final : public HttpObserver {
 public:
  explicit Recorder(const Clock& clock) : clock_(clock), reader_(clock) { record_.due = record_.sent = clock.Now(); }
  void OnHead(const ResponseHead& head) override { reader_.OnHead(head); }
  Status OnBody(std::string_view bytes) override { return reader_.OnBody(bytes); }
  void OnEnd(HttpEnd end, const std::string& why) override {
    ended_ = true;
    reader_.OnEnd();
    record_.ended = clock_.Now();
    record_.answer = reader_.Take();
    Classify(end, why, &record_);
  }
  const bool& ended() const { return ended_; }
  RequestRecord Take() { return std::move(record_); }

 private:
  const Clock& clock_;
  AnswerReader reader_;
  bool ended_ = false;
  RequestRecord record_;
};

}  // namespace

void Asker::SendAndWait(std::string text, HttpObserver* observer, const bool& ended) {
  client_->Send(std::move(text), clock_.Now() + timeout_, observer);
  while (!ended) {
    client_->Run(timeout_);
    if (!go_on_()) client_->AbortAll();
  }
}

void Asker::Wait(Nanos time) {
  for (const Nanos end = clock_.Now() + time; clock_.Now() < end && go_on_();) client_->Run(end - clock_.Now());
}

RequestRecord Asker::AskForAnswer(std::string text) {
  Recorder recorder(clock_);
  SendAndWait(std::move(text), &recorder, recorder.ended());
  return recorder.Take();
}

Result<ShortAnswer> Asker::AskFor(std::string text) {
  Collector collector;
  SendAndWait(std::move(text), &collector, collector.ended());
  return collector.Take();
}

Result<Json> Asker::AskForJson(std::string text) {
  CACHALOT_ASSIGN_OR_RETURN(const ShortAnswer answer, AskFor(std::move(text)));
  if (answer.status == 200) return ParseJson(answer.body);
  return Unavailable(fmt::format("HTTP {} {}", answer.status, answer.body.substr(0, kToldBytes)));
}

}  // namespace cachalot::load
