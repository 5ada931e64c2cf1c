// TierRate: how fast KV moves between the hot pool and a lower tier. The plain numbers; cost/tier_rates.h learns them.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: a rate has a bandwidth above 0 and a latency of 0 or more.
// Cost:      none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cachalot {

// The tiers below the hot pool (L0), nearest first.
enum class TierId : uint8_t { kHost = 1, kDisk = 2, kRemote = 3 };
inline constexpr std::array<std::string_view, 3> kTierNames = {"host", "disk", "remote"};

constexpr size_t TierIndex(TierId tier) { return static_cast<size_t>(tier) - 1; }
constexpr std::string_view TierName(TierId tier) { return kTierNames[TierIndex(tier)]; }

enum class Direction : uint8_t { kUp = 0, kDown = 1 };
inline constexpr std::array<std::string_view, 2> kDirectionNames = {"up", "down"};

struct TierRate {
  double latency_seconds = 0;
  double bytes_per_second = 1;
  bool operator==(const TierRate&) const = default;
};

// By TierIndex and Direction; nothing where none is known.
using TierRateTable = std::array<std::array<std::optional<TierRate>, kDirectionNames.size()>, kTierNames.size()>;

// From submission to completion, with `queued_bytes` to be moved before it.
constexpr double TransferSeconds(const TierRate& rate, uint64_t bytes, uint64_t queued_bytes) {
  return rate.latency_seconds +
         (static_cast<double>(bytes) + static_cast<double>(queued_bytes)) / rate.bytes_per_second;
}

}  // namespace cachalot
