// What the HTTP layer and the API hand each other: a request, a response, and the exchange that joins them.
// Threads:   values are plain data; an Exchange and an HttpHandler are used on the I/O thread.
// Ownership: whoever answers holds the exchange; one dropped without an answer closes its connection.
// Invariant: an exchange is answered once: Respond, or BeginStream, Write ..., EndStream.
// Cost:      Write tries to send at once and copies only what the kernel does not take.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/body_budget.h"

namespace cachalot::server {

enum class Method : uint8_t { kGet, kHead, kPost, kDelete, kOptions, kOther };

struct HttpRequest {
  Method method = Method::kGet;
  std::string method_name;  // as sent
  std::string target;       // as sent, e.g. "/v1/models?limit=3"
  std::string authorization;
  std::string cors_headers;  // Access-Control-Request-Headers
  std::string session;       // X-Cachalot-Session
  bool has_length = false;   // Content-Length, or chunked
  std::string body;
  BodyCharge charge;  // what `body` takes of the budget
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;  // besides those about length, type, connection and date
  std::string body;
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  // The whole answer.
  virtual void Respond(HttpResponse response) = 0;
  // Sends the head of a response whose body comes in pieces. `head.body` is its first piece.
  virtual void BeginStream(HttpResponse head) = 0;
  virtual void Write(std::string_view bytes) = 0;
  virtual void EndStream() = 0;
  // `gone` is called, once and never from within another call of the exchange, when the client goes away or stops
  // reading before the answer is complete. What is written afterwards is dropped.
  virtual void OnGone(std::function<void()> gone) = 0;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void Handle(HttpRequest request, std::shared_ptr<Exchange> exchange) = 0;
  // A response with this status was begun, those that the HTTP layer gives itself included.
  virtual void OnResponse(int status) = 0;
  // A few times per second.
  virtual void OnTick() = 0;
};

}  // namespace cachalot::server
