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

const char* NameOf(ReadOutcome outcome) {
  switch (outcome) {
    case ReadOutcome::kRead: return "read";
    case ReadOutcome::kMissing: return "missing";
    case ReadOutcome::kTruncated: return "truncated";
    case ReadOutcome::kBitFlip: return "bit_flip";
    case ReadOutcome::kForeign: return "foreign";
    case ReadOutcome::kStaleIdentity: return "stale_identity";
    case ReadOutcome::kUnreadable: break;
  }
  return "unreadable";
}

Code CodeOf(ReadOutcome outcome) {
  switch (outcome) {
    case ReadOutcome::kRead: return Code::kOk;
    case ReadOutcome::kMissing:
    case ReadOutcome::kUnreadable: return Code::kUnavailable;
    default: return Code::kCorrupt;
  }
}

RecordReader::Header RecordReader::ReadHeader(const File& file, const RecordPlace& place, const SegmentUuid& uuid) {
  const std::span<std::byte> bytes = staging_.Resize(ToPages(place.header_bytes));
  if (const Status status = file.ReadAt(place.offset, bytes); !status.ok()) return {OutcomeOf(status), {}};
  Result<RecordHeader> header = DecodeRecordHeader(bytes);
  if (!header.ok()) return {ReadOutcome::kBitFlip, {}};
  if (header->uuid != uuid || header->sequence != place.sequence) return {ReadOutcome::kForeign, {}};
  return {ReadOutcome::kRead, std::move(header).value()};
}

Status RecordReader::ReadPayload(const File& file, uint64_t offset, std::span<std::byte> into) {
  const auto address = reinterpret_cast<uintptr_t>(into.data());
  if (IsPageMultiple(offset) && IsPageMultiple(into.size()) && IsPageMultiple(address))
    return file.ReadAt(offset, into);
  const uint64_t begin = offset / kDiskPage * kDiskPage;
  const std::span<std::byte> pages = staging_.Resize(ToPages(offset + into.size()) - begin);
  CACHALOT_RETURN_IF_ERROR(file.ReadAt(begin, pages));
  std::ranges::copy(pages.subspan(offset - begin, into.size()), into.begin());
  return OkStatus();
}

std::vector<ReadOutcome> RecordReader::Read(const File& file, const PartOfRecord& part, const ExpectedBlocks& expected,
                                            std::span<std::byte> into) {
  const size_t count = expected.blocks.size();
  const Header header = ReadHeader(file, part.record, part.uuid);
  if (header.outcome != ReadOutcome::kRead) return std::vector<ReadOutcome>(count, header.outcome);
  const RecordHeader& record = header.record;
  if (record.identity != expected.identity) return std::vector<ReadOutcome>(count, ReadOutcome::kStaleIdentity);
  std::vector<ReadOutcome> outcomes(count, ReadOutcome::kForeign);
  if (part.first_block + count > record.blocks.size()) return outcomes;

  uint64_t offset = part.record.offset + ToPages(HeaderBytes(record)), bytes = 0, token = 0;
  for (uint32_t i = 0; i < part.first_block; ++i) {
    offset += record.blocks[i].bytes;
    token += record.blocks[i].tokens;
  }
  const std::span<const RecordBlock> stored = std::span(record.blocks).subspan(part.first_block, count);
  for (const RecordBlock& block : stored) bytes += block.bytes;
  if (bytes != into.size()) return outcomes;
  if (const Status status = ReadPayload(file, offset, into); !status.ok()) {
    return std::vector<ReadOutcome>(count, OutcomeOf(status));
  }

  std::span<const TokenId> stored_tokens = std::span(record.tokens).subspan(token), tokens = expected.tokens;
  for (size_t i = 0; i < count; ++i) {
    const KvRunBlock& wanted = expected.blocks[i];
    const std::span<const std::byte> payload = into.first(stored[i].bytes);
    into = into.subspan(stored[i].bytes);
    const std::span<const TokenId> of_block = stored_tokens.first(stored[i].tokens);
    stored_tokens = stored_tokens.subspan(stored[i].tokens);
    const std::span<const TokenId> wanted_tokens = tokens.first(wanted.tokens);
    tokens = tokens.subspan(wanted.tokens);
    const bool same =
        stored[i].key == wanted.key && stored[i].groups == wanted.groups && std::ranges::equal(of_block, wanted_tokens);
    if (!same) continue;
    outcomes[i] = Crc32c(payload) == stored[i].crc ? ReadOutcome::kRead : ReadOutcome::kBitFlip;
  }
  return outcomes;
}

}  // namespace cachalot::tier
