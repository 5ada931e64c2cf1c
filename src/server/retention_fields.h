// ReadRetention reads what a request says about how long its KV is kept: the object "kv", or the API's own
// "prompt_cache_retention".
// Threads:   pure.
// Ownership: none.
// Invariant: what is read is consistent: a pin never outlasts its TTL.
// Cost:      a few look-ups.
#pragma once

#include <optional>

#include "base/retention.h"
#include "server/field_reader.h"

namespace cachalot::server {

inline constexpr int64_t kMaxTtlSeconds = 30 * 24 * 3600;
inline constexpr int64_t kMaxPinSeconds = 24 * 3600;

// Nothing where the request says nothing about it.
std::optional<RetentionHints> ReadRetention(FieldReader& reader);

}  // namespace cachalot::server
