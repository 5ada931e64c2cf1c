#include "load/record.h"

#include <algorithm>

#include <fmt/format.h>

namespace cachalot::load {
namespace {

Outcome OutcomeOf(HttpEnd end, const Answer& answer) {
  switch (end) {
    case HttpEnd::kAborted: return Outcome::kAborted;
    case HttpEnd::kConnect: return Outcome::kConnect;
    case HttpEnd::kTimeout: return Outcome::kTimeout;
    case HttpEnd::kMalformed: return Outcome::kMalformed;
    case HttpEnd::kComplete:
    case HttpEnd::kClosed: break;
  }
  if (answer.status != 0 && answer.status != 200) return Outcome::kStatus;
  if (answer.failed) return Outcome::kServerError;
  return answer.finished ? Outcome::kOk : Outcome::kIncomplete;
}

}  // namespace

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk: return "ok";
    case Outcome::kConnect: return "connect";
    case Outcome::kTimeout: return "timeout";
    case Outcome::kIncomplete: return "incomplete";
    case Outcome::kMalformed: return "malformed";
    case Outcome::kStatus: return "status";
    case Outcome::kServerError: return "server_error";
    case Outcome::kAborted: return "aborted";
  }
  return "unknown";
}

void Classify(HttpEnd end, const std::string& why, RequestRecord* record) {
  const Answer& answer = record->answer;
  record->outcome = OutcomeOf(end, answer);
  switch (record->outcome) {
    case Outcome::kOk: record->why.clear(); break;
    case Outcome::kStatus: record->why = fmt::format("HTTP {} {}", answer.status, answer.error_message); break;
    case Outcome::kServerError: record->why = answer.error_message; break;
    default: record->why = why.empty() ? "the stream ended without a finish reason" : why;
  }
}

Nanos TimeToFirstToken(const RequestRecord& record) {
  return record.answer.first_piece.value_or(record.ended) - record.due;
}

Nanos EndToEnd(const RequestRecord& record) { return record.ended - record.due; }

Nanos TimePerToken(const RequestRecord& record) {
  Nanos sum{0};
  for (Nanos gap : record.answer.gaps) sum += gap;
  return sum / std::max<int64_t>(1, static_cast<int64_t>(OutputTokens(record)) - 1);
}

uint64_t OutputTokens(const RequestRecord& record) {
  const uint64_t counted = record.answer.usage ? record.answer.usage->output_tokens : 0;
  return counted > 0 ? counted : record.answer.pieces;
}

}  // namespace cachalot::load
