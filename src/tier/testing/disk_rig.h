// What tests of the disk tier share: runs whose keys and bytes follow from their place in a chain, and a small tier.
// Threads:   belongs to one.
// Ownership: values.
// Invariant: equal arguments give equal runs and bytes.
// Cost:      a hash per block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/testing/fault_file_system.h"
#include "tier/disk_tier.h"
#include "tier/kv_run.h"

namespace cachalot::tier {

inline constexpr const char* kTestFolder = "/disk";

struct ChainShape {
  uint64_t identity = 1;
  uint32_t block_tokens = 16;
  uint32_t slot_bytes = 1024;
  uint32_t groups = 1;  // bits
};

Digest TestIdentity(uint64_t number);
Digest TestKey(const ChainShape& shape, uint64_t chain, uint64_t block);
// Blocks [first, first + count) of a chain.
KvRun TestRun(const ChainShape& shape, uint64_t chain, uint64_t first, uint64_t count);
// Of one block or of all: half of them can be packed. `version`: other bytes under the same key.
std::vector<std::byte> TestBlockBytes(const Digest& key, uint64_t bytes, uint64_t version = 0);
std::vector<std::byte> TestBytes(const KvRun& run, const ChainShape& shape, uint64_t version = 0);

struct DiskRig {
  std::unique_ptr<FaultFileSystem> files = std::make_unique<FaultFileSystem>();
  ManualClock clock{1'000'000};
  SplitMix64 entropy{42};
  DiskTierOptions options;
  std::unique_ptr<DiskTier> tier;

  explicit DiskRig(uint64_t limit_bytes = 4 << 20, uint64_t segment_bytes = 256 << 10);

  Status Open();
  // As kill -9 or loss of power leaves the disk.
  void LosePower(Unsynced unsynced, uint64_t seed = 0);
  // That, and a restart.
  Status Crash(Unsynced unsynced, uint64_t seed = 0);

  Status Put(const ChainShape& shape, uint64_t chain, uint64_t first, uint64_t count, uint64_t version = 0);
  // Of one block: not read, or its bytes.
  struct ReadBlock {
    ReadOutcome outcome;
    std::vector<std::byte> bytes;
  };
  ReadBlock Read(const ChainShape& shape, uint64_t chain, uint64_t block);
  // Bytes that all files of the folder occupy.
  uint64_t Occupied() const;
  std::vector<std::string> Segments() const;  // paths
};

}  // namespace cachalot::tier
