// JSON in and out of templates: client values become template values, and tojson writes what json.dumps would.
// Threads:   as Runtime.
// Ownership: values are copied.
// Invariant: integers stay integers and the order of keys is kept.
// Cost:      linear.
#pragma once

#include "base/json.h"
#include "text/jinja_runtime.h"

namespace cachalot::text::jinja {

Result<Value> FromJson(Runtime& rt, const Json& json);

}  // namespace cachalot::text::jinja
