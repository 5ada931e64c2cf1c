// DiskTier keeps KV blocks in segment files of one folder: found again after a restart, verified on every read.
// Threads:   writes, stats and health one at a time; Read, reads, Touch, Match and Find from any thread at any time.
//            All but reads, Touch, Match and Find may wait for the disk.
// Ownership: holds the folder against other processes; borrows file system and clock.
// Invariant: a read gives the bytes that were put or says that it does not. What Erase returned OK for is never found
//            again, whatever crashes. Files of the folder occupy at most `limit_bytes`, foreign ones included.
// Cost:      Put: one copy and one write per record, and the room it needs: reclaiming removes whole files. Read: one
//            File::ReadAt per file, of a header and the blocks for each record. About 200 bytes of memory per block on
//            disk.
//
// It is a cache: any block may be gone at any time, by reclamation or by damage. Decisions what to put, and whether to
// read or recompute, are the caller's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/entropy.h"
#include "base/file_lock.h"
#include "base/file_system.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/status.h"
#include "tier/block_packer.h"
#include "tier/deletion_log.h"
#include "tier/disk_index.h"
#include "tier/disk_read.h"
#include "tier/disk_recovery.h"
#include "tier/disk_segment.h"
#include "tier/kv_run.h"
#include "tier/run_store.h"
#include "tier/segment_files.h"
#include "tier/write_health.h"

namespace cachalot::tier {

struct DiskTierOptions {
  std::string folder;
  uint64_t limit_bytes = 0;
  uint64_t min_free_bytes = 0;                  // of the disk, left to others
  uint64_t segment_bytes = uint64_t{64} << 20;  // at most an eighth of the limit is used
  uint64_t record_bytes = uint64_t{1} << 20;    // a run's payload is cut into records of at most that
  double kept_share = 0.25;                     // of a new segment, for read blocks of those it replaces
  uint32_t failures_until_degraded = 3;
  Nanos retry_after = std::chrono::seconds(10);  // between tries while degraded
  uint32_t open_files = 128;
  uint32_t packed_element_bytes = 0;                  // of what blocks hold: they are packed; 0: as they are
  bool lock = true;                                   // against other processes; the folder must be on the real disk
  std::function<uint64_t()> entropy = SystemEntropy;  // for uuids
};

// How the limit is divided: room for the deletion log, twice while it is written anew, and for segments.
uint64_t DeletionLogRoom(const DiskTierOptions& options);
uint64_t SegmentRoom(const DiskTierOptions& options);
// Of one of them.
uint64_t SegmentBytes(const DiskTierOptions& options);

class DiskTier final : public RunStore {
 public:
  // Finds what the folder holds; makes it if needed. kInvalid for options that cannot work and for a folder of a newer
  // version, kUnavailable when another process holds the folder or the disk fails.
  static Result<std::unique_ptr<DiskTier>> Open(FileSystem& files, const Clock& clock, DiskTierOptions options);
  ~DiskTier() override;

  // Appends the run; its keys are then found here, and older copies are not. `bytes`: equal slots, as in kv_run.h.
  // kInvalid for a run that is not one, or with a block too large for a segment; kOverloaded when there is no room;
  // kUnavailable while writing fails. What was appended before a failure stays.
  Status Put(const KvRun& run, std::span<const std::byte> bytes) override;

  std::optional<DiskBlock> Find(const Digest& key) const;
  // The same if it was computed with `identity`.
  std::optional<DiskBlock> Find(const Digest& identity, const Digest& key) const override;
  // When it ends, by the clock; Nanos::max(): never, or it is not there.
  Nanos DeadlineOf(const Digest& key) const override;
  void Touch(std::span<const Digest> keys) override;
  // Reads the blocks of `run` into `into`, which has their size, as in kv_run.h; each block's bytes are to be used only
  // if its outcome is kRead. Any other but kMissing drops the block. Faster when `into` begins on a page. kInvalid for
  // a run that is not one; the parent is not looked at.
  Result<std::vector<ReadOutcome>> Read(const KvRun& run, std::span<std::byte> into) override;

  // Never found again once this returns OK, also after a crash; after a failure not found either, until a crash. The
  // bytes leave the disk with their segment.
  Status Erase(std::span<const Digest> keys) override;
  // All segments are removed.
  Status Clear() override;
  // What has had its time is not found in any case; this erases it, so that no clock brings it back.
  Status EraseExpired() override;
  // When that has something to do next; nothing: never, as things are.
  std::optional<Nanos> NextExpiry() const override;

