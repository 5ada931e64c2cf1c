// Status and Result<T> carry the outcome of anything that can fail.
// Threads:   plain values; as safe as std::string.
// Ownership: a Status owns its message; a Result owns its value or its Status.
// Invariant: an OK status has no message; a Result holds a value iff ok().
// Cost:      OK is one byte and no allocation.
//
// A code says what the caller does next, never what went wrong: the cause goes into the message, which names
// what was wrong, where, and what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace cachalot {

enum class Code : uint8_t {
  kOk = 0,
  kInvalid = 1,      // the caller's input is wrong: HTTP 400, never retry
  kOverloaded = 2,   // no capacity now: queue it, or HTTP 429
  kUnavailable = 3,  // a tier, file or peer is slow, down or absent: treat as a miss
  kCorrupt = 4,      // a checksum failed: drop it, recompute, count it
  kInternal = 5,     // our bug: HTTP 500
};

// Lower-case name of a code, for logs.
const char* CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same failure with `where: ` in front of its message. OK stays OK.
  Status Annotate(const std::string& where) const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

inline Status OkStatus() { return {}; }
Status Invalid(std::string message);
Status Overloaded(std::string message);
Status Unavailable(std::string message);
Status Corrupt(std::string message);
Status Internal(std::string message);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}        // NOLINT: implicit by design
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {  // NOLINT: implicit by design
    CACHALOT_CHECK(!std::get<1>(state_).ok());
  }

  bool ok() const { return state_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(state_); }

  // Require ok().
  T& value() & {
    CACHALOT_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    CACHALOT_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T value() && {
    CACHALOT_CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace cachalot

#define CACHALOT_CONCAT_INNER(a, b) a##b
#define CACHALOT_CONCAT(a, b) CACHALOT_CONCAT_INNER(a, b)

// Returns the failure to the caller.
#define CACHALOT_RETURN_IF_ERROR(expr)                                      \
  do {                                                                      \
    if (::cachalot::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

// CACHALOT_ASSIGN_OR_RETURN(auto x, F()): x = the value of F(), or return its failure.
#define CACHALOT_ASSIGN_OR_RETURN(lhs, expr) CACHALOT_ASSIGN_OR_RETURN_(CACHALOT_CONCAT(result_, __LINE__), lhs, expr)
#define CACHALOT_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  if (!tmp.ok()) return tmp.status();              \
  lhs = std::move(tmp).value()
