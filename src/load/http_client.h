// HttpClient sends requests to one server, many at once, over plain HTTP/1.1 connections that it keeps.
// Threads:   one thread; every callback comes from inside Run, Send or AbortAll.
// Ownership: owns its connections; borrows the clock, and each observer until its OnEnd.
// Invariant: every Send is answered by exactly one OnEnd, at the latest some 50 ms after its deadline. A request on a
//            kept connection that the server had closed is sent once more, on a new one.
// Cost:      some microseconds per arrival of bytes; an open connection costs a socket and about 1 KB.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "load/response_reader.h"
#include "load/url.h"

namespace cachalot::load {

enum class HttpEnd : uint8_t {
  kComplete,   // the response has arrived
  kConnect,    // no connection
  kTimeout,    // the deadline passed
  kClosed,     // the server ended the connection before the response was complete
  kMalformed,  // what arrived is no HTTP response, or the observer refused it
  kAborted,    // by AbortAll
};

// Learns of one response. May send another request from OnEnd.
class HttpObserver : public ResponseSink {
 public:
  virtual void OnEnd(HttpEnd end, const std::string& why) = 0;
};

class HttpClient {
 public:
  // Resolves the name, which may take as long as the system's resolver.
  static Result<std::unique_ptr<HttpClient>> Create(const Url& url, const Clock& clock);
  ~HttpClient();

  // `text`: the whole request. The deadline is a time of the clock.
  void Send(std::string text, Nanos deadline, HttpObserver* observer);
  // Handles what arrives, until something did or `at_most` has passed.
  void Run(Nanos at_most);
  void AbortAll();

 private:
  class Connection;
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The text of a request, with the fields that every request of a run shares.
std::string FormatRequest(const Url& url, const std::string& api_key, const std::string& target,
                          const std::string* body);

}  // namespace cachalot::load
