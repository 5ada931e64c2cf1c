// SpellingIndex finds the id of a string among many, by content.
// Threads:   any thread may Find while none calls Add.
// Ownership: borrows the bytes of every string, which must outlive it and stay where they are.
// Invariant: no two strings in it are equal.
// Cost:      Find is linear in the string's bytes, or one probe and one comparison when its hash is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace cachalot::text {

// A polynomial in kHashBase, modulo 2^64, so that the hash of any substring follows from those of two prefixes:
// hash(b) == hash(a + b) - hash(a) * kHashBase ^ b.size().
inline constexpr uint64_t kHashBase = 0x9E3779B97F4A7C15u;
inline uint64_t ExtendHash(uint64_t hash, char next) { return hash * kHashBase + static_cast<unsigned char>(next) + 1; }

class SpellingIndex {
 public:
  explicit SpellingIndex(size_t expected);

  // False, and nothing changes, when an equal string is already there. Requires a string below 4 GiB.
  bool Add(std::string_view spelling, TokenId id);
  std::optional<TokenId> Find(std::string_view spelling) const { return Find(spelling, Hash(spelling)); }
  std::optional<TokenId> Find(std::string_view spelling, uint64_t hash) const;

  static uint64_t Hash(std::string_view bytes) {
    uint64_t hash = 0;
    for (char c : bytes) hash = ExtendHash(hash, c);
    return hash;
  }

 private:
  struct Slot {
    const char* data = nullptr;  // null: empty
    uint32_t size = 0;
    TokenId id = 0;
    uint64_t hash = 0;
  };
  // The slot that holds the string, or the empty one where it would be.
  size_t SlotOf(std::string_view spelling, uint64_t hash) const;
  void Grow();

  std::vector<Slot> slots_;  // a power of two, at most half used
  size_t size_ = 0;
};

}  // namespace cachalot::text
