#include "tier/disk_read.h"

#include <algorithm>

#include "base/check.h"
#include "base/copy_bytes.h"
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

std::vector<RecordReader::Fetch> RecordReader::Place(std::span<const PartRead> parts) {
  std::vector<Fetch> fetches;
  uint64_t staged_bytes = 0;
  for (const PartRead& read : parts) {
    const PartOfRecord& part = read.part;
    const uint64_t header_bytes = ToPages(part.record.header_bytes), payload = part.record.offset + header_bytes;
    const uint64_t begin = payload + part.payload_offset / kDiskPage * kDiskPage;
    const uint64_t page_bytes = payload + ToPages(part.payload_offset + part.stored_bytes) - begin;
    const bool straight = page_bytes == read.into.size() && part.stored_bytes == read.into.size() &&
                          IsPageMultiple(reinterpret_cast<uintptr_t>(read.into.data()));
    fetches.push_back({.header = {part.record.offset, {}}, .pages = {begin, {}}, .stored = {}});
    if (straight) fetches.back().pages.into = read.into;
    staged_bytes += header_bytes + (straight ? 0 : page_bytes);
  }
  std::span<std::byte> staging = staging_.Resize(staged_bytes);
  const auto take = [&](uint64_t bytes) {
    const std::span<std::byte> taken = staging.first(bytes);
    staging = staging.subspan(bytes);
    return taken;
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    const PartOfRecord& part = parts[i].part;
    Fetch& fetch = fetches[i];
    fetch.header.into = take(ToPages(part.record.header_bytes));
    const uint64_t skipped = part.payload_offset % kDiskPage;
    if (fetch.pages.into.empty()) fetch.pages.into = take(ToPages(skipped + part.stored_bytes));
    fetch.stored = std::span<const std::byte>(fetch.pages.into).subspan(skipped, part.stored_bytes);
  }
  return fetches;
}

void RecordReader::ReadAtOnce(const File& file, std::span<Fetch> fetches) {
  std::vector<FileRange> ranges;
  for (const Fetch& fetch : fetches) ranges.insert(ranges.end(), {fetch.header, fetch.pages});
  const Status status = file.ReadAt(ranges);
  if (status.ok()) return;
  if (fetches.size() == 1) {
    fetches[0].outcome = OutcomeOf(status);
    return;
  }
  for (size_t i = 0; i < fetches.size(); ++i) ReadAtOnce(file, fetches.subspan(i, 1));
}

ReadOutcome RecordReader::Take(const RecordBlock& block, std::span<const std::byte> stored, std::span<std::byte> into) {
  if (Crc32c(stored) != block.crc) return ReadOutcome::kBitFlip;
  if (block.stored_bytes < block.bytes) {
    return packer_.Unpack(stored, into).ok() ? ReadOutcome::kRead : ReadOutcome::kBitFlip;
  }
  if (stored.data() != into.data()) CopyBytes(stored, into);
  return ReadOutcome::kRead;
}

void RecordReader::Read(std::span<const PartRead> parts) {
  std::vector<Fetch> fetches = Place(parts);
  for (size_t i = 0, end = 0; i < parts.size(); i = end) {
    while (end < parts.size() && parts[end].file == parts[i].file) ++end;
    ReadAtOnce(*parts[i].file, std::span(fetches).subspan(i, end - i));
  }
  for (size_t i = 0; i < parts.size(); ++i) Check(parts[i], fetches[i]);
}

void RecordReader::Check(const PartRead& read, const Fetch& fetch) {
  const PartOfRecord& part = read.part;
  const ExpectedBlocks& expected = read.expected;
  const std::span<ReadOutcome> outcomes = read.outcomes;
  const size_t count = expected.blocks.size();
  const Header header = fetch.outcome == ReadOutcome::kRead ? Compare(fetch.header.into, part.record, part.uuid)
                                                            : Header{fetch.outcome, {}};
  const RecordHeader& record = header.record;
  ReadOutcome of_record = header.outcome;
  if (of_record == ReadOutcome::kRead && record.identity != expected.identity) of_record = ReadOutcome::kStaleIdentity;
  std::ranges::fill(outcomes, of_record == ReadOutcome::kRead ? ReadOutcome::kForeign : of_record);
  if (of_record != ReadOutcome::kRead) return;
  if (part.first_block + count > record.blocks.size()) return;

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
  std::span<std::byte> into = read.into;
  if (bytes != into.size() || offset != part.payload_offset || stored_bytes != part.stored_bytes) return;

  std::span<const TokenId> stored_tokens = std::span(record.tokens).subspan(token), tokens = expected.tokens;
  std::span<const std::byte> stored = fetch.stored;
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
}

}  // namespace cachalot::tier
