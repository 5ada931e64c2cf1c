// How a disk tier fills segments and gives them up.
#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/units.h"
#include "tier/disk_reclaim.h"
#include "tier/disk_tier.h"

namespace cachalot::tier {
namespace {

SegmentUuid DrawUuid(const std::function<uint64_t()>& entropy) {
  SegmentUuid uuid;
  for (size_t i = 0; i < uuid.size(); i += 8) {
    const uint64_t bits = entropy();
    for (size_t byte = 0; byte < 8; ++byte) uuid[i + byte] = static_cast<uint8_t>(bits >> (8 * byte));
  }
  return uuid;
}

uint64_t AtLeastZero(uint64_t wanted, uint64_t there) { return wanted - std::min(wanted, there); }

}  // namespace

Result<std::span<const std::byte>> DiskTier::Packed(RecordHeader& record, std::span<const std::byte> bytes) {
  packed_.clear();
  std::span<const std::byte> left = bytes;
  for (RecordBlock& block : record.blocks) {
    std::span<const std::byte> stored = left.first(block.bytes);
    left = left.subspan(block.bytes);
    if (options_.packed_element_bytes != 0) {
      const size_t begin = packed_.size();
      CACHALOT_RETURN_IF_ERROR(packer_.Append(stored, options_.packed_element_bytes, packed_).status());
      stored = std::span(packed_).subspan(begin);
    }
    block.stored_bytes = static_cast<uint32_t>(stored.size());
    block.crc = Crc32c(stored);
  }
  return options_.packed_element_bytes == 0 ? bytes : std::span<const std::byte>(packed_);
}

Status DiskTier::AppendRecord(RecordHeader record, std::span<const std::byte> payload) {
  CACHALOT_DCHECK(open_ != nullptr && open_->Fits(record));
  record.uuid = open_->header().uuid;
  record.sequence = NextSequence();
  record.written_unix_seconds = Seconds();
  const Result<uint64_t> offset = open_->Append(record, payload);
  const uint64_t bytes = RecordBytes(record);
  // Even if it failed it may be there after a crash: a deletion of its keys has to be remembered.
  index_.AddRecord(open_->header().first_sequence, {offset.ok() ? *offset : 0, std::move(record)}, offset.ok(),
                   appended_bytes_);
  if (!offset.ok()) return offset.status();
  appended_bytes_ += bytes;
  return OkStatus();
}

Status DiskTier::OpenSegmentFor(const RecordHeader& record) {
  if (open_ != nullptr && open_->Fits(record)) return OkStatus();
  if (open_ != nullptr) CACHALOT_RETURN_IF_ERROR(SealOpen());
  return CreateSegment(SegmentBytesFor(record));
}

Status DiskTier::CreateSegment(uint64_t least_bytes) {
  uint64_t bytes = segment_bytes_;
  if (const Status room = MakeRoom(bytes, 0); room.code() == Code::kOverloaded) {
    // Others have filled the disk: what is left will do.
    CACHALOT_ASSIGN_OR_RETURN(const uint64_t shortage, Shortage(bytes));
    bytes = AtLeastZero(bytes, ToPages(shortage));
    if (bytes < least_bytes) return room;
  } else {
    CACHALOT_RETURN_IF_ERROR(room);
  }
  // What was removed must not come back beside the new one.
  CACHALOT_RETURN_IF_ERROR(SyncNames());
  const SegmentHeader header{DrawUuid(options_.entropy), NextSequence(), Seconds()};
  const std::string name = SegmentName(header.first_sequence, /*sealed=*/false);
  Result<std::unique_ptr<SegmentWriter>> created = SegmentWriter::Create(files_, segments_.PathOf(name), header, bytes);
  segments_.NoteNameChange();
  segments_.Add(header.first_sequence, name, header.uuid, bytes);
  const Result<uint64_t> shortage = created.ok() ? Shortage(0) : created.status();
  if (!shortage.ok() || *shortage > 0) {
    // If it cannot be removed it stays as one without a live block, the first to go.
    (void)segments_.Remove(header.first_sequence);
    if (!shortage.ok()) return shortage.status();
    return Overloaded(fmt::format("{}: a new segment occupies more than it should", options_.folder));
  }
  open_ = std::move(created).value();
  room_prepared_ = false;
  return OkStatus();
}

Status DiskTier::PrepareRoom() {
  if (std::exchange(room_prepared_, true)) return OkStatus();
  const Status status =
      MakeRoom(segment_bytes_, static_cast<uint64_t>(options_.kept_share * static_cast<double>(segment_bytes_)));
  // Where there is nothing to reclaim, whoever needs the room will say so.
  return status.code() == Code::kOverloaded ? OkStatus() : status;
}

Status DiskTier::SyncOpen() {
  if (open_ == nullptr || !open_->unsynced()) return OkStatus();
  const Status status = open_->Sync();
  if (!status.ok()) AbandonOpen();  // nobody can tell what of it will reach the disk
  return status;
}

Status DiskTier::SealOpen() {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t file_bytes, open_->Finish());
  CACHALOT_RETURN_IF_ERROR(SyncOpen());
  const uint64_t segment = open_->header().first_sequence;
  open_.reset();
  segments_.Resized(segment, file_bytes);
  // Under its old name the next Open scans it.
  (void)segments_.RenameAsSealed(segment);
  return OkStatus();
}

