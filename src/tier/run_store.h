// RunStore keeps runs of KV blocks below host memory: what KvStore asks of the disk tier, so that a simulation can
// stand in for the disk.
// Threads:   writes, stats and health one at a time; Read, reads, Touch, Match and Find from any thread at any time.
// Ownership: that of the implementation.
// Invariant: a read gives the bytes that were put or says that it does not; any block may be gone at any time.
// Cost:      that of the implementation; all but reads, Touch, Match and Find may wait for the disk.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/read_outcome.h"
#include "base/status.h"
#include "tier/disk_index.h"
#include "tier/disk_read.h"
#include "tier/kv_run.h"

namespace cachalot::tier {

struct DiskReads {
  std::array<uint64_t, kReadOutcomes> blocks{};  // by ReadOutcome
  uint64_t bytes = 0;                            // unpacked
};

struct DiskTierStats {
  uint64_t segments = 0;
  uint64_t occupied_bytes = 0;  // without deletion log
  uint64_t foreign_files = 0;   // left alone
  uint64_t foreign_bytes = 0;
  uint64_t live_blocks = 0;
  uint64_t live_bytes = 0;
  uint64_t index_bytes = 0;  // of memory
  uint64_t deletions = 0;    // remembered
  // Since it was opened:
  uint64_t recovered_sealed = 0;
  uint64_t recovered_scanned = 0;
  uint64_t discarded_segments = 0;  // damaged or unreadable, or of a folder whose deletions are not known
  uint64_t damaged_records = 0;     // skipped while scanning
  uint64_t put_records = 0;
  uint64_t put_bytes = 0;
  uint64_t refused_puts = 0;
  uint64_t failed_writes = 0;
  uint64_t reclaimed_segments = 0;
  uint64_t reclaimed_blocks = 0;  // that were live
  uint64_t kept_blocks = 0;       // of reclaimed segments, appended again
  uint64_t abandoned_blocks = 0;  // written, then lost because syncing failed
  uint64_t raw_bytes = 0;         // of what was put, before it was packed
  DiskReads reads;
};

class RunStore {
 public:
  virtual ~RunStore() = default;

  // Appends the run; its keys are then found here, and older copies are not. `bytes`: equal slots, as in kv_run.h.
  virtual Status Put(const KvRun& run, std::span<const std::byte> bytes) = 0;
  // What there is of a block, if it was computed with `identity`.
  virtual std::optional<DiskBlock> Find(const Digest& identity, const Digest& key) const = 0;
  // Leading blocks of a chain that are there, computed with `identity`.
  std::vector<DiskBlock> Match(const Digest& identity, std::span<const Digest> keys) const {
    std::vector<DiskBlock> leading;
    for (const Digest& key : keys) {
      const std::optional<DiskBlock> found = Find(identity, key);
      if (!found) break;
      leading.push_back(*found);
    }
    return leading;
  }
  // Somebody will read them soon: those that are there count as read.
  virtual void Touch(std::span<const Digest> keys) = 0;
  // Into `into`, which has their size; a block's bytes are to be used only if its outcome is kRead.
  virtual Result<std::vector<ReadOutcome>> Read(const KvRun& run, std::span<std::byte> into) = 0;

  // Never found again once this returns OK, also after a crash.
  virtual Status Erase(std::span<const Digest> keys) = 0;
  virtual Status Clear() = 0;
  // Runs may have a deadline, by the clock. DeadlineOf: Nanos::max() where there is none, or no such block. What has
  // had its time is not found; EraseExpired erases it for good, and has something to do next at NextExpiry.
  virtual Nanos DeadlineOf(const Digest&) const { return Nanos::max(); }
  virtual Status EraseExpired() { return OkStatus(); }
  virtual std::optional<Nanos> NextExpiry() const { return std::nullopt; }

  // What was put and is still found survives a crash.
  virtual Status Flush() = 0;
  // Flush, and the next process finds all at once.
  virtual Status Seal() = 0;

  // OK, or why Put refuses for the time being.
  virtual Status health() const = 0;
  virtual DiskTierStats stats() const = 0;
  virtual DiskReads reads() const = 0;
};

}  // namespace cachalot::tier
