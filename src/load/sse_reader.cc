#include "load/sse_reader.h"

#include <algorithm>

#include <fmt/format.h>

namespace cachalot::load {

Status SseReader::Feed(std::string_view bytes, FunctionRef<Status(std::string_view data)> on_event) {
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (line_.size() + data_.size() + end > kMaxEventBytes) {
      return Invalid(fmt::format("an event of more than {} bytes", kMaxEventBytes));
    }
    line_.append(bytes.substr(0, end));
    if (end == bytes.size()) return OkStatus();
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    CACHALOT_RETURN_IF_ERROR(EndLine(on_event));
  }
  return OkStatus();
}

Status SseReader::EndLine(FunctionRef<Status(std::string_view data)> on_event) {
  std::string_view line = line_;
  if (std::exchange(first_line_, false) && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  Status status;
  if (line.empty() && !data_.empty()) {
    data_.pop_back();
    status = on_event(data_);
    data_.clear();
  } else if (line == "data") {
    data_ += '\n';
  } else if (line.starts_with("data:")) {
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    data_.append(line) += '\n';
  }
  line_.clear();
  return status;
}

}  // namespace cachalot::load
