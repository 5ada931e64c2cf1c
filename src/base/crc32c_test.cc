#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/random.h"

namespace cachalot {
namespace {

std::vector<std::byte> Filled(size_t bytes, uint8_t value) { return {bytes, static_cast<std::byte>(value)}; }

std::vector<std::byte> Counting(bool down) {
  std::vector<std::byte> bytes(32);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(down ? 31 - i : i);
  return bytes;
}

// RFC 3720, appendix B.4, and the catalogue's check value.
TEST(Crc32c, HasTheStandardsValues) {
  for (const auto crc : {Crc32c, Crc32cByTable}) {
    EXPECT_EQ(crc({}, 0), 0u);
    EXPECT_EQ(crc(Filled(32, 0), 0), 0x8A9136AAu);
    EXPECT_EQ(crc(Filled(32, 0xFF), 0), 0x62A8AB43u);
    EXPECT_EQ(crc(Counting(false), 0), 0x46DD794Eu);
    EXPECT_EQ(crc(Counting(true), 0), 0x113FDB5Cu);
    EXPECT_EQ(crc(std::as_bytes(std::span(std::string_view("123456789"))), 0), 0xE3069283u);
  }
}

TEST(Crc32c, InstructionAndTableAgreeAtAnyLengthAlignmentAndCut) {
  SplitMix64 random(1);
  std::vector<std::byte> bytes(300);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (int i = 0; i < 2000; ++i) {
    const size_t begin = random.Below(bytes.size());
    const std::span<const std::byte> part(bytes.data() + begin, random.Below(bytes.size() - begin + 1));
    const size_t cut = random.Below(part.size() + 1);
    const uint32_t whole = Crc32cByTable(part);
    EXPECT_EQ(Crc32c(part), whole);
    EXPECT_EQ(Crc32c(part.subspan(cut), Crc32c(part.first(cut))), whole);
    EXPECT_EQ(Crc32cByTable(part.subspan(cut), Crc32cByTable(part.first(cut))), whole);
  }
}

TEST(Crc32c, EveryFlippedBitShows) {
  std::vector<std::byte> bytes = Counting(false);
  const uint32_t right = Crc32c(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_NE(Crc32c(bytes), right);
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
}

}  // namespace
}  // namespace cachalot