void DiskTier::AbandonOpen() {
  const uint64_t segment = open_->header().first_sequence;
  stats_.abandoned_blocks += index_.DropSegment(segment);
  open_.reset();
  (void)segments_.Remove(segment);  // else it stays as one without a live block
}

Status DiskTier::SyncNames() {
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<uint64_t> gone, segments_.SyncNames());
  for (const uint64_t segment : gone) index_.ForgetSegment(segment);
  return OkStatus();
}

Result<uint64_t> DiskTier::Shortage(uint64_t bytes) {
  CACHALOT_ASSIGN_OR_RETURN(const DiskRoom room, files_.Room(options_.folder));
  const uint64_t taken = segments_.occupied_bytes() + stats_.foreign_bytes;
  return std::max(AtLeastZero(taken + bytes, SegmentRoom(options_)),
                  AtLeastZero(bytes + options_.min_free_bytes, room.free_bytes));
}

Status DiskTier::MakeRoom(uint64_t bytes, uint64_t kept_bytes) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t shortage, Shortage(bytes));
  // Counted here, since a file system may take its time to show room as free.
  const uint64_t before = segments_.occupied_bytes();
  while (AtLeastZero(before, segments_.occupied_bytes()) < shortage) CACHALOT_RETURN_IF_ERROR(ReclaimOne(kept_bytes));
  return OkStatus();
}

Status DiskTier::ReclaimOne(uint64_t& kept_bytes) {
  std::vector<SegmentView> views;
  for (const auto& [id, occupied_bytes] : segments_.all()) {
    if (open_ != nullptr && id == open_->header().first_sequence) continue;
    views.push_back({id, occupied_bytes, index_.ValueOf(id, appended_bytes_, options_.limit_bytes)});
  }
  const std::optional<uint64_t> victim = LeastValuable(views);
  if (!victim) {
    return Overloaded(
        fmt::format("{}: no room; {} of {} are occupied by segments, {} by other files, and {} of the disk "
                    "are to stay free",
                    options_.folder, FormatBytes(segments_.occupied_bytes()), FormatBytes(options_.limit_bytes),
                    FormatBytes(stats_.foreign_bytes), FormatBytes(options_.min_free_bytes)));
  }
  return Reclaim(*victim, kept_bytes);
}

Status DiskTier::Reclaim(uint64_t segment, uint64_t& kept_bytes) {
  if (kept_bytes > 0 && open_ != nullptr) KeepReadBlocks(segment, kept_bytes);
  // The newer copies of its blocks, and the name of their file, must be on disk before the older are gone.
  CACHALOT_RETURN_IF_ERROR(SyncOpen());
  CACHALOT_RETURN_IF_ERROR(SyncNames());
  stats_.reclaimed_blocks += index_.DropSegment(segment);
  CACHALOT_RETURN_IF_ERROR(segments_.Remove(segment));
  ++stats_.reclaimed_segments;
  return OkStatus();
}

void DiskTier::KeepReadBlocks(uint64_t segment, uint64_t& kept_bytes) {
  RecordReader reader;
  for (const BlocksOfRecord& of_record : index_.ReadBlocks(segment)) {
    const Result<SegmentFiles::Readable> readable = segments_.FileOf(segment);
    if (!readable.ok()) return;
    const RecordReader::Header header = reader.ReadHeader(*readable->file, of_record.record, readable->uuid);
    if (header.outcome != ReadOutcome::kRead) continue;
    for (size_t i = 0, end = 0; i < of_record.blocks.size(); i = end) {
      for (end = i + 1; end < of_record.blocks.size(); ++end) {
        if (of_record.blocks[end] != of_record.blocks[end - 1] + 1) break;
      }
      const PartOfRecord part{of_record.record, readable->uuid, of_record.blocks[i], 0, 0};
      kept_bytes -= KeepBlocks(*readable->file, part, header.record, static_cast<uint32_t>(end - i), kept_bytes);
    }
  }
}

