#include "cli/disk_packing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"
#include "base/units.h"
#include "codec/byte_planes.h"

namespace cachalot::cli {
namespace {

constexpr size_t kTriedBytes = 1 << 20;

// The upper bytes of what `type` makes of a value, which is within its range; cut, not rounded.
uint32_t BitsOf(float value, KvType type) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (type == KvType::kF32) return bits;
  if (type == KvType::kBF16) return bits >> 16;
  const uint32_t exponent = bits >> 23 & 0xFF, sign = bits >> 16 & 0x8000;
  return exponent < 113 ? sign : sign | (exponent - 112) << 10 | (bits >> 13 & 0x3FF);
}

std::vector<std::byte> NormalValues(KvType type) {
  SplitMix64 random(1);
  std::vector<std::byte> bytes(kTriedBytes);
  const size_t element = KvTypeBytes(type);
  for (size_t i = 0; i < bytes.size(); i += element) {
    const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
    const uint32_t bits = BitsOf(static_cast<float>(radius * std::cos(2 * std::numbers::pi * random.Uniform())), type);
    std::memcpy(&bytes[i], &bits, element);  // little endian, as KV lies in memory
  }
  return bytes;
}

}  // namespace

cost::PackingSpeed TryPacking(KvType type, Clock& clock) {
  std::vector<std::byte> values = NormalValues(type), frame;
  codec::BytePlanes codec = codec::BytePlanes::Make(1).value();
  CACHALOT_CHECK(codec.Encode(values, KvTypeBytes(type), frame).ok());
  double seconds = 1;
  for (int i = 0; i < 3; ++i) {
    const Nanos begun = clock.Now();
    CACHALOT_CHECK(codec.Decode(frame, values).ok());
    seconds = std::min(seconds, std::max(ToSeconds(clock.Now() - begun), 1e-9));
  }
  return {.ratio = static_cast<double>(values.size()) / static_cast<double>(frame.size()),
          .unpacked_bytes_per_second = static_cast<double>(values.size()) / seconds};
}

Result<uint32_t> PackedElementBytes(const TierOptions& options, KvType type, const TierRateTable& measured,
                                    Clock& clock) {
  const std::string& asked = options.disk_compression;
  if (asked == "none") return 0u;
  if (asked != "zstd" && asked != "auto") {
    return Invalid(fmt::format("--disk-compression: expected none, zstd or auto, got \"{}\"", asked));
  }
  const std::optional<TierRate>& rate = measured[TierIndex(TierId::kDisk)][static_cast<size_t>(Direction::kUp)];
  const bool pays = rate && cost::PackingPays(*rate, TryPacking(type, clock));
  if (asked == "zstd" && rate && !pays) {
    LogWarning(fmt::format("--disk-compression zstd: KV takes less room, and longer to come back: the disk gives {}/s",
                           FormatBytes(static_cast<uint64_t>(rate->bytes_per_second))));
  }
  return asked == "zstd" || pays ? KvTypeBytes(type) : 0;
}

}  // namespace cachalot::cli
