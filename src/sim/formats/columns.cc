#include "sim/formats/columns.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/formats/fields.h"

namespace cachalot::sim {

Status Columns::ReadHeading(std::string_view line) {
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<std::string_view> heading, SplitColumns(line));
  std::vector<size_t> places;
  for (const std::string& name : names_) {
    const auto found = std::ranges::find(heading, name);
    const bool missing = found == heading.end();
    if (missing && places.size() < names_.size() - optional_) {
      return Invalid(fmt::format("the heading has no column \"{}\": expected {}", name,
                                 fmt::join(names_.begin(), names_.end() - static_cast<ptrdiff_t>(optional_), ",")));
    }
    places.push_back(missing ? kMissing : static_cast<size_t>(found - heading.begin()));
  }
  places_ = std::move(places);
  width_ = heading.size();
  return OkStatus();
}

Result<std::optional<std::vector<std::string_view>>> Columns::Read(std::string_view line) {
  if (width_ == 0) {
    CACHALOT_RETURN_IF_ERROR(ReadHeading(line));
    return std::optional<std::vector<std::string_view>>();
  }
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<std::string_view> all, SplitColumns(line));
  if (all.size() != width_) {
    return Invalid(fmt::format("expected {} columns, as in the heading, got {}", width_, all.size()));
  }
  std::vector<std::string_view> columns;
  for (const size_t place : places_) columns.push_back(place == kMissing ? std::string_view() : all[place]);
  return std::optional(std::move(columns));
}

}  // namespace cachalot::sim
