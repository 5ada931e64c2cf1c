// Asker sends one request at a time and waits for its answer.
// Threads:   one thread.
// Ownership: borrows all that it is made of.
// Invariant: each request has its deadline, and ends early once `go_on` returns false.
// Cost:      that of the answers.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/json.h"
#include "base/status.h"
#include "load/http_client.h"
#include "load/record.h"

namespace cachalot::load {

// One that is not streamed.
struct ShortAnswer {
  int status = 0;  // of HTTP
  std::string body;
};

class Asker {
 public:
  Asker(const Clock& clock, Nanos timeout, HttpClient* client, FunctionRef<bool()> go_on)
      : clock_(clock), timeout_(timeout), client_(client), go_on_(go_on) {}

  // The record of a streamed answer.
  RequestRecord AskForAnswer(std::string text);
  // Whatever its status. kUnavailable when none comes.
  Result<ShortAnswer> AskFor(std::string text);
  // kUnavailable, with what the server says, when its status is not 200.
  Result<Json> AskForJson(std::string text);

  // Does nothing for so long.
  void Wait(Nanos time);

  const Clock& clock() const { return clock_; }
  bool go_on() const { return go_on_(); }

 private:
  // `ended` becomes true by one of the observer's calls.
  void SendAndWait(std::string text, HttpObserver* observer, const bool& ended);

  const Clock& clock_;
  const Nanos timeout_;
  HttpClient* const client_;
  const FunctionRef<bool()> go_on_;
};

}  // namespace cachalot::load
