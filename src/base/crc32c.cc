#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace cachalot {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // Castagnoli, bits reversed
constexpr size_t kLanes = 8;

// tables[k][b]: the remainder of byte b followed by k zero bytes.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, kLanes> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = rest;
  }
  for (size_t lane = 1; lane < kLanes; ++lane) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t rest = tables[lane - 1][byte];
      tables[lane][byte] = (rest >> 8) ^ tables[0][rest & 0xFF];
    }
  }
  return tables;
}();

#if defined(__x86_64__)
// The target is set on this one function, so that the rest runs on any x86-64.
__attribute__((target("sse4.2"))) uint32_t ByInstruction(std::span<const std::byte> bytes, uint32_t before) {
  uint64_t rest = static_cast<uint32_t>(~before);
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    rest = _mm_crc32_u64(rest, word);
    bytes = bytes.subspan(sizeof(word));
  }
  auto rest_32 = static_cast<uint32_t>(rest);
  for (const std::byte byte : bytes) rest_32 = _mm_crc32_u8(rest_32, static_cast<uint8_t>(byte));
  return ~rest_32;
}
#endif

}  // namespace

uint32_t Crc32cByTable(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t rest = ~before;
  while (bytes.size() >= kLanes) {
    uint32_t next = 0;
    for (size_t i = 0; i < kLanes; ++i) {
      uint32_t byte = static_cast<uint32_t>(bytes[i]);
      if (i < 4) byte ^= (rest >> (8 * i)) & 0xFF;
      next ^= kTables[kLanes - 1 - i][byte];
    }
    rest = next;
    bytes = bytes.subspan(kLanes);
  }
  for (const std::byte byte : bytes) rest = (rest >> 8) ^ kTables[0][(rest ^ static_cast<uint32_t>(byte)) & 0xFF];
  return ~rest;
}

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ByInstruction(bytes, before);
#endif
  return Crc32cByTable(bytes, before);
}

}  // namespace cachalot
