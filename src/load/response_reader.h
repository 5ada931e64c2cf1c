// ResponseReader takes one HTTP/1.1 response apart as its bytes arrive.
// Threads:   one thread.
// Ownership: borrows the sink; owns what is not yet understood.
// Invariant: at most kMaxHeadBytes of head and kMaxBodyBytes of body are accepted, at most kMaxLineBytes are kept.
// Cost:      one copy of each byte; no allocation per byte of the body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace cachalot::load {

struct ResponseHead {
  int status = 0;
  std::string content_type;
};

class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  virtual void OnHead(const ResponseHead& head) = 0;
  // A failure ends the response: Feed returns it.
  virtual Status OnBody(std::string_view bytes) = 0;
};

class ResponseReader {
 public:
  static constexpr uint32_t kMaxHeadBytes = 64 * 1024;
  static constexpr uint64_t kMaxBodyBytes = 16 << 20;
  static constexpr size_t kMaxLineBytes = 128 * 1024;

  explicit ResponseReader(ResponseSink* sink);
  ~ResponseReader();

  // kInvalid for what is no HTTP response, for one that is too large, and what the sink returned. After a failure no
  // call may follow.
  Status Feed(std::string_view bytes);
  // The peer sends no more. kUnavailable when the response is incomplete.
  Status End();

  bool done() const;
  // Requires done(): whether another request may use the connection.
  bool keep_alive() const;

 private:
  struct Parser;
  void BeginMessage();

  ResponseSink* const sink_;
  std::unique_ptr<Parser> parser_;
  std::string buffer_;  // received and not yet parsed
  int interim_responses_ = 0;
};

}  // namespace cachalot::load
