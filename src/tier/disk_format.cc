#include "tier/disk_format.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "tier/byte_fields.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kSegmentMagic = 0x31474553'4c414343;  // "CCALSEG1", as all below in file order
constexpr uint64_t kRecordMagic = 0x31434552'4c414343;   // "CCALREC1"
constexpr uint64_t kTrailerMagic = 0x31444e45'4c414343;  // "CCALEND1"

constexpr uint64_t kSegmentHeaderBytes = 8 + 4 + 16 + 8 + 8;  // and its CRC
constexpr uint64_t kRecordFixedBytes = 8 + 4 + 4 + 4 + 16 + 8 + 32 + 32 + 8 + 8 + 8;
constexpr uint64_t kRecordBlockBytes = 32 + 5 * 4;
constexpr uint64_t kTrailerBytes = 8 + 4 + 4 + 16 + 8 + 8 + 4 + 4;

uint64_t HeaderBytesOf(uint32_t blocks, uint32_t tokens) {
  return kRecordFixedBytes + kRecordBlockBytes * blocks + 4 * uint64_t{tokens} + 4;
}

void AppendCrc(std::vector<std::byte>& out) {
  const uint32_t crc = Crc32c(out);
  FieldWriter(out).U32(crc);
}

Status CheckMagic(FieldReader& in, uint64_t magic, std::string_view what) {
  if (in.U64() != magic) return Invalid(fmt::format("not {} of Cachalot's disk tier", what));
  const uint32_t version = in.U32();
  if (version > kDiskFormatVersion) {
    return Invalid(fmt::format("{} of version {}; this program reads up to {}", what, version, kDiskFormatVersion));
  }
  if (version != kDiskFormatVersion) return Corrupt(fmt::format("{} of version {}, not read any more", what, version));
  return OkStatus();
}

// Whether the bytes of [0, end) agree with the CRC that follows them.
Status CheckCrc(std::span<const std::byte> bytes, uint64_t end, std::string_view what) {
  if (bytes.size() < end + 4) return Corrupt(fmt::format("{} is cut short", what));
  if (FieldReader(bytes.subspan(end)).U32() == Crc32c(bytes.first(end))) return OkStatus();
  return Corrupt(fmt::format("{} does not match its checksum", what));
}

// What a header of `bytes` says of itself, beyond being intact.
Status CheckRecord(const RecordHeader& record) {
  uint64_t tokens = 0;
  for (const RecordBlock& block : record.blocks) {
    if (block.tokens == 0 || block.groups == 0 || block.stored_bytes == 0) return Corrupt("record with an empty block");
    if (block.stored_bytes > block.bytes) return Corrupt("record with a block that grew when it was packed");
    tokens += block.tokens;
  }
  if (tokens != record.tokens.size()) return Corrupt("record whose blocks have other tokens than it lists");
  if (PayloadBytes(record) > kMaxSegmentBytes) return Corrupt("record larger than a segment may be");
  return OkStatus();
}

}  // namespace

uint64_t HeaderBytes(const RecordHeader& record) {
  return HeaderBytesOf(static_cast<uint32_t>(record.blocks.size()), static_cast<uint32_t>(record.tokens.size()));
}

uint64_t PayloadBytes(const RecordHeader& record) {
  uint64_t bytes = 0;
  for (const RecordBlock& block : record.blocks) bytes += block.stored_bytes;
  return bytes;
}

std::vector<std::byte> EncodeSegmentHeader(const SegmentHeader& header) {
  std::vector<std::byte> out;
  FieldWriter w(out);
  w.U64(kSegmentMagic);
  w.U32(kDiskFormatVersion);
  w.Bytes(header.uuid);
  w.U64(header.first_sequence);
  w.U64(static_cast<uint64_t>(header.created_unix_seconds));
  AppendCrc(out);
  out.resize(kDiskPage);
  return out;
}

Result<SegmentHeader> DecodeSegmentHeader(std::span<const std::byte> page) {
  FieldReader in(page);
  CACHALOT_RETURN_IF_ERROR(CheckMagic(in, kSegmentMagic, "a segment"));
  CACHALOT_RETURN_IF_ERROR(CheckCrc(page, kSegmentHeaderBytes, "segment header"));
  SegmentHeader header;
  header.uuid = in.Bytes<16>();
  header.first_sequence = in.U64();
  header.created_unix_seconds = static_cast<int64_t>(in.U64());
  return header;
}

std::vector<std::byte> EncodeRecordHeader(const RecordHeader& record) {
  CACHALOT_CHECK(!record.blocks.empty() && record.blocks.size() <= kMaxRecordBlocks);
  CACHALOT_CHECK(record.tokens.size() <= kMaxRecordTokens);
  std::vector<std::byte> out;
  out.reserve(HeaderBytes(record));
  FieldWriter w(out);
  w.U64(kRecordMagic);
  w.U32(kDiskFormatVersion);
  w.U32(static_cast<uint32_t>(record.blocks.size()));
  w.U32(static_cast<uint32_t>(record.tokens.size()));
  w.Bytes(record.uuid);
  w.U64(record.sequence);
  w.Bytes(record.identity);
  w.Bytes(record.parent);
  w.U64(record.first_position);
  w.U64(static_cast<uint64_t>(record.written_unix_seconds));
  w.U64(static_cast<uint64_t>(record.expires_unix_seconds));
  for (const RecordBlock& block : record.blocks) {
    w.Bytes(block.key);
    w.U32(block.tokens);
    w.U32(block.groups);
    w.U32(block.bytes);
    w.U32(block.stored_bytes);
    w.U32(block.crc);
  }
  for (const TokenId token : record.tokens) w.U32(token);
  AppendCrc(out);
  return out;
}

