// RecordReader reads consecutive blocks of one record and believes nothing that it has not compared.
// Threads:   belongs to one; a reader per thread may read one file.
// Ownership: borrows file and destination for the call; keeps working memory.
// Invariant: kRead means: checksum, segment, record, identity, key, groups and token ids are those asked for. The bytes
//            of any other block are unspecified.
// Cost:      one read for the record's header and the blocks, two if they don't begin behind it. Blocks go straight
//            into `into` if they are not packed and address and place are multiples of kDiskPage, else over a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/ids.h"
#include "base/read_outcome.h"
#include "base/status.h"
#include "tier/aligned_bytes.h"
#include "tier/block_packer.h"
#include "tier/disk_index.h"
#include "tier/kv_run.h"

namespace cachalot::tier {

inline constexpr size_t kReadOutcomes = kReadOutcomeNames.size();

inline std::string NameOf(ReadOutcome outcome) { return std::string(kReadOutcomeNames[static_cast<size_t>(outcome)]); }
// kOk, kCorrupt or kUnavailable.
Code CodeOf(ReadOutcome outcome);

// Blocks of one record: from `first_block` on as many as are asked for.
struct PartOfRecord {
  RecordPlace record;
  SegmentUuid uuid{};
  uint32_t first_block = 0;
  uint64_t payload_offset = 0;  // of what the blocks take in the record's payload
  uint64_t stored_bytes = 0;
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
  // Header and blocks as they are stored; these are `into` itself where that is possible.
  struct Fetched {
    std::span<const std::byte> header;
    std::span<const std::byte> stored;
  };
  Result<Fetched> Fetch(const File& file, const PartOfRecord& part, std::span<std::byte> into);
  static Header Compare(std::span<const std::byte> bytes, const RecordPlace& place, const SegmentUuid& uuid);
  // Whether the block is what it has to be; its bytes then are in `into`.
  ReadOutcome Take(const RecordBlock& block, std::span<const std::byte> stored, std::span<std::byte> into);

  AlignedBytes staging_;
  BlockPacker packer_;
};

}  // namespace cachalot::tier
