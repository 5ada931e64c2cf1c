// RecordReader reads consecutive blocks of records and believes nothing that it has not compared.
// Threads:   belongs to one; a reader per thread may read one file.
// Ownership: borrows file and destination for the call; keeps working memory.
// Invariant: kRead means: checksum, segment, record, identity, key, groups and token ids are those asked for. The bytes
//            of any other block are unspecified.
// Cost:      one File::ReadAt for what is in one file: the records' headers and the blocks. Blocks go straight into
//            `into` if they are not packed and address and place are multiples of kDiskPage, else over a copy. When
//            that fails, once more for each part, to learn which it is.
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

// A part that is to be read. Requires: `into` is as large as its blocks, and `outcomes` has one for each.
struct PartRead {
  const File* file = nullptr;
  PartOfRecord part;
  ExpectedBlocks expected;
  std::span<std::byte> into;
  std::span<ReadOutcome> outcomes;
};

class RecordReader {
 public:
  // Sets the outcomes of all parts. Those of one file that follow each other are read at once.
  void Read(std::span<const PartRead> parts);

  // The header of a record, compared with its place. A failure says why the record cannot be used.
  struct Header {
    ReadOutcome outcome = ReadOutcome::kUnreadable;
    RecordHeader record;
  };
  Header ReadHeader(const File& file, const RecordPlace& place, const SegmentUuid& uuid);

 private:
  // Where header and blocks go as they are stored, in whole pages; the blocks into `into` itself where that is
  // possible.
  struct Fetch {
    FileRange header;
    FileRange pages;
    std::span<const std::byte> stored;  // the blocks, in `pages`
    ReadOutcome outcome = ReadOutcome::kRead;
  };
  std::vector<Fetch> Place(std::span<const PartRead> parts);
  static void ReadAtOnce(const File& file, std::span<Fetch> fetches);
  void Check(const PartRead& read, const Fetch& fetch);
  static Header Compare(std::span<const std::byte> bytes, const RecordPlace& place, const SegmentUuid& uuid);
  // Whether the block is what it has to be; its bytes then are in `into`.
  ReadOutcome Take(const RecordBlock& block, std::span<const std::byte> stored, std::span<std::byte> into);

  AlignedBytes staging_;
  BlockPacker packer_;
};

}  // namespace cachalot::tier
