// StringTable is a list of strings in one block of memory.
// Threads:   immutable once filled; any thread may read.
// Ownership: owns the bytes.
// Invariant: the bytes of a filled table stay where they are, also when the table is moved.
// Cost:      8 bytes per string beside its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cachalot::text {

class StringTable {
 public:
  // Invalidates the views handed out before.
  void Add(std::string_view text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    begins_.push_back(bytes_.size());
  }
  size_t size() const { return begins_.size() - 1; }
  // Requires index < size().
  std::string_view operator[](size_t index) const {
    return {bytes_.data() + begins_[index], static_cast<size_t>(begins_[index + 1] - begins_[index])};
  }

 private:
  std::vector<char> bytes_;
  std::vector<uint64_t> begins_ = {0};
};

}  // namespace cachalot::text