  // What was put and is still found survives a crash. After a failure some of it may be gone.
  Status Flush() override;
  // Flush, and the next Open has nothing to scan.
  Status Seal() override;

  // OK, or why Put refuses for the time being.
  Status health() const override { return health_.health(); }
  DiskTierStats stats() const override;
  DiskReads reads() const override;

 private:
  DiskTier(FileSystem& files, const Clock& clock, DiskTierOptions options, LoadedDeletions deletions);

  Status Recover(const FolderFiles& found, bool deletions_known);
  Status RecoverSegment(const std::string& name, bool deletions_known);
  Status EraseExpiredSinceLastTime();
  Status SealRecovered(LoadedSegment& segment);
  void NoteForeign(const std::string& name);

  // Unix seconds, once it is open: as the clock said then, and steadily on. No jump of the wall clock is seen.
  int64_t Seconds() const { return SecondsAt(clock_.Now()); }
  int64_t SecondsAt(Nanos moment) const;
  Nanos MomentOf(int64_t unix_seconds) const;
  // As long as it has not ended.
  std::optional<FoundBlock> FindNow(const Digest& key) const;
  uint64_t NextSequence() { return (uint64_t{opening_} << 32) | ++sequence_; }
  Status Written(Status outcome);
  Status AppendRun(const KvRun& run, std::span<const std::byte> bytes, uint64_t slot_bytes);
  // What is to be written of a record's blocks: valid until the next call. Sets their stored bytes and checksums.
  Result<std::span<const std::byte>> Packed(RecordHeader& record, std::span<const std::byte> bytes);
  // Into the open segment. Requires that it fits, and Packed.
  Status AppendRecord(RecordHeader record, std::span<const std::byte> payload);

  Status OpenSegmentFor(const RecordHeader& record);
  // As large as may be and there is room for, and at least `least_bytes`.
  Status CreateSegment(uint64_t least_bytes);
  // Once for each segment, when it holds the record for which it was made: room for the next, while there is a segment
  // to which read blocks can move.
  Status PrepareRoom();
  Status SyncOpen();
  Status SealOpen();
  void AbandonOpen();
  Status SyncNames();
  // Bytes to be given up so that `bytes` more may be taken.
  Result<uint64_t> Shortage(uint64_t bytes);
  // Reclaims until there is room for `bytes`; up to `kept_bytes` of read blocks are appended again.
  Status MakeRoom(uint64_t bytes, uint64_t kept_bytes);
  Status ReclaimOne(uint64_t& kept_bytes);
  Status Reclaim(uint64_t segment, uint64_t& kept_bytes);
  void KeepReadBlocks(uint64_t segment, uint64_t& kept_bytes);
  // Bytes that were appended again: those of `blocks` blocks from `part` on, or none.
  uint64_t KeepBlocks(const File& file, PartOfRecord part, const RecordHeader& record, uint32_t blocks,
                      uint64_t kept_bytes);
  Status RemoveEmptySegments();
  Status RemoveAll();
  void PruneDeletions();
  // Reclaims where the log would grow too large.
  Status StoreDeletions();
  Status SyncAll();

  // Finds their files, and sets their outcomes.
  void ReadParts(std::span<PartRead> parts);
  std::unique_ptr<RecordReader> TakeReader();
  void GiveBack(std::unique_ptr<RecordReader> reader);

  FileSystem& files_;
  const Clock& clock_;
  const DiskTierOptions options_;
  const uint64_t segment_bytes_;
  std::optional<FileLock> lock_;
  SegmentFiles segments_;
  DiskIndex index_;
  const uint32_t opening_;
  DeletionLog deletions_;
  WriteHealth health_;
  BlockPacker packer_;
  std::vector<std::byte> packed_;
  std::unique_ptr<SegmentWriter> open_;
  bool room_prepared_ = false;  // for the segment after open_
  uint32_t sequence_ = 0;
  int64_t last_written_ = 0;  // of all that Open found, in Unix seconds
  Nanos opened_at_{0};
  int64_t opened_unix_seconds_ = 0;
  std::atomic<uint64_t> appended_bytes_{0};  // the time by which use is measured
  DiskTierStats stats_;                      // counts only
  mutable Mutex reading_;
  std::vector<std::unique_ptr<RecordReader>> idle_readers_ CACHALOT_GUARDED_BY(reading_);
  DiskReads reads_ CACHALOT_GUARDED_BY(reading_);
};

}  // namespace cachalot::tier
