// What an input log is cut into: after kLogMagic frames of a head and a payload, which begins with its kind.
// Threads:   pure functions.
// Ownership: none.
// Invariant: none.
// Cost:      linear in the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/crc32c.h"

namespace cachalot::engine {

inline constexpr std::string_view kLogMagic = "CACHINP4";
inline constexpr size_t kFrameHead = 8;  // length and checksum of the payload
// Of a payload: more than the request bodies, or the sessions of an earlier process, that usually come at once.
inline constexpr uint64_t kMostFrameBytes = uint64_t{1} << 30;

enum class Frame : uint8_t { kFacts = 0, kStep = 1, kEnd = 2 };

inline uint32_t FrameChecksum(std::string_view payload) { return Crc32c(std::as_bytes(std::span(payload))); }

}  // namespace cachalot::engine
