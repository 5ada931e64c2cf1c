// LineSource gives the lines of a file or of a text one after the other.
// Threads:   one.
// Ownership: owns the file and what was read of it; borrows a text.
// Invariant: a line has no end mark, and nothing in it but what was there. A file is read as it is when it is read.
// Cost:      linear; memory for a part of the file, and one line of at most kMaxLineBytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace cachalot::sim {

class LineSource {
 public:
  static constexpr uint64_t kMaxLineBytes = uint64_t{1} << 28;

  // What is no regular file, as a pipe, is read as a whole; kInvalid when that is more than kMaxPipeBytes.
  static constexpr uint64_t kMaxPipeBytes = uint64_t{1} << 32;
  static Result<LineSource> Open(const std::string& path);
  explicit LineSource(std::string_view text) : left_(text) {}

  // The next line, which lives until the next call; false at the end. kInvalid for a line that is too long.
  Result<bool> Next(std::string_view* line);
  // Of the line that Next gave, from 1.
  uint64_t number() const { return number_; }

 private:
  LineSource(std::unique_ptr<File> file, uint64_t bytes) : file_(std::move(file)), unread_bytes_(bytes) {}
  explicit LineSource(std::unique_ptr<const std::string> whole) : whole_(std::move(whole)), left_(*whole_) {}
  Status ReadMore();

  std::unique_ptr<File> file_;
  std::unique_ptr<const std::string> whole_;  // of a pipe
  uint64_t offset_ = 0;                       // in the file, of what is unread
  uint64_t unread_bytes_ = 0;                 // of the file
  std::string buffer_;
  std::string_view left_;  // of the text, or of the buffer
  uint64_t number_ = 0;
};

}  // namespace cachalot::sim
