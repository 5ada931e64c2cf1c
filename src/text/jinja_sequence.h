// What the filters on sequences share: looking attributes up by path, and sorting by key.
// Threads:   as Runtime.
// Ownership: values share their objects.
// Invariant: sorting is stable and asks only for a < b, as Python's does.
// Cost:      O(n log n) comparisons for sorting; a path is one look-up per part.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/jinja_runtime.h"
#include "text/jinja_value.h"

namespace cachalot::text::jinja {

// "a.b.0" as the parts 'a', 'b' and 0. None and kMissing have none; any other value is the one part.
using AttributePath = std::vector<Value>;
AttributePath SplitPath(Runtime& rt, const Value& attribute);
AttributePath SplitPathText(Runtime& rt, std::string_view attribute);
// item.a.b[0]. An undefined part becomes `fallback` unless that is kMissing or None.
Result<Value> FollowPath(Runtime& rt, Value item, const AttributePath& path, const Value& fallback);

// Strings in lower case, other values as they are; everything as it is when `case_sensitive`.
Result<Value> SortKey(Runtime& rt, const Value& value, bool case_sensitive);

struct Keyed {
  Value key, value;
};
Status SortByKey(Runtime& rt, std::vector<Keyed>* items, bool reverse);

}  // namespace cachalot::text::jinja
