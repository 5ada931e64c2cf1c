#include "base/tensor_type.h"

#include <gtest/gtest.h>

namespace cachalot {
namespace {

TEST(TensorType, FindsEachSupportedTypeByItsNumber) {
  EXPECT_STREQ(FindTensorType(14)->name, "Q6_K");
  EXPECT_EQ(FindTensorType(30)->type, TensorType::kBF16);
  for (uint32_t number = 0; number < 64; ++number) {
    if (const auto info = FindTensorType(number)) {
      EXPECT_EQ(static_cast<uint32_t>(info->type), number);
      EXPECT_STREQ(InfoOf(info->type).name, info->name);
    }
  }
}

TEST(TensorType, UnknownNumbersAreNotFound) {
  EXPECT_FALSE(FindTensorType(4).has_value());  // a removed type
  EXPECT_FALSE(FindTensorType(0xFFFFFFFF).has_value());
}

// Bytes of a block by its parts: scales, minima, high bits and quants.
TEST(TensorType, BlockSizesFollowFromTheFormats) {
  EXPECT_EQ(InfoOf(TensorType::kQ4_0).block_bytes, 2u + 16);
  EXPECT_EQ(InfoOf(TensorType::kQ4_1).block_bytes, 2u + 2 + 16);
  EXPECT_EQ(InfoOf(TensorType::kQ5_0).block_bytes, 2u + 4 + 16);
  EXPECT_EQ(InfoOf(TensorType::kQ5_1).block_bytes, 2u + 2 + 4 + 16);
  EXPECT_EQ(InfoOf(TensorType::kQ8_0).block_bytes, 2u + 32);
  EXPECT_EQ(InfoOf(TensorType::kQ4_K).block_bytes, 2u + 2 + 12 + 128);
  EXPECT_EQ(InfoOf(TensorType::kQ5_K).block_bytes, 2u + 2 + 12 + 32 + 128);
  EXPECT_EQ(InfoOf(TensorType::kQ6_K).block_bytes, 2u + 16 + 64 + 128);
}

TEST(TensorType, TheListForMessagesNamesAll) {
  EXPECT_EQ(SupportedTensorTypes(), "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K");
}

}  // namespace
}  // namespace cachalot
