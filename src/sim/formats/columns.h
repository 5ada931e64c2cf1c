// Columns finds the named columns of a table's lines by its heading.
// Threads:   one.
// Ownership: owns the names.
// Invariant: a line has as many columns as the heading.
// Cost:      linear in the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace cachalot::sim {

class Columns {
 public:
  // Of these names all are wanted but the last `optional` ones.
  Columns(std::vector<std::string> names, size_t optional) : names_(std::move(names)), optional_(optional) {}

  // Of the next line, in the order of the names; empty where the heading has no such column. Nothing: it was the
  // heading, which comes first. kInvalid, with the names, when that lacks one.
  Result<std::optional<std::vector<std::string_view>>> Read(std::string_view line);

 private:
  Status ReadHeading(std::string_view line);

  static constexpr size_t kMissing = SIZE_MAX;
  const std::vector<std::string> names_;
  const size_t optional_;
  std::vector<size_t> places_;
  size_t width_ = 0;
};

}  // namespace cachalot::sim
