#include "cli/disk_calibration.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file_system.h"
#include "base/random.h"
#include "tier/disk_store.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kRuns = 96;
constexpr uint32_t kBlockTokens = 16;

// Run `number` of blocks that nobody else has.
tier::KvRun RunOf(uint64_t number, uint64_t blocks) {
  tier::KvRun run;
  run.identity = {1};
  for (uint64_t i = 0; i < blocks; ++i) {
    Digest key{};
    key[0] = static_cast<uint8_t>(i);
    key[1] = static_cast<uint8_t>(i >> 8);
    key[2] = static_cast<uint8_t>(number);
    run.blocks.push_back({key, kBlockTokens, 1});
  }
  run.tokens.resize(blocks * kBlockTokens);
  return run;
}

Status WaitForAll(tier::DiskStore& store, Clock& clock) {
  Status status;
  while (store.stats().transfers > 0) {
    for (const tier::DiskStore::Ended& ended : store.Poll(clock.Now())) {
      if (!ended.status.ok()) status = ended.status;
    }
    if (store.stats().transfers > 0) clock.SleepUntil(clock.Now() + std::chrono::microseconds(50));
  }
  return status;
}

Status Write(tier::DiskStore& store, uint64_t blocks, uint64_t block_bytes, Clock& clock) {
  SplitMix64 random(1);
  for (uint64_t number = 0; number < kRuns;) {
    if (std::optional<tier::Staging> staging = store.TakeStaging(blocks * block_bytes)) {
      std::ranges::generate(staging->bytes(), [&] { return static_cast<std::byte>(random()); });
      CACHALOT_RETURN_IF_ERROR(store.Store(RunOf(number++, blocks), std::move(*staging)).status());
    } else {
      CACHALOT_RETURN_IF_ERROR(WaitForAll(store, clock));
    }
  }
  CACHALOT_RETURN_IF_ERROR(store.Sync().status());
  return WaitForAll(store, clock);
}

// Seconds until runs [first, end) are there, of `blocks` blocks each.
Result<double> SecondsToRead(tier::DiskStore& store, uint64_t first, uint64_t end, uint64_t blocks,
                             uint64_t block_bytes, Clock& clock) {
  const Nanos begin = clock.Now();
  for (uint64_t number = first; number < end; ++number) {
    CACHALOT_RETURN_IF_ERROR(
        store.Load(RunOf(number, blocks), blocks * block_bytes, Nanos::max(), tier::TransferPriority::kPromotion)
            .status());
  }
  CACHALOT_RETURN_IF_ERROR(WaitForAll(store, clock));
  return ToSeconds(clock.Now() - begin);
}

Result<TierRateTable> MeasureIn(const std::string& folder, uint64_t block_bytes, Clock& clock) {
  CACHALOT_ASSIGN_OR_RETURN(const std::unique_ptr<FileSystem> files, DiskFileSystemBy(DiskIo::kAuto));
  const uint64_t blocks = std::max<uint64_t>(tier::DiskStore::run_bytes() / block_bytes, 1);
  const uint64_t bytes = kRuns * blocks * block_bytes;
  tier::DiskTierOptions options{.folder = folder, .limit_bytes = 2 * bytes + (uint64_t{64} << 20)};
  CACHALOT_ASSIGN_OR_RETURN(const auto store, tier::DiskStore::Open(*files, clock, options, block_bytes));
  const Nanos begin = clock.Now();
  CACHALOT_RETURN_IF_ERROR(Write(*store, blocks, block_bytes, clock));
  const double down = ToSeconds(clock.Now() - begin);

  constexpr uint64_t kAlone = 8;  // one after the other, for the latency
  std::vector<double> alone;
  for (uint64_t number = 0; number < kAlone; ++number) {
    CACHALOT_ASSIGN_OR_RETURN(const double seconds, SecondsToRead(*store, number, number + 1, 1, block_bytes, clock));
    alone.push_back(seconds);
  }
  CACHALOT_ASSIGN_OR_RETURN(const double up, SecondsToRead(*store, kAlone, kRuns, blocks, block_bytes, clock));
  CACHALOT_RETURN_IF_ERROR(store->Close());

  std::ranges::sort(alone);
  const double up_rate = static_cast<double>(bytes) * (kRuns - kAlone) / kRuns / up;
  const double latency = std::max(alone[kAlone / 2] - static_cast<double>(block_bytes) / up_rate, 0.0);
  TierRateTable rates;
  auto& disk = rates[TierIndex(TierId::kDisk)];
  disk[static_cast<size_t>(Direction::kUp)] = TierRate{latency, up_rate};
  disk[static_cast<size_t>(Direction::kDown)] = TierRate{0, static_cast<double>(bytes) / down};
  return rates;
}

}  // namespace

Result<TierRateTable> MeasureDisk(const std::string& folder, uint64_t block_bytes, Clock& clock) {
  const std::string own = folder + "/calibration";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::create_directory(own, error)) {
    return Unavailable(fmt::format("cannot make {}, which must not exist yet: {}", own, error.message()));
  }
  Result<TierRateTable> rates = MeasureIn(own, block_bytes, clock);
  std::filesystem::remove_all(own, error);
  return rates;
}

}  // namespace cachalot::cli
