// The bytes of a segment file: its header, records and footer (docs/disk_format.md has the layout).
// Threads:   pure functions.
// Ownership: none.
// Invariant: Decode takes what Encode gave; of anything else it says why not and reads nothing outside.
// Cost:      linear; a decoder allocates no more than a small multiple of the bytes that it is given.
//
// Decoders fail with kInvalid for what is not ours to judge (another program's, a newer version's) and with kCorrupt
// for what is ours and damaged, or of a version that is not read any more: a cache is not worth converting.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/status.h"

namespace cachalot::tier {

inline constexpr uint64_t kDiskPage = 4096;
inline constexpr uint32_t kDiskFormatVersion = 3;
inline constexpr uint32_t kMaxRecordBlocks = 1024;
inline constexpr uint32_t kMaxRecordTokens = 65536;
inline constexpr uint64_t kMaxSegmentBytes = uint64_t{1} << 32;
inline constexpr int64_t kNeverExpires = std::numeric_limits<int64_t>::max();

constexpr uint64_t ToPages(uint64_t bytes) { return (bytes + kDiskPage - 1) / kDiskPage * kDiskPage; }

using SegmentUuid = std::array<uint8_t, 16>;

struct SegmentHeader {
  SegmentUuid uuid{};           // drawn when the file was made
  uint64_t first_sequence = 0;  // below those of all its records, above those of all older segments
  int64_t created_unix_seconds = 0;
  bool operator==(const SegmentHeader&) const = default;
};

struct RecordBlock {
  Digest key{};
  uint32_t tokens = 0;
  uint32_t groups = 0;  // bits
  uint32_t bytes = 0;
  uint32_t stored_bytes = 0;  // fewer than `bytes` if it is packed (block_packer.h)
  uint32_t crc = 0;           // CRC-32C of the stored bytes
  bool operator==(const RecordBlock&) const = default;
};

// What a record says of its payload: consecutive blocks of one chain.
struct RecordHeader {
  SegmentUuid uuid{};  // of its segment
  uint64_t sequence = 0;
  Digest identity{};
  Digest parent{};
  uint64_t first_position = 0;
  int64_t written_unix_seconds = 0;
  int64_t expires_unix_seconds = kNeverExpires;  // from then on nothing of it is found
  std::vector<RecordBlock> blocks;
  std::vector<TokenId> tokens;  // of all blocks
  bool operator==(const RecordHeader&) const = default;
};

// Bytes of a header before padding; a record's header and payload are each padded to whole pages.
uint64_t HeaderBytes(const RecordHeader& record);
// As stored.
uint64_t PayloadBytes(const RecordHeader& record);
inline uint64_t RecordBytes(const RecordHeader& record) {
  return ToPages(HeaderBytes(record)) + ToPages(PayloadBytes(record));
}

// One page.
std::vector<std::byte> EncodeSegmentHeader(const SegmentHeader& header);
Result<SegmentHeader> DecodeSegmentHeader(std::span<const std::byte> page);

// Requires: 1 to kMaxRecordBlocks blocks and at most kMaxRecordTokens tokens, as many as the blocks say.
std::vector<std::byte> EncodeRecordHeader(const RecordHeader& record);
// How long the header is that begins so; `begin` is the record's first page or more.
Result<uint64_t> HeaderBytesAt(std::span<const std::byte> begin);
// `bytes` may go on behind the header.
Result<RecordHeader> DecodeRecordHeader(std::span<const std::byte> bytes);

// A footer lists the headers of a sealed segment and ends, with the file, in a trailer.
struct FooterRecord {
  uint64_t offset = 0;  // in the file
  RecordHeader header;
  bool operator==(const FooterRecord&) const = default;
};

struct FooterTrailer {
  SegmentUuid uuid{};
  uint64_t body_offset = 0;  // in the file; the end of its records
  uint64_t body_bytes = 0;
  uint32_t records = 0;
  uint32_t body_crc = 0;
};

// What a record adds to a footer's body.
inline uint64_t FooterEntryBytes(const RecordHeader& record) { return 8 + HeaderBytes(record); }
std::vector<std::byte> EncodeFooterRecord(uint64_t offset, std::span<const std::byte> record_header);
// Whole pages, for the end of the file.
std::vector<std::byte> EncodeFooter(const SegmentUuid& uuid, uint64_t body_offset, uint32_t records,
                                    std::span<const std::byte> body);
uint64_t FooterBytes(uint64_t body_bytes);
// `page` is the last of a file of `file_bytes`.
Result<FooterTrailer> DecodeTrailer(std::span<const std::byte> page, uint64_t file_bytes);
Result<std::vector<FooterRecord>> DecodeFooterBody(const FooterTrailer& trailer, std::span<const std::byte> body);

}  // namespace cachalot::tier
