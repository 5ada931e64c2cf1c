#include "cli/disk_packing.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"
#include "base/units.h"
#include "codec/byte_planes.h"
#include "codec/sample_values.h"

namespace cachalot::cli {
namespace {

constexpr size_t kTriedBytes = 1 << 20;

std::vector<std::byte> NormalValues(KvType type) {
  SplitMix64 random(1);
  std::vector<std::byte> values(kTriedBytes);
  codec::FillNormal(random, {}, type, values);
  return values;
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
