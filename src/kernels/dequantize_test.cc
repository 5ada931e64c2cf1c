#include "kernels/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cachalot::kernels {
namespace {

std::vector<uint8_t> FromHex(const std::string& hex) {
  std::vector<uint8_t> out(hex.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
  return out;
}

nlohmann::json RecordedTypes() {
  std::ifstream in(std::string(CACHALOT_SOURCE_DIR) + "/tests/data/kernels/dequantize_cases.json");
  return nlohmann::json::parse(in).at("types");
}

TEST(Dequantize, EqualsTheGgufPackageOnEveryTypeBitForBit) {
  const nlohmann::json types = RecordedTypes();
  ASSERT_EQ(types.size(), 11u);
  for (const TensorType type :
       {TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,
        TensorType::kQ5_1, TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K}) {
    const TensorTypeInfo& info = InfoOf(type);
    SCOPED_TRACE(info.name);
    const std::vector<uint8_t> blocks = FromHex(types.at(info.name).at("blocks"));
    const std::vector<uint8_t> words = FromHex(types.at(info.name).at("values"));
    ASSERT_EQ(blocks.size() % info.block_bytes, 0u);
    const size_t count = blocks.size() / info.block_bytes * info.block_values;
    ASSERT_EQ(words.size(), count * 4);
    std::vector<float> got(count);
    Dequantize(type, reinterpret_cast<const std::byte*>(blocks.data()), count, got.data());
    for (size_t i = 0; i < count; ++i) {
      const uint32_t bits =
          uint32_t{words[4 * i]} << 24 | words[4 * i + 1] << 16 | words[4 * i + 2] << 8 | words[4 * i + 3];
      const float want = std::bit_cast<float>(bits);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got[i])) << i;
      } else {
        EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), bits) << i << ": " << got[i] << " instead of " << want;
      }
    }
  }
}

TEST(Dequantize, ReadsUnalignedSources) {
  const std::vector<uint8_t> bytes = {0xee, 0x00, 0x3c, 0x00, 0xc0};  // after one byte: 1 and -2 in f16
  float out[2];
  Dequantize(TensorType::kF16, reinterpret_cast<const std::byte*>(bytes.data() + 1), 2, out);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], -2.0f);
}

}  // namespace
}  // namespace cachalot::kernels
