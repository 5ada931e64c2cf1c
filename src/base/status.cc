#include "base/status.h"

namespace cachalot {

const char* CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalid: return "invalid";
    case Code::kOverloaded: return "overloaded";
    case Code::kUnavailable: return "unavailable";
    case Code::kCorrupt: return "corrupt";
    case Code::kInternal: return "internal";
  }
  return "unknown";
}

Status Status::Annotate(const std::string& where) const {
  return ok() ? *this : Status(code_, where + ": " + message_);
}

Status Invalid(std::string message) { return {Code::kInvalid, std::move(message)}; }
Status Overloaded(std::string message) { return {Code::kOverloaded, std::move(message)}; }
Status Unavailable(std::string message) { return {Code::kUnavailable, std::move(message)}; }
Status Corrupt(std::string message) { return {Code::kCorrupt, std::move(message)}; }
Status Internal(std::string message) { return {Code::kInternal, std::move(message)}; }

}  // namespace cachalot
