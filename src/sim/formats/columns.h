// Columns finds the named columns of a table's lines by its heading.
// Threads:   one.
// Ownership: owns the names.
// Invariant: a line has as many columns as the heading.
// Cost:      linear in the line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace cachalot::sim {

class Columns {
 public:
  // Of these names all are wanted but the last `optional` ones.
  Columns(std::vector<std::string> names, size_t optional) : names_(std::move(names)), optional_(optional) {}

  bool headed() const { return width_ > 0; }
  // kInvalid, with the names, when one is missing.
  Status ReadHeading(std::string_view line);
  // In the order of the names; empty where the heading has no such column. Requires headed().
  Result<std::vector<std::string_view>> Split(std::string_view line) const;

 private:
  static constexpr size_t kMissing = SIZE_MAX;
  const std::vector<std::string> names_;
  const size_t optional_;
  std::vector<size_t> places_;
  size_t width_ = 0;
};

}  // namespace cachalot::sim
