// Random numbers as functions: Philox4x32-10 of a key and a counter for sampling, SplitMix64 for test data.
// Threads:   Philox and UniformAt are pure; a SplitMix64 belongs to one thread.
// Ownership: none.
// Invariant: the same arguments give the same bits on every machine; UniformAt is in [0, 1).
// Cost:      ten multiply rounds per Philox call.
#pragma once

#include <array>
#include <cstdint>

namespace cachalot {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
constexpr PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

// The random number that belongs to one token of one choice: a multiple of 2^-53 in [0, 1).
constexpr double UniformAt(uint64_t seed, uint32_t choice, uint64_t position) {
  const PhiloxCounter bits =
      Philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), choice, 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t high_53 = (uint64_t{bits[0]} << 21) | (bits[1] >> 11);
  return static_cast<double>(high_53) * 0x1p-53;
}

// A small sequential generator (Steele et al., 2014). Satisfies UniformRandomBitGenerator.
class SplitMix64 {
 public:
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }

  explicit constexpr SplitMix64(uint64_t seed) : state_(seed) {}

  constexpr uint64_t operator()() {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // In [0, limit), with a bias below limit / 2^64. Requires limit > 0.
  constexpr uint64_t Below(uint64_t limit) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>((*this)()) * limit) >> 64);
  }
  // In [0, 1).
  constexpr double Uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace cachalot