uint64_t DiskTier::KeepBlocks(const File& file, PartOfRecord part, const RecordHeader& record, uint32_t blocks,
                              uint64_t kept_bytes) {
  if (part.first_block + blocks > record.blocks.size() || record.expires_unix_seconds <= Seconds()) return 0;
  RecordHeader copy;
  copy.identity = record.identity;
  copy.expires_unix_seconds = record.expires_unix_seconds;
  copy.parent = part.first_block == 0 ? record.parent : record.blocks[part.first_block - 1].key;
  size_t token = 0, tokens = 0;
  for (const RecordBlock& block : std::span(record.blocks).first(part.first_block)) {
    token += block.tokens;
    part.payload_offset += block.stored_bytes;
  }
  std::vector<KvRunBlock> expected;
  uint64_t bytes = 0;
  for (const RecordBlock& block : std::span(record.blocks).subspan(part.first_block, blocks)) {
    copy.blocks.push_back(block);
    expected.push_back({block.key, block.tokens, block.groups});
    tokens += block.tokens;
    bytes += block.bytes;
    part.stored_bytes += block.stored_bytes;
  }
  copy.first_position = record.first_position + token;
  const std::span<const TokenId> of_blocks = std::span(record.tokens).subspan(token, tokens);
  copy.tokens.assign(of_blocks.begin(), of_blocks.end());
  if (part.stored_bytes > kept_bytes || !open_->Fits(copy)) return 0;

  AlignedBytes staging;
  const std::span<std::byte> raw = staging.Resize(bytes);
  std::vector<ReadOutcome> outcomes(blocks);
  const PartRead read{&file, part, {copy.identity, expected, of_blocks}, raw, outcomes};
  RecordReader().Read(std::span(&read, 1));
  const bool good = std::ranges::all_of(outcomes, [](ReadOutcome o) { return o == ReadOutcome::kRead; });
  if (!good) return 0;
  const Result<std::span<const std::byte>> payload = Packed(copy, raw);
  const uint64_t kept = PayloadBytes(copy);  // more than before if it was packed then and is not now
  if (!payload.ok() || kept > kept_bytes || !open_->Fits(copy)) return 0;
  if (!AppendRecord(std::move(copy), *payload).ok()) return 0;
  stats_.kept_blocks += blocks;
  return kept;
}

Status DiskTier::RemoveEmptySegments() {
  std::vector<uint64_t> empty;
  for (const auto& [id, occupied_bytes] : segments_.all()) {
    const bool is_open = open_ != nullptr && id == open_->header().first_sequence;
    if (!is_open && index_.LiveBlocksOf(id) == 0) empty.push_back(id);
  }
  uint64_t kept_bytes = 0;
  for (const uint64_t segment : empty) CACHALOT_RETURN_IF_ERROR(Reclaim(segment, kept_bytes));
  return OkStatus();
}

void DiskTier::PruneDeletions() {
  std::unordered_set<Digest, DigestHash> needed;
  index_.ForEachKey([&](const Digest& key, uint64_t sequence) {
    if (deletions_.SequenceOf(key) > sequence) needed.insert(key);
  });
  deletions_.KeepOnly(needed);
}

Status DiskTier::StoreDeletions() {
  uint64_t kept_bytes = 0;
  while (!deletions_.Fits()) {
    CACHALOT_RETURN_IF_ERROR(SyncNames());
    PruneDeletions();
    if (deletions_.Fits()) break;
    if (open_ != nullptr && segments_.count() == 1) {
      AbandonOpen();
    } else {
      CACHALOT_RETURN_IF_ERROR(ReclaimOne(kept_bytes));
    }
  }
  return deletions_.Store();
}

Status DiskTier::SyncAll() {
  CACHALOT_RETURN_IF_ERROR(SyncOpen());
  CACHALOT_RETURN_IF_ERROR(SyncNames());
  return StoreDeletions();
}

Status DiskTier::RemoveAll() {
  for (const auto& [segment, occupied_bytes] : segments_.all()) {
    index_.DropSegment(segment);
    CACHALOT_RETURN_IF_ERROR(segments_.Remove(segment));
  }
  CACHALOT_RETURN_IF_ERROR(SyncNames());
  PruneDeletions();
  return deletions_.Store();
}

}  // namespace cachalot::tier
