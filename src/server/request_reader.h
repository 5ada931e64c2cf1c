// RequestReader turns the bytes of one connection into requests, whatever the bytes are.
// Threads:   one connection, I/O thread.
// Ownership: owns what was fed and not yet taken; borrows the budget.
// Invariant: memory is bounded by the head limit, the body limit and what one Feed brings. After kError nothing more
//            is read from the connection.
// Cost:      linear in the bytes; no memory while no request is in progress.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/api_error.h"
#include "server/body_budget.h"
#include "server/http_types.h"

namespace cachalot::server {

inline constexpr uint32_t kHeadLimitBytes = 16 * 1024;

class RequestReader {
 public:
  enum class Event : uint8_t {
    kNeedMore,   // feed more bytes
    kWantsBody,  // the head is complete and the client waits for "100 Continue"; call Next again
    kRequest,    // TakeRequest
    kError,      // error()
  };

  RequestReader(uint64_t body_limit, BodyBudget* budget);
  ~RequestReader();
  RequestReader(RequestReader&&) noexcept;

  // Requires: the last Next returned kNeedMore, or there was none.
  void Feed(std::string_view bytes);
  Event Next();

  // Requires: Next returned kRequest.
  HttpRequest TakeRequest() { return std::move(request_); }
  const ApiError& error() const { return error_; }

  // Of the request taken last: the connection may carry another one; its answer may be chunked.
  bool keep_alive() const { return keep_alive_; }
  bool http_1_1() const { return http_1_1_; }

  // No byte of a next request has arrived.
  bool idle() const { return parser_ == nullptr && consumed_ == buffer_.size(); }
  // The head is complete, the body is not.
  bool in_body() const;

 private:
  struct Parser;

  size_t LeastBytes() const;
  Event Fail(int status, std::string message, std::string code = "");
  Event AfterHead();
  // `value` is one of Beast's parse errors, or -1: the budget is exhausted.
  Event ParserError(int value);
  bool StartRequest();

  uint64_t body_limit_;
  BodyBudget* budget_;
  std::string buffer_;   // what was fed
  size_t consumed_ = 0;  // of it
  std::unique_ptr<Parser> parser_;
  HttpRequest request_;
  ApiError error_;
  bool head_seen_ = false;
  bool keep_alive_ = false;
  bool http_1_1_ = true;
};

}  // namespace cachalot::server
