// DiskIndex knows where on disk each block is: key to segment, record and place within, and how much each is used.
// Threads:   any; callbacks run under its lock.
// Ownership: owns its entries; all is returned by value.
// Invariant: of several records with one key the one of the highest sequence is found. What was dropped is not found
//            again, but counts as physically there until its segment is forgotten.
// Cost:      one hash look-up per block; about 200 bytes of memory per block on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "tier/disk_format.h"

namespace cachalot::tier {

// Keys are SHA-256: any part of one is a hash.
struct DigestHash {
  size_t operator()(const Digest& digest) const {
    size_t hash;
    std::memcpy(&hash, digest.data(), sizeof(hash));
    return hash;
  }
};

struct DiskBlock {
  uint32_t tokens = 0;
  uint32_t groups = 0;  // bits
  uint32_t bytes = 0;
  uint32_t stored_bytes = 0;  // what it takes in its file
  bool operator==(const DiskBlock&) const = default;
};

struct RecordPlace {
  uint64_t segment = 0;  // its first sequence
  uint64_t offset = 0;
  uint32_t header_bytes = 0;
  uint64_t sequence = 0;
  bool operator==(const RecordPlace&) const = default;
};

struct FoundBlock {
  DiskBlock block;
  RecordPlace record;
  uint32_t index = 0;           // of the block in its record
  uint32_t payload_offset = 0;  // of its stored bytes in the record's
  Digest identity{};
  int64_t expires_unix_seconds = kNeverExpires;
};

// Blocks of one record, ascending.
struct BlocksOfRecord {
  RecordPlace record;
  std::vector<uint32_t> blocks;
};

class DiskIndex {
 public:
  // A record of `segment`. Not `live`: its blocks are physically there, and not found. `now` is in bytes appended.
  void AddRecord(uint64_t segment, const FooterRecord& record, bool live, uint64_t now);

  std::optional<FoundBlock> Find(const Digest& key) const;
  void Drop(const Digest& key);
  // Drops what was written before `sequence`.
  void DropBefore(const Digest& key, uint64_t sequence);
  // The blocks were read, or will be soon.
  void Touch(std::span<const Digest> keys, uint64_t now);
  void Touch(const Digest& key, uint64_t now) { Touch({&key, 1}, now); }

  // When the first record with an end expires, whether or not a block of it is found.
  std::optional<int64_t> NextExpiry() const;
  // Keys of the blocks that are found in records that expire by then; each record is named once.
  std::vector<Digest> TakeExpired(int64_t unix_seconds);

  // All of a segment's blocks; how many were live.
  uint64_t DropSegment(uint64_t segment);
  // The file is gone for good.
  void ForgetSegment(uint64_t segment);
  uint64_t LiveBlocksOf(uint64_t segment) const;
  // By disk_reclaim.h.
  double ValueOf(uint64_t segment, uint64_t now, uint64_t turnover_bytes) const;
  // Live blocks that were read since they were written.
  std::vector<BlocksOfRecord> ReadBlocks(uint64_t segment) const;

  void ForEachLive(FunctionRef<void(uint64_t segment, const Digest& identity, const DiskBlock& block)> call) const;
  // Live or not.
  void ForEachKey(FunctionRef<void(const Digest& key, uint64_t sequence)> call) const;

  uint64_t live_blocks() const;
  uint64_t live_bytes() const;  // stored
  uint64_t physical_blocks() const;
  // Of memory.
  uint64_t MemoryBytes() const;

 private:
  struct Block {
    Digest key;
    DiskBlock facts;
    uint32_t record;
    uint32_t payload_offset;
    uint64_t last_use;
    bool live;
    bool read;
  };
  struct Record {
    uint64_t offset;
    uint64_t sequence;
    uint32_t header_bytes;
    uint32_t first_block;
    uint32_t identity;  // in identities_
    int64_t expires_unix_seconds;
  };
  struct Expiry {
    int64_t unix_seconds;
    uint64_t segment;
    uint32_t record;
    auto operator<=>(const Expiry&) const = default;
  };
  struct Segment {
    std::vector<Record> records;
    std::vector<Block> blocks;
    uint64_t live_blocks = 0;
  };
  struct Place {
    uint64_t segment;
    uint32_t block;
  };
  using Places = std::unordered_map<Digest, Place, DigestHash>;

  static RecordPlace PlaceOf(uint64_t segment, const Record& record);
  uint32_t IdentityNumber(const Digest& identity) CACHALOT_REQUIRES(mutex_);
  const Record& RecordOf(const Place& place) const CACHALOT_REQUIRES(mutex_);
  void Kill(const Place& place) CACHALOT_REQUIRES(mutex_);
  void Drop(Places::iterator found) CACHALOT_REQUIRES(mutex_);
  uint64_t DropBlocks(uint64_t segment_id, const Segment& segment) CACHALOT_REQUIRES(mutex_);

  mutable Mutex mutex_;  // leaf lock: nothing else is acquired while it is held
  std::map<uint64_t, Segment> segments_ CACHALOT_GUARDED_BY(mutex_);
  Places places_ CACHALOT_GUARDED_BY(mutex_);  // of live blocks
  std::vector<Digest> identities_ CACHALOT_GUARDED_BY(mutex_);
  std::set<Expiry> expiries_ CACHALOT_GUARDED_BY(mutex_);  // of records that have an end
  uint64_t live_bytes_ CACHALOT_GUARDED_BY(mutex_) = 0;
  uint64_t physical_blocks_ CACHALOT_GUARDED_BY(mutex_) = 0;
};

}  // namespace cachalot::tier
