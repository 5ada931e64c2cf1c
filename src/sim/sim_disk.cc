#include "sim/sim_disk.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "tier/disk_reclaim.h"
#include "tier/disk_segment.h"
#include "tier/run_records.h"

namespace cachalot::sim {
namespace {

uint64_t TokensOf(const tier::RecordHeader& record) {
  uint64_t tokens = 0;
  for (const tier::RecordBlock& block : record.blocks) tokens += block.tokens;
  return tokens;
}

}  // namespace

SimDisk::SimDisk(const tier::DiskTierOptions& options)
    : options_(options), segment_bytes_(tier::SegmentBytes(options)), room_bytes_(tier::SegmentRoom(options)) {}

Status SimDisk::Put(const tier::KvRun& run, std::span<const std::byte> bytes) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t slot_bytes, tier::SlotBytesOf(run, bytes.size()));
  for (tier::RecordHeader& record : RecordsOf(run, slot_bytes, std::min(options_.record_bytes, segment_bytes_ / 2))) {
    const uint64_t payload = tier::PayloadBytes(record);
    CACHALOT_RETURN_IF_ERROR(OpenSegmentFor(record));
    Append(std::move(record));
    ++stats_.put_records;
    stats_.put_bytes += payload;
    stats_.raw_bytes += payload;
    PrepareRoom();
  }
  return OkStatus();
}

bool SimDisk::Fits(const tier::RecordHeader& record) const {
  const uint64_t footer = tier::FooterBytes(open_->footer_body_bytes + tier::FooterEntryBytes(record));
  return open_->end + tier::RecordBytes(record) + footer <= open_->bytes;
}

Status SimDisk::OpenSegmentFor(const tier::RecordHeader& record) {
  if (open_ && Fits(record)) return OkStatus();
  if (open_) SealOpen();
  if (const uint64_t needed = tier::SegmentBytesFor(record); needed > segment_bytes_) {
    return Invalid(
        fmt::format("a record of {} does not fit a segment of {}", FormatBytes(needed), FormatBytes(segment_bytes_)));
  }
  CACHALOT_RETURN_IF_ERROR(MakeRoom(segment_bytes_, 0));
  open_ = {.id = ++sequence_, .bytes = segment_bytes_};
  segments_[open_->id].occupied_bytes = segment_bytes_;
  occupied_bytes_ += segment_bytes_;
  room_prepared_ = false;
  return OkStatus();
}

// Requires that it fits the open segment.
void SimDisk::Append(tier::RecordHeader record) {
  record.sequence = ++sequence_;
  const uint64_t offset = open_->end, bytes = tier::RecordBytes(record);
  open_->end += bytes;
  open_->footer_body_bytes += tier::FooterEntryBytes(record);
  tier::FooterRecord entry{offset, std::move(record)};
  index_.AddRecord(open_->id, entry, /*live=*/true, appended_bytes_);
  appended_bytes_ += bytes;
  entry.header.tokens = {};
  segments_.at(open_->id).records.emplace(offset, std::move(entry.header));
}

void SimDisk::SealOpen() {
  const uint64_t bytes = open_->end + tier::FooterBytes(open_->footer_body_bytes);
  occupied_bytes_ -= open_->bytes - bytes;
  segments_.at(open_->id).occupied_bytes = bytes;
  open_.reset();
}

// Once for each segment, for the next.
void SimDisk::PrepareRoom() {
  if (std::exchange(room_prepared_, true)) return;
  // Where there is nothing to reclaim, whoever needs the room will say so.
  (void)MakeRoom(segment_bytes_, static_cast<uint64_t>(options_.kept_share * static_cast<double>(segment_bytes_)));
}

Status SimDisk::MakeRoom(uint64_t bytes, uint64_t kept_bytes) {
  const uint64_t before = occupied_bytes_;
  const uint64_t shortage = before + bytes - std::min(before + bytes, room_bytes_);
  while (before - std::min(before, occupied_bytes_) < shortage) CACHALOT_RETURN_IF_ERROR(ReclaimOne(kept_bytes));
  return OkStatus();
}

