#include "kernels/testing/random_blocks.h"

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "kernels/half-inl.h"

namespace cachalot::kernels::testing {
namespace {

float Normal(SplitMix64& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.Uniform();
  return static_cast<float>(sum);
}

// +-2^-12 to 2^-4.
void PutScale(std::byte* at, SplitMix64& random) {
  const float magnitude = static_cast<float>(std::exp2(-12 + 8 * random.Uniform()));
  const uint16_t scale = F16OfFloat(random.Below(2) == 0 ? magnitude : -magnitude);
  std::memcpy(at, &scale, sizeof scale);
}

void FillFloats(TensorType type, uint64_t count, SplitMix64& random, std::byte* out) {
  for (uint64_t i = 0; i < count; ++i) {
    const float value = Normal(random) * 0.05f;
    const uint16_t half = type == TensorType::kF16 ? F16OfFloat(value) : Bf16OfFloat(value);
    if (type == TensorType::kF32) {
      std::memcpy(out + 4 * i, &value, sizeof value);
    } else {
      std::memcpy(out + 2 * i, &half, sizeof half);
    }
  }
}

}  // namespace

std::vector<std::byte> RandomBlocks(TensorType type, uint64_t count, uint64_t seed, Fill fill) {
  const TensorTypeInfo& info = InfoOf(type);
  const uint64_t blocks = count / info.block_values;
  std::vector<std::byte> out(blocks * info.block_bytes);
  SplitMix64 random(seed);
  if (info.block_values == 1) {
    FillFloats(type, count, random, out.data());
    return out;
  }
  for (std::byte& byte : out) {
    const auto bits = static_cast<uint8_t>(random());
    byte = std::byte{fill == Fill::kModel ? bits : fill == Fill::kLeast ? uint8_t{0} : uint8_t{0xff}};
  }
  for (uint64_t block = 0; block < blocks; ++block) {
    std::byte* at = out.data() + block * info.block_bytes;
    if (type == TensorType::kQ8_0 && fill != Fill::kModel) {
      std::memset(at + 2, fill == Fill::kLeast ? 0x80 : 0x7f, 32);
    }
    if (type == TensorType::kQ6_K) {
      if (fill != Fill::kModel) std::memset(at + 192, block % 2 ? 0x80 : 0x7f, 16);
      PutScale(at + 208, random);
      continue;
    }
    PutScale(at, random);
    const bool second = type == TensorType::kQ4_1 || type == TensorType::kQ5_1 || info.block_values == 256;
    if (second) PutScale(at + 2, random);
  }
  return out;
}

std::vector<float> RandomFloats(uint64_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> out(count);
  for (float& value : out) {
    value = Normal(random);
    if (random.Below(64) == 0) value *= 30;
  }
  return out;
}

}  // namespace cachalot::kernels::testing
