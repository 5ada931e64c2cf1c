#include "text/jinja_sequence.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {

AttributePath SplitPathText(Runtime& rt, std::string_view attribute) {
  AttributePath path;
  while (true) {
    const size_t dot = attribute.find('.');
    const std::string_view part = attribute.substr(0, dot);
    int64_t index = 0;
    const auto read = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = read.ec == std::errc() && read.ptr == part.data() + part.size() && part[0] != '-';
    path.push_back(is_index ? Value::Int(index) : rt.Str(std::string(part)));
    if (dot == std::string_view::npos) return path;
    attribute.remove_prefix(dot + 1);
  }
}

AttributePath SplitPath(Runtime& rt, const Value& attribute) {
  if (attribute.missing() || attribute.is(Kind::kNone)) return {};
  if (attribute.is(Kind::kStr)) return SplitPathText(rt, attribute.text());
  return {attribute};
}

Result<Value> FollowPath(Runtime& rt, Value item, const AttributePath& path, const Value& fallback) {
  const bool has_fallback = !fallback.missing() && !fallback.is(Kind::kNone);
  for (const Value& part : path) {
    CACHALOT_RETURN_IF_ERROR(rt.Tick());
    CACHALOT_ASSIGN_OR_RETURN(item, GetItem(rt, item, part));
    if (has_fallback && item.is(Kind::kUndefined)) item = fallback;
  }
  return item;
}

Result<Value> SortKey(Runtime& rt, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::kStr)) return value;
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(value.text().size() * 4));
  return rt.Str(ToLower(value.text()));
}

namespace {

// Merges the sorted halves [first, middle) and [middle, last); equal items keep their order.
Status Merge(Runtime& rt, std::vector<Keyed>* items, size_t first, size_t middle, size_t last) {
  std::vector<Keyed> merged;
  merged.reserve(last - first);
  size_t left = first, right = middle;
  while (left < middle && right < last) {
    CACHALOT_ASSIGN_OR_RETURN(const bool take_right, Less(rt, (*items)[right].key, (*items)[left].key));
    merged.push_back(std::move((*items)[take_right ? right++ : left++]));
  }
  while (left < middle) merged.push_back(std::move((*items)[left++]));
  while (right < last) merged.push_back(std::move((*items)[right++]));
  std::move(merged.begin(), merged.end(), items->begin() + static_cast<ptrdiff_t>(first));
  return OkStatus();
}

}  // namespace

Status SortByKey(Runtime& rt, std::vector<Keyed>* items, bool reverse) {
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(items->size() * sizeof(Keyed)));
  if (reverse) std::ranges::reverse(*items);
  for (size_t width = 1; width < items->size(); width *= 2) {
    for (size_t first = 0; first + width < items->size(); first += 2 * width) {
      CACHALOT_RETURN_IF_ERROR(Merge(rt, items, first, first + width, std::min(first + 2 * width, items->size())));
    }
  }
  if (reverse) std::ranges::reverse(*items);
  return OkStatus();
}

}  // namespace cachalot::text::jinja
