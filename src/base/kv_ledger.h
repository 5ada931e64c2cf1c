// KvLedger says what every byte of the KV pool is used for.
// Threads:   plain data.
// Ownership: none.
// Invariant: the parts add up to total_bytes.
// Cost:      none.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace cachalot {

inline constexpr std::array<std::string_view, 7> kLedgerParts = {"live",  "idle",    "reserved", "transit",
                                                                 "waste", "padding", "free"};

struct KvLedger {
  uint64_t total_bytes = 0;     // slots * slot_bytes
  uint64_t live_bytes = 0;      // tokens that a sequence may still read; what several share counts once
  uint64_t shared_bytes = 0;    // of them: held by more than one sequence
  uint64_t idle_bytes = 0;      // tokens kept for later requests only
  uint64_t reserved_bytes = 0;  // places of the open step's rows
  uint64_t transit_bytes = 0;   // tokens that the open step copies, or that come from or go to a lower tier
  uint64_t waste_bytes = 0;     // places in blocks that hold no token, or one that left its window
  uint64_t padding_bytes = 0;   // that slots have beyond their group's blocks
  uint64_t free_bytes = 0;

  std::array<uint64_t, kLedgerParts.size()> parts() const {
    return {live_bytes, idle_bytes, reserved_bytes, transit_bytes, waste_bytes, padding_bytes, free_bytes};
  }
  uint64_t Sum() const {
    const auto all = parts();
    return std::accumulate(all.begin(), all.end(), uint64_t{0});
  }
};

}  // namespace cachalot
