// SimDisk is a disk tier without a disk: which blocks would be in which segment of which size, and which are given up
// for room, as DiskTier decides it, without their bytes.
// Threads:   one.
// Ownership: owns its records' descriptions.
// Invariant: the same calls leave the same blocks as in a DiskTier of the same options that nothing disturbs; segments
//            occupy at most SegmentRoom(options).
// Cost:      about 300 bytes of memory per block; nothing is read, written or copied.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "tier/disk_format.h"
#include "tier/disk_index.h"
#include "tier/disk_tier.h"
#include "tier/kv_run.h"
#include "tier/run_store.h"

namespace cachalot::sim {

class SimDisk final : public tier::RunStore {
 public:
  // Of the options those count that say how large files are.
  explicit SimDisk(const tier::DiskTierOptions& options);

  Status Put(const tier::KvRun& run, std::span<const std::byte> bytes) override;
  std::optional<tier::DiskBlock> Find(const Digest& identity, const Digest& key) const override;
  void Touch(std::span<const Digest> keys) override;
  // Leaves `into` as it is.
  Result<std::vector<ReadOutcome>> Read(const tier::KvRun& run, std::span<std::byte> into) override;
  Status Erase(std::span<const Digest> keys) override;
  Status Clear() override;
  Status Flush() override { return OkStatus(); }
  Status Seal() override;
  Status health() const override { return OkStatus(); }
  tier::DiskTierStats stats() const override;
  tier::DiskReads reads() const override { return reads_; }

 private:
  struct Segment {
    uint64_t occupied_bytes = 0;
    std::map<uint64_t, tier::RecordHeader> records;  // by offset, without tokens
  };
  struct OpenSegment {
    uint64_t id = 0;
    uint64_t bytes = 0;
    uint64_t end = tier::kDiskPage;  // of its records
    uint64_t footer_body_bytes = 0;
  };

  bool Fits(const tier::RecordHeader& record) const;
  Status OpenSegmentFor(const tier::RecordHeader& record);
  void Append(tier::RecordHeader record);
  void SealOpen();
  void PrepareRoom();
  Status MakeRoom(uint64_t bytes, uint64_t kept_bytes);
  Status ReclaimOne(uint64_t& kept_bytes);
  void KeepReadBlocks(uint64_t segment, uint64_t& kept_bytes);
  // Bytes that were appended again: those of `blocks` of the record, which follow each other, or none.
  uint64_t KeepBlocks(const tier::RecordHeader& record, std::span<const uint32_t> blocks, uint64_t kept_bytes);
  void Remove(uint64_t segment);

  const tier::DiskTierOptions options_;
  const uint64_t segment_bytes_;
  const uint64_t room_bytes_;
  tier::DiskIndex index_;
  std::map<uint64_t, Segment> segments_;
  std::optional<OpenSegment> open_;
  bool room_prepared_ = false;
  uint64_t occupied_bytes_ = 0;
  uint64_t appended_bytes_ = 0;
  uint64_t sequence_ = 0;
  tier::DiskTierStats stats_;
  tier::DiskReads reads_;
};

}  // namespace cachalot::sim
