// SseReader takes a stream of server-sent events apart as its bytes arrive (WHATWG HTML, 9.2).
// Threads:   one thread.
// Ownership: owns the unfinished line and event.
// Invariant: the events do not depend on how the bytes were cut; an event holds at most kMaxEventBytes.
// Cost:      one copy of each byte.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/status.h"

namespace cachalot::load {

class SseReader {
 public:
  static constexpr size_t kMaxEventBytes = 4 << 20;

  // Calls `on_event` with the data of each event that these bytes complete; stops at the first failure and returns it.
  // kInvalid when an event is too long. After a failure no call may follow.
  Status Feed(std::string_view bytes, FunctionRef<Status(std::string_view data)> on_event);

 private:
  Status EndLine(FunctionRef<Status(std::string_view data)> on_event);

  std::string line_;
  std::string data_;  // each line of it ends with \n
  bool first_line_ = true;
  bool after_cr_ = false;  // a \n would belong to the line that has ended
};

}  // namespace cachalot::load
