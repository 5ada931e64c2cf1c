#include "codec/sample_values.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/check.h"

namespace cachalot::codec {
namespace {

uint32_t BitsOf(float value, KvType type) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (type == KvType::kF32) return bits;
  if (type == KvType::kBF16) return bits >> 16;
  const uint32_t exponent = bits >> 23 & 0xFF, sign = bits >> 16 & 0x8000;
  if (exponent < 113 || exponent > 142) return sign;
  return sign | (exponent - 112) << 10 | (bits >> 13 & 0x3FF);
}

}  // namespace

void FillNormal(SplitMix64& random, const NormalLaw& law, KvType type, std::span<std::byte> values) {
  const size_t element = KvTypeBytes(type);
  CACHALOT_CHECK(values.size() % element == 0);
  for (size_t i = 0; i < values.size(); i += element) {
    const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
    const double value = law.mean + law.deviation * radius * std::cos(2 * std::numbers::pi * random.Uniform());
    const uint32_t bits = BitsOf(static_cast<float>(value), type);
    std::memcpy(&values[i], &bits, element);  // little endian
  }
}

}  // namespace cachalot::codec
