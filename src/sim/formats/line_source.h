// LineSource gives the lines of a file or of a text one after the other.
// Threads:   one.
// Ownership: owns the file and what was read of it; borrows a text.
// Invariant: a line has no end mark, and nothing in it but what was there. A file is read as it is when it is read.
// Cost:      linear; memory for a part of the file, and one line of at most `most_line_bytes`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/status.h"

namespace cachalot::sim {

class LineSource {
 public:
  static constexpr uint64_t kMaxLineBytes = uint64_t{1} << 28;

  // Of a file, a pipe or a device.
  static Result<LineSource> Open(const std::string& path, uint64_t most_line_bytes = kMaxLineBytes);
  explicit LineSource(std::string_view text) : left_(text) {}

  // The next line, which lives until the next call; false at the end. kInvalid for a line that is too long.
  Result<bool> Next(std::string_view* line);
  // Of the line that Next gave, from 1.
  uint64_t number() const { return number_; }

 private:
  LineSource(InputStream file, uint64_t most_line_bytes) : file_(std::move(file)), most_line_bytes_(most_line_bytes) {}
  Status ReadMore();

  std::optional<InputStream> file_;  // nothing once it has ended
  uint64_t most_line_bytes_ = kMaxLineBytes;
  std::string buffer_;
  std::string_view left_;  // of the text, or of the buffer
  uint64_t number_ = 0;
};

}  // namespace cachalot::sim
