#include "tier/disk_read.h"

#include <algorithm>

#include "base/check.h"
#include "base/crc32c.h"

namespace cachalot::tier {
namespace {

ReadOutcome OutcomeOf(const Status& status) {
  if (status.ok()) return ReadOutcome::kRead;
  return status.code() == Code::kCorrupt ? ReadOutcome::kTruncated : ReadOutcome::kUnreadable;
}

bool IsPageMultiple(uint64_t value) { return value % kDiskPage == 0; }

}  // namespace

Code CodeOf(ReadOutcome outcome) {
  switch (outcome) {
    case ReadOutcome::kRead: return Code::kOk;
    case ReadOutcome::kMissing:
    case ReadOutcome::kUnreadable: return Code::kUnavailable;
    default: return Code::kCorrupt;
  }
}

RecordReader::Header RecordReader::Compare(std::span<const std::byte> bytes, const RecordPlace& place,
                                           const SegmentUuid& uuid) {
  Result<RecordHeader> header = DecodeRecordHeader(bytes);
  if (!header.ok()) return {ReadOutcome::kBitFlip, {}};
  const bool same =
      header->uuid == uuid && header->sequence == place.sequence && HeaderBytes(*header) == place.header_bytes;
  if (!same) return {ReadOutcome::kForeign, {}};
  return {ReadOutcome::kRead, std::move(header).value()};
}

RecordReader::Header RecordReader::ReadHeader(const File& file, const RecordPlace& place, const SegmentUuid& uuid) {
  const std::span<std::byte> bytes = staging_.Resize(ToPages(place.header_bytes));
  if (const Status status = file.ReadAt(place.offset, bytes); !status.ok()) return {OutcomeOf(status), {}};
  return Compare(bytes, place, uuid);
}

Result<RecordReader::Fetched> RecordReader::Fetch(const File& file, const PartOfRecord& part,
                                                  std::span<std::byte> into) {
  const uint64_t header_bytes = ToPages(part.record.header_bytes), payload = part.record.offset + header_bytes;
  const uint64_t begin = payload + part.payload_offset / kDiskPage * kDiskPage;
  const uint64_t page_bytes = payload + ToPages(part.payload_offset + part.stored_bytes) - begin;
  const auto address = reinterpret_cast<uintptr_t>(into.data());
  const bool straight = page_bytes == into.size() && part.stored_bytes == into.size() && IsPageMultiple(address);
  const std::span<std::byte> staging = staging_.Resize(header_bytes + (straight ? 0 : page_bytes));
  const std::span<std::byte> header = staging.first(header_bytes);
  const std::span<std::byte> pages = straight ? into : staging.subspan(header_bytes);
  if (begin == payload) {
    CACHALOT_RETURN_IF_ERROR(file.ReadAt(part.record.offset, header, pages));
  } else {
    CACHALOT_RETURN_IF_ERROR(file.ReadAt(part.record.offset, header));
    CACHALOT_RETURN_IF_ERROR(file.ReadAt(begin, pages));
  }
  return Fetched{header, pages.subspan(payload + part.payload_offset - begin, part.stored_bytes)};
}

ReadOutcome RecordReader::Take(const RecordBlock& block, std::span<const std::byte> stored, std::span<std::byte> into) {
  if (Crc32c(stored) != block.crc) return ReadOutcome::kBitFlip;
  if (block.stored_bytes < block.bytes) {
    return packer_.Unpack(stored, into).ok() ? ReadOutcome::kRead : ReadOutcome::kBitFlip;
  }
  if (stored.data() != into.data()) std::ranges::copy(stored, into.begin());
  return ReadOutcome::kRead;
}

std::vector<ReadOutcome> RecordReader::Read(const File& file, const PartOfRecord& part, const ExpectedBlocks& expected,
                                            std::span<std::byte> into) {
  const size_t count = expected.blocks.size();
  const Result<Fetched> fetched = Fetch(file, part, into);
  if (!fetched.ok()) return std::vector<ReadOutcome>(count, OutcomeOf(fetched.status()));
  const Header header = Compare(fetched->header, part.record, part.uuid);
  if (header.outcome != ReadOutcome::kRead) return std::vector<ReadOutcome>(count, header.outcome);
  const RecordHeader& record = header.record;
  if (record.identity != expected.identity) return std::vector<ReadOutcome>(count, ReadOutcome::kStaleIdentity);
  std::vector<ReadOutcome> outcomes(count, ReadOutcome::kForeign);
  if (part.first_block + count > record.blocks.size()) return outcomes;

  uint64_t offset = 0, token = 0, bytes = 0, stored_bytes = 0;
  for (const RecordBlock& block : std::span(record.blocks).first(part.first_block)) {
    offset += block.stored_bytes;
    token += block.tokens;
  }
  const std::span<const RecordBlock> blocks = std::span(record.blocks).subspan(part.first_block, count);
  for (const RecordBlock& block : blocks) {
    bytes += block.bytes;
    stored_bytes += block.stored_bytes;
  }
  if (bytes != into.size() || offset != part.payload_offset || stored_bytes != part.stored_bytes) return outcomes;

  std::span<const TokenId> stored_tokens = std::span(record.tokens).subspan(token), tokens = expected.tokens;
  std::span<const std::byte> stored = fetched->stored;
  for (size_t i = 0; i < count; ++i) {
    const KvRunBlock& wanted = expected.blocks[i];
    const RecordBlock& block = blocks[i];
    const bool same = block.key == wanted.key && block.groups == wanted.groups && block.tokens == wanted.tokens &&
                      std::ranges::equal(stored_tokens.first(block.tokens), tokens.first(wanted.tokens));
    if (same) outcomes[i] = Take(block, stored.first(block.stored_bytes), into.first(block.bytes));
    stored = stored.subspan(block.stored_bytes);
    into = into.subspan(block.bytes);
    stored_tokens = stored_tokens.subspan(block.tokens);
    tokens = tokens.subspan(wanted.tokens);
  }
  return outcomes;
}

}  // namespace cachalot::tier
