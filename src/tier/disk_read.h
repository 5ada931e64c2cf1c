// RecordReader reads consecutive blocks of one record and believes nothing that it has not compared.
// Threads:   belongs to one; a reader per thread may read one file.
// Ownership: borrows file and destination for the call; keeps a staging buffer.
// Invariant: kRead means: checksum, segment, record, identity, key, groups and token ids are those asked for. The bytes
//            of any other block are unspecified.
// Cost:      two reads, of the record's header and of the blocks. The second goes straight into `into` if address and
//            place are multiples of kDiskPage, else over a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/file_system.h"
#include "base/ids.h"
#include "base/status.h"
#include "tier/aligned_bytes.h"
#include "tier/disk_index.h"
#include "tier/kv_run.h"

namespace cachalot::tier {

enum class ReadOutcome : uint8_t {
  kRead,
  kMissing,        // not stored, or with other groups
  kTruncated,      // the file ends before it
  kBitFlip,        // a checksum disagrees
  kForeign,        // another record, key or other tokens than asked for
  kStaleIdentity,  // another model, adapter, codec or arithmetic
  kUnreadable,     // the file cannot be opened or read
};
inline constexpr size_t kReadOutcomes = 7;

const char* NameOf(ReadOutcome outcome);
// kOk, kCorrupt or kUnavailable.
Code CodeOf(ReadOutcome outcome);

// Blocks of one record: from `first_block` on as many as are asked for.
struct PartOfRecord {
  RecordPlace record;
  SegmentUuid uuid{};
  uint32_t first_block = 0;
};

// What is asked for. `blocks` and `tokens` are those of the part alone.
struct ExpectedBlocks {
  Digest identity{};
  std::span<const KvRunBlock> blocks;
  std::span<const TokenId> tokens;
};

class RecordReader {
 public:
  // One outcome for each block. Requires: `into` is as large as the blocks.
  std::vector<ReadOutcome> Read(const File& file, const PartOfRecord& part, const ExpectedBlocks& expected,
                                std::span<std::byte> into);

  // The header of a record, compared with its place. A failure says why the record cannot be used.
  struct Header {
    ReadOutcome outcome = ReadOutcome::kUnreadable;
    RecordHeader record;
  };
  Header ReadHeader(const File& file, const RecordPlace& place, const SegmentUuid& uuid);

 private:
  Status ReadPayload(const File& file, uint64_t offset, std::span<std::byte> into);

  AlignedBytes staging_;
};

}  // namespace cachalot::tier
