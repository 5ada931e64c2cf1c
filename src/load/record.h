// RequestRecord is what became of one request.
// Threads:   plain values.
// Ownership: owns its texts.
// Invariant: due <= sent <= ended; an ok record has a complete answer.
// Cost:      the answer's text and one duration per piece of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "load/answer_reader.h"
#include "load/http_client.h"

namespace cachalot::load {

enum class Outcome : uint8_t {
  kOk,
  kConnect,      // no connection
  kTimeout,      // no complete answer in time
  kIncomplete,   // the answer or the connection ended early
  kMalformed,    // not HTTP, or not a stream of JSON events
  kStatus,       // an HTTP status other than 200
  kServerError,  // an error inside the stream
  kAborted,      // the run was ended
};
inline constexpr size_t kOutcomes = 8;

// "ok", "connect", "timeout", ...
std::string_view OutcomeName(Outcome outcome);

struct RequestRecord {
  Nanos due{0};  // when it should have been sent
  Nanos sent{0};
  Nanos ended{0};
  Outcome outcome = Outcome::kOk;
  std::string why;  // not ok: what happened
  Answer answer;
};

// Fills outcome and why from the answer and how the connection ended.
void Classify(HttpEnd end, const std::string& why, RequestRecord* record);

// Durations of an ok record. They count from when the request was due, so that a late client flatters nobody.
Nanos TimeToFirstToken(const RequestRecord& record);
Nanos EndToEnd(const RequestRecord& record);
// Mean time per output token after the first; zero when there is but one.
Nanos TimePerToken(const RequestRecord& record);
// As the server counted them, else one per piece.
uint64_t OutputTokens(const RequestRecord& record);

}  // namespace cachalot::load
