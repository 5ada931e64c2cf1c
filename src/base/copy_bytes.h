// CopyBytes copies at the memory's speed: std::ranges::copy takes bytes one by one where their constness differs
// (libstdc++ 12).
// Threads:   any.
// Ownership: none.
// Invariant: no byte behind `from.size()` of `to` changes.
// Cost:      one memcpy.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "base/check.h"

namespace cachalot {

// Requires that `to` has room for all, and that they do not overlap. What is left of `to`.
inline std::span<std::byte> CopyBytes(std::span<const std::byte> from, std::span<std::byte> to) {
  CACHALOT_DCHECK(from.size() <= to.size());
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  return to.subspan(from.size());
}

}  // namespace cachalot
