#include "kernels/quant_blocks.h"

#include <bit>
#include <cstring>

#include "kernels/half-inl.h"

namespace cachalot::kernels {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF and the panel layout are little-endian");

constexpr uint32_t kSuperGroups = 8;  // groups of 32 in a K-quant block

uint16_t ReadU16(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Eight weights side by side, one in each byte: what follows works on all of them at once.
constexpr uint64_t InEach(uint64_t byte) { return byte * 0x0101010101010101u; }
uint64_t LoadEight(const uint8_t* p) {
  uint64_t eight;
  std::memcpy(&eight, p, sizeof eight);
  return eight;
}
void StoreEight(uint8_t* p, uint64_t eight) { std::memcpy(p, &eight, sizeof eight); }

// The first 16 columns are the low nibbles, the last 16 the high ones.
void ReadNibbles(const uint8_t* q, uint8_t* out) {
  for (uint32_t i = 0; i < 16; i += 8) {
    const uint64_t eight = LoadEight(q + i);
    StoreEight(out + i, eight & InEach(15));
    StoreEight(out + i + 16, (eight >> 4) & InEach(15));
  }
}

void AddFifthBits(const uint8_t* bits, uint8_t* out) {
  for (uint32_t i = 0; i < kGroup; i += 8) {
    // Byte b keeps bit b of this byte of bits, then becomes 0 or 1.
    const uint64_t spread = InEach(bits[i / 8]) & 0x8040201008040201u;
    const uint64_t high = ((spread + InEach(0x7f)) >> 7) & InEach(1);
    StoreEight(out + i, LoadEight(out + i) | high << 4);
  }
}

void ReadSimple(TensorType type, const uint8_t* block, QuantGroup& group) {
  group.d = ReadU16(block);
  switch (type) {
    case TensorType::kQ4_0: return ReadNibbles(block + 2, group.weights);
    case TensorType::kQ4_1: group.min = ReadU16(block + 2); return ReadNibbles(block + 4, group.weights);
    case TensorType::kQ5_0: ReadNibbles(block + 6, group.weights); return AddFifthBits(block + 2, group.weights);
    case TensorType::kQ5_1:
      group.min = ReadU16(block + 2);
      ReadNibbles(block + 8, group.weights);
      return AddFifthBits(block + 4, group.weights);
    default:  // Q8_0, made unsigned
      for (uint32_t i = 0; i < kGroup; i += 8) StoreEight(group.weights + i, LoadEight(block + 2 + i) ^ InEach(0x80));
  }
}

// Eight 6-bit scales and mins in 12 bytes: the first four of each have theirs in the low bits of bytes 0-3 and 4-7; the
// last four have their low nibbles in bytes 8-11 and their top two bits above those of the first four.
void ReadSuperScales(const uint8_t* packed, uint32_t index, QuantGroup& group) {
  const uint32_t i = index % 4;
  if (index < 4) {
    group.scales[0] = packed[i] & 63;
    group.scales[1] = packed[4 + i] & 63;
  } else {
    group.scales[0] = static_cast<uint8_t>((packed[8 + i] & 15) | ((packed[i] >> 2) & 48));
    group.scales[1] = static_cast<uint8_t>((packed[8 + i] >> 4) | ((packed[4 + i] >> 2) & 48));
  }
}

// Q4_K: d, dmin, scales[12], nibbles[128]; Q5_K: d, dmin, scales[12], high bits[32], nibbles[128].
void ReadSuperMin(TensorType type, const uint8_t* block, uint32_t index, QuantGroup& group) {
  group.d = ReadU16(block);
  group.min = ReadU16(block + 2);
  ReadSuperScales(block + 4, index, group);
  const bool five = type == TensorType::kQ5_K;
  const uint8_t* nibbles = block + (five ? 48 : 16) + index / 2 * kGroup;
  const uint32_t shift = index % 2 * 4;
  for (uint32_t i = 0; i < kGroup; i += 8) {
    uint64_t eight = (LoadEight(nibbles + i) >> shift) & InEach(15);
    if (five) eight |= ((LoadEight(block + 16 + i) >> index) & InEach(1)) << 4;
    StoreEight(group.weights + i, eight);
  }
}

// Q6_K: nibbles[128], top bits[64], scales[16], d.
void ReadSuperPair(const uint8_t* block, uint32_t index, QuantGroup& group) {
  group.d = ReadU16(block + 208);
  group.scales[0] = block[192 + 2 * index];
  group.scales[1] = block[192 + 2 * index + 1];
  const uint32_t half = index / 4, quarter = index % 4;
  const uint8_t* nibbles = block + 64 * half + kGroup * (quarter % 2);
  const uint8_t* top = block + 128 + kGroup * half;
  for (uint32_t i = 0; i < kGroup; i += 8) {
    const uint64_t low = (LoadEight(nibbles + i) >> (quarter / 2 * 4)) & InEach(15);
    const uint64_t high = (LoadEight(top + i) >> (2 * quarter)) & InEach(3);
    StoreEight(group.weights + i, low | high << 4);
  }
}

}  // namespace

void ReadGroups(TensorType type, const std::byte* row, uint64_t first, std::span<QuantGroup> out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(row);
  const uint64_t block_bytes = InfoOf(type).block_bytes;
  const ScaleKind scales = FormatOf(type).scales;
  for (uint64_t i = 0; i < out.size(); ++i) {
    const uint64_t group = first + i;
    const uint8_t* super_block = bytes + group / kSuperGroups * block_bytes;
    switch (scales) {
      case ScaleKind::kHalf:
      case ScaleKind::kHalfMin: ReadSimple(type, bytes + group * block_bytes, out[i]); break;
      case ScaleKind::kSuperMin: ReadSuperMin(type, super_block, group % kSuperGroups, out[i]); break;
      case ScaleKind::kSuperPair: ReadSuperPair(super_block, group % kSuperGroups, out[i]); break;
    }
  }
}

QuantGroup ReadGroup(TensorType type, const std::byte* row, uint64_t group) {
  QuantGroup out;
  ReadGroups(type, row, group, {&out, 1});
  return out;
}

void DequantizeGroup(TensorType type, const QuantGroup& group, float* out) {
  const QuantFormat format = FormatOf(type);
  const float d = FloatOfF16(group.d);
  const float min = FloatOfF16(group.min);
  switch (format.scales) {
    case ScaleKind::kHalf:
      for (uint32_t i = 0; i < kGroup; ++i) out[i] = d * static_cast<float>(int(group.weights[i]) - int(format.offset));
      break;
    case ScaleKind::kHalfMin:
      for (uint32_t i = 0; i < kGroup; ++i) out[i] = d * static_cast<float>(group.weights[i]) + min;
      break;
    case ScaleKind::kSuperMin: {
      const float scale = d * static_cast<float>(group.scales[0]);
      const float minimum = min * static_cast<float>(group.scales[1]);
      for (uint32_t i = 0; i < kGroup; ++i) out[i] = scale * static_cast<float>(group.weights[i]) - minimum;
      break;
    }
    case ScaleKind::kSuperPair:
      for (uint32_t i = 0; i < kGroup; ++i) {
        const float scale = d * static_cast<float>(static_cast<int8_t>(group.scales[i / kHalfGroup]));
        out[i] = scale * static_cast<float>(int(group.weights[i]) - int(format.offset));
      }
      break;
  }
}

}  // namespace cachalot::kernels