Result<uint64_t> HeaderBytesAt(std::span<const std::byte> begin) {
  FieldReader in(begin);
  CACHALOT_RETURN_IF_ERROR(CheckMagic(in, kRecordMagic, "a record"));
  const uint32_t blocks = in.U32(), tokens = in.U32();
  if (!in.ok() || blocks == 0 || blocks > kMaxRecordBlocks || tokens > kMaxRecordTokens) {
    return Corrupt(fmt::format("record of {} blocks and {} tokens; up to {} and {} are possible", blocks, tokens,
                               kMaxRecordBlocks, kMaxRecordTokens));
  }
  return HeaderBytesOf(blocks, tokens);
}

Result<RecordHeader> DecodeRecordHeader(std::span<const std::byte> bytes) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t header_bytes, HeaderBytesAt(bytes));
  CACHALOT_RETURN_IF_ERROR(CheckCrc(bytes, header_bytes - 4, "record header"));
  FieldReader in(bytes.first(header_bytes).subspan(12));
  RecordHeader record;
  const uint32_t blocks = in.U32(), tokens = in.U32();
  record.uuid = in.Bytes<16>();
  record.sequence = in.U64();
  record.identity = in.Bytes<32>();
  record.parent = in.Bytes<32>();
  record.first_position = in.U64();
  record.written_unix_seconds = static_cast<int64_t>(in.U64());
  record.expires_unix_seconds = static_cast<int64_t>(in.U64());
  record.blocks.resize(blocks);
  for (RecordBlock& block : record.blocks) {
    block.key = in.Bytes<32>();
    block.tokens = in.U32();
    block.groups = in.U32();
    block.bytes = in.U32();
    block.stored_bytes = in.U32();
    block.crc = in.U32();
  }
  record.tokens.resize(tokens);
  for (TokenId& token : record.tokens) token = in.U32();
  CACHALOT_RETURN_IF_ERROR(CheckRecord(record));
  return record;
}

std::vector<std::byte> EncodeFooterRecord(uint64_t offset, std::span<const std::byte> record_header) {
  std::vector<std::byte> out;
  FieldWriter(out).U64(offset);
  out.insert(out.end(), record_header.begin(), record_header.end());
  return out;
}

uint64_t FooterBytes(uint64_t body_bytes) { return ToPages(body_bytes + kTrailerBytes); }

std::vector<std::byte> EncodeFooter(const SegmentUuid& uuid, uint64_t body_offset, uint32_t records,
                                    std::span<const std::byte> body) {
  std::vector<std::byte> trailer;
  FieldWriter w(trailer);
  w.U64(kTrailerMagic);
  w.U32(kDiskFormatVersion);
  w.U32(records);
  w.Bytes(uuid);
  w.U64(body_offset);
  w.U64(body.size());
  w.U32(Crc32c(body));
  AppendCrc(trailer);
  std::vector<std::byte> out(body.begin(), body.end());
  out.resize(FooterBytes(body.size()));
  std::ranges::copy(trailer, out.end() - static_cast<ptrdiff_t>(trailer.size()));
  return out;
}

Result<FooterTrailer> DecodeTrailer(std::span<const std::byte> page, uint64_t file_bytes) {
  if (page.size() < kTrailerBytes) return Corrupt("segment without a footer");
  const std::span<const std::byte> bytes = page.last(kTrailerBytes);
  FieldReader in(bytes);
  CACHALOT_RETURN_IF_ERROR(CheckMagic(in, kTrailerMagic, "a footer"));
  CACHALOT_RETURN_IF_ERROR(CheckCrc(bytes, kTrailerBytes - 4, "footer"));
  FooterTrailer trailer;
  trailer.records = in.U32();
  trailer.uuid = in.Bytes<16>();
  trailer.body_offset = in.U64();
  trailer.body_bytes = in.U64();
  trailer.body_crc = in.U32();
  const bool fits = trailer.body_offset >= kDiskPage && trailer.body_offset % kDiskPage == 0 &&
                    trailer.body_offset <= file_bytes && trailer.body_bytes <= file_bytes - trailer.body_offset &&
                    FooterBytes(trailer.body_bytes) == file_bytes - trailer.body_offset;
  if (!fits) return Corrupt("footer that does not fit its file");
  return trailer;
}

Result<std::vector<FooterRecord>> DecodeFooterBody(const FooterTrailer& trailer, std::span<const std::byte> body) {
  if (body.size() != trailer.body_bytes || Crc32c(body) != trailer.body_crc) {
    return Corrupt("footer does not match its checksum");
  }
  std::vector<FooterRecord> records;
  uint64_t free_from = kDiskPage;  // where the next record may begin
  while (!body.empty()) {
    FooterRecord record;
    FieldReader in(body);
    record.offset = in.U64();
    if (!in.ok()) return Corrupt("footer with a record cut short");
    Result<RecordHeader> header = DecodeRecordHeader(body.subspan(8));
    if (!header.ok()) return header.status().Annotate("footer");
    record.header = std::move(header).value();
    const bool fits = record.header.uuid == trailer.uuid && record.offset >= free_from &&
                      record.offset % kDiskPage == 0 && record.offset <= trailer.body_offset &&
                      RecordBytes(record.header) <= trailer.body_offset - record.offset;
    if (!fits) return Corrupt("footer with a record that is not of its segment");
    free_from = record.offset + RecordBytes(record.header);
    body = body.subspan(8 + HeaderBytes(record.header));
    records.push_back(std::move(record));
  }
  if (records.size() != trailer.records) return Corrupt("footer with another number of records than it says");
  return records;
}

}  // namespace cachalot::tier