Status SimDisk::ReclaimOne(uint64_t& kept_bytes) {
  std::vector<tier::SegmentView> views;
  for (const auto& [id, segment] : segments_) {
    if (open_ && id == open_->id) continue;
    views.push_back({id, segment.occupied_bytes, index_.ValueOf(id, appended_bytes_, options_.limit_bytes)});
  }
  const std::optional<uint64_t> victim = tier::LeastValuable(views);
  if (!victim) return Overloaded(fmt::format("no room on a disk of {}", FormatBytes(options_.limit_bytes)));
  if (kept_bytes > 0 && open_) KeepReadBlocks(*victim, kept_bytes);
  stats_.reclaimed_blocks += index_.LiveBlocksOf(*victim);
  ++stats_.reclaimed_segments;
  Remove(*victim);
  return OkStatus();
}

void SimDisk::KeepReadBlocks(uint64_t segment, uint64_t& kept_bytes) {
  for (const tier::BlocksOfRecord& of_record : index_.ReadBlocks(segment)) {
    const tier::RecordHeader& record = segments_.at(segment).records.at(of_record.record.offset);
    std::span<const uint32_t> blocks = of_record.blocks;
    while (!blocks.empty()) {
      size_t count = 1;
      while (count < blocks.size() && blocks[count] == blocks[0] + count) ++count;
      kept_bytes -= KeepBlocks(record, blocks.first(count), kept_bytes);
      blocks = blocks.subspan(count);
    }
  }
}

uint64_t SimDisk::KeepBlocks(const tier::RecordHeader& record, std::span<const uint32_t> blocks, uint64_t kept_bytes) {
  tier::RecordHeader copy;
  copy.identity = record.identity;
  for (const uint32_t block : blocks) copy.blocks.push_back(record.blocks[block]);
  copy.tokens.resize(TokensOf(copy));
  const uint64_t kept = tier::PayloadBytes(copy);
  if (kept > kept_bytes || !Fits(copy)) return 0;
  Append(std::move(copy));
  stats_.kept_blocks += blocks.size();
  return kept;
}

void SimDisk::Remove(uint64_t segment) {
  index_.DropSegment(segment);
  index_.ForgetSegment(segment);
  const auto at = segments_.find(segment);
  occupied_bytes_ -= at->second.occupied_bytes;
  segments_.erase(at);
}

std::optional<tier::DiskBlock> SimDisk::Find(const Digest& identity, const Digest& key) const {
  const std::optional<tier::FoundBlock> found = index_.Find(key);
  if (!found || found->identity != identity) return std::nullopt;
  return found->block;
}

Result<std::vector<ReadOutcome>> SimDisk::Read(const tier::KvRun& run, std::span<std::byte> into) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t slot_bytes, tier::SlotBytesOf(run, into.size()));
  std::vector<ReadOutcome> outcomes;
  for (const tier::KvRunBlock& wanted : run.blocks) {
    const std::optional<tier::DiskBlock> found = Find(run.identity, wanted.key);
    const uint64_t bytes = tier::BlockBytes(wanted, slot_bytes);
    const bool read =
        found && found->tokens == wanted.tokens && found->groups == wanted.groups && found->bytes == bytes;
    outcomes.push_back(read ? ReadOutcome::kRead : ReadOutcome::kMissing);
    ++reads_.blocks[static_cast<size_t>(outcomes.back())];
    if (!read) continue;
    reads_.bytes += bytes;
    index_.Touch(wanted.key, appended_bytes_);
  }
  return outcomes;
}

void SimDisk::Touch(std::span<const Digest> keys) { index_.Touch(keys, appended_bytes_); }

Status SimDisk::Erase(std::span<const Digest> keys) {
  for (const Digest& key : keys) index_.Drop(key);
  std::vector<uint64_t> empty;
  for (const auto& [id, segment] : segments_) {
    if (!(open_ && id == open_->id) && index_.LiveBlocksOf(id) == 0) empty.push_back(id);
  }
  for (const uint64_t segment : empty) Remove(segment);
  return OkStatus();
}

Status SimDisk::Clear() {
  open_.reset();
  while (!segments_.empty()) Remove(segments_.begin()->first);
  return OkStatus();
}

Status SimDisk::Seal() {
  if (open_) SealOpen();
  return OkStatus();
}

tier::DiskTierStats SimDisk::stats() const {
  tier::DiskTierStats stats = stats_;
  stats.segments = segments_.size();
  stats.occupied_bytes = occupied_bytes_;
  stats.live_blocks = index_.live_blocks();
  stats.live_bytes = index_.live_bytes();
  stats.index_bytes = index_.MemoryBytes();
  stats.reads = reads_;
  return stats;
}

}  // namespace cachalot::sim
