#include "tier/block_packer.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::tier {
namespace {

// Bytes of which every second repeats, as the exponents of f16 do.
std::vector<std::byte> SomeBlock(size_t bytes, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<std::byte> block(bytes);
  for (size_t i = 0; i < bytes; ++i) block[i] = static_cast<std::byte>(random() & (i % 2 == 0 ? 0xff : 0x03));
  return block;
}

TEST(BlockPacker, BlocksComeBackAndTakeLessRoom) {
  BlockPacker packer;
  for (const size_t bytes : {1000, 4096, 40'001}) {
    const std::vector<std::byte> block = SomeBlock(bytes, bytes);
    std::vector<std::byte> out(3);
    const uint64_t packed = packer.Append(block, 2, out).value();
    EXPECT_LT(packed, bytes * 3 / 4);
    ASSERT_EQ(out.size(), 3 + packed);
    std::vector<std::byte> into(bytes);
    EXPECT_TRUE(packer.Unpack(std::span(out).subspan(3), into).ok());
    EXPECT_EQ(into, block);
  }
}

TEST(BlockPacker, WhatDoesNotShrinkIsKeptAsItIs) {
  SplitMix64 random(1);
  std::vector<std::byte> block(5000), out;
  for (std::byte& b : block) b = static_cast<std::byte>(random());
  EXPECT_EQ(BlockPacker().Append(block, 4, out).value(), block.size());
  EXPECT_EQ(out, block);
}

TEST(BlockPacker, WhateverIsDoneToAPackedBlockItGivesTheRightBytesOrNone) {
  BlockPacker packer;
  const std::vector<std::byte> block = SomeBlock(3000, 5);
  std::vector<std::byte> good;
  ASSERT_TRUE(packer.Append(block, 2, good).ok());
  SplitMix64 random(2);
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> bad = good;
    const uint64_t what = random.Below(3);
    if (what == 0) bad[random.Below(bad.size())] ^= static_cast<std::byte>(1u << random.Below(8));
    if (what == 1) bad.resize(random.Below(bad.size()));
    if (what == 2) bad.insert(bad.begin() + static_cast<ptrdiff_t>(random.Below(bad.size())), std::byte{1});
    std::vector<std::byte> into(block.size());
    if (!packer.Unpack(bad, into).ok()) continue;
    EXPECT_EQ(into, block);
  }
  std::vector<std::byte> other(block.size() + 1);
  EXPECT_EQ(packer.Unpack(good, other).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace cachalot::tier
