#include "tier/disk_tier.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "tier/run_records.h"

namespace cachalot::tier {
namespace {

bool SameRecordNext(const FoundBlock& first, const FoundBlock& other, size_t distance) {
  return other.record == first.record && other.index == first.index + distance;
}

}  // namespace

Status DiskTier::Written(Status outcome) {
  if (!outcome.ok()) ++stats_.failed_writes;
  return health_.Note(std::move(outcome), clock_.Now());
}

Status DiskTier::Put(const KvRun& run, std::span<const std::byte> bytes) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t slot_bytes, SlotBytesOf(run, bytes.size()));
  for (const KvRunBlock& block : run.blocks) {
    if (block.tokens > kMaxRecordTokens) return Invalid(fmt::format("block of {} tokens", block.tokens));
    RecordHeader alone;
    const auto block_bytes = static_cast<uint32_t>(BlockBytes(block, slot_bytes));
    alone.blocks = {{block.key, block.tokens, block.groups, block_bytes, block_bytes, 0}};
    alone.tokens.resize(block.tokens);
    if (SegmentBytesFor(alone) <= segment_bytes_) continue;
    return Invalid(
        fmt::format("a block of {} does not fit a segment of {}: the disk tier needs a larger size or segments",
                    FormatBytes(alone.blocks[0].bytes), FormatBytes(segment_bytes_)));
  }
  if (run.deadline <= clock_.Now()) return OkStatus();
  if (!health_.MayWrite(clock_.Now())) {
    ++stats_.refused_puts;
    return health();
  }
  return Written(AppendRun(run, bytes, slot_bytes));
}

Status DiskTier::AppendRun(const KvRun& run, std::span<const std::byte> bytes, uint64_t slot_bytes) {
  const uint64_t record_bytes = std::min(options_.record_bytes, segment_bytes_ / 2);
  for (RecordHeader& record : RecordsOf(run, slot_bytes, record_bytes)) {
    if (run.deadline != Nanos::max()) record.expires_unix_seconds = SecondsAt(run.deadline);
    const std::span<const std::byte> raw = bytes.first(PayloadBytes(record));
    bytes = bytes.subspan(raw.size());
    CACHALOT_ASSIGN_OR_RETURN(const std::span<const std::byte> payload, Packed(record, raw));
    CACHALOT_RETURN_IF_ERROR(OpenSegmentFor(record));
    CACHALOT_RETURN_IF_ERROR(AppendRecord(std::move(record), payload));
    ++stats_.put_records;
    stats_.put_bytes += payload.size();
    stats_.raw_bytes += raw.size();
    CACHALOT_RETURN_IF_ERROR(PrepareRoom());
  }
  return OkStatus();
}

int64_t DiskTier::SecondsAt(Nanos moment) const {
  return opened_unix_seconds_ + std::chrono::floor<std::chrono::seconds>(moment - opened_at_).count();
}

Nanos DiskTier::MomentOf(int64_t unix_seconds) const {
  constexpr int64_t kCentury = int64_t{100} * 365 * 24 * 3600;
  if (unix_seconds == kNeverExpires) return Nanos::max();
  return opened_at_ + std::chrono::seconds(std::clamp<int64_t>(unix_seconds, opened_unix_seconds_ - kCentury,
                                                               opened_unix_seconds_ + kCentury) -
                                           opened_unix_seconds_);
}

std::optional<FoundBlock> DiskTier::FindNow(const Digest& key) const {
  std::optional<FoundBlock> found = index_.Find(key);
  const bool ended = found && found->expires_unix_seconds != kNeverExpires && found->expires_unix_seconds <= Seconds();
  return ended ? std::nullopt : found;
}

Nanos DiskTier::DeadlineOf(const Digest& key) const {
  const std::optional<FoundBlock> found = FindNow(key);
  return found ? MomentOf(found->expires_unix_seconds) : Nanos::max();
}

std::optional<DiskBlock> DiskTier::Find(const Digest& key) const {
  const std::optional<FoundBlock> found = FindNow(key);
  if (!found) return std::nullopt;
  return found->block;
}

std::optional<DiskBlock> DiskTier::Find(const Digest& identity, const Digest& key) const {
  const std::optional<FoundBlock> found = FindNow(key);
  if (!found || found->identity != identity) return std::nullopt;
  return found->block;
}

Result<std::vector<ReadOutcome>> DiskTier::Read(const KvRun& run, std::span<std::byte> into) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t slot_bytes, SlotBytesOf(run, into.size()));
  std::vector<ReadOutcome> outcomes(run.blocks.size(), ReadOutcome::kMissing);
  const auto find = [&](size_t i) -> std::optional<FoundBlock> {
    const KvRunBlock& wanted = run.blocks[i];
    const std::optional<FoundBlock> found = FindNow(wanted.key);
    const bool as_wanted = found && found->block.tokens == wanted.tokens && found->block.groups == wanted.groups &&
                           found->block.bytes == BlockBytes(wanted, slot_bytes);
    return as_wanted ? found : std::nullopt;
  };
  std::vector<PartRead> parts;
  size_t token = 0;
  for (size_t i = 0, end = 0; i < run.blocks.size(); i = end) {
    const std::optional<FoundBlock> first = find(i);
    size_t tokens = 0;
    uint64_t bytes = 0, stored_bytes = first ? first->block.stored_bytes : 0;
    do {
      tokens += run.blocks[end].tokens;
      bytes += BlockBytes(run.blocks[end], slot_bytes);
      ++end;
      const std::optional<FoundBlock> next = first && end < run.blocks.size() ? find(end) : std::nullopt;
      if (!next || !SameRecordNext(*first, *next, end - i)) break;
      stored_bytes += next->block.stored_bytes;
    } while (true);
    if (first) {
      const std::span<const KvRunBlock> blocks = std::span(run.blocks).subspan(i, end - i);
      parts.push_back({.part = {first->record, {}, first->index, first->payload_offset, stored_bytes},
                       .expected = {run.identity, blocks, std::span(run.tokens).subspan(token, tokens)},
                       .into = into.first(bytes),
                       .outcomes = std::span(outcomes).subspan(i, end - i)});
    }
    token += tokens;
    into = into.subspan(bytes);
  }
  constexpr size_t kAtOnce = 16;  // parts, so that few files are held open
  for (size_t i = 0; i < parts.size(); i += kAtOnce) {
    ReadParts(std::span(parts).subspan(i, std::min(kAtOnce, parts.size() - i)));
  }
  const MutexLock lock(reading_);
  for (const ReadOutcome outcome : outcomes) ++reads_.blocks[static_cast<size_t>(outcome)];
  for (const PartRead& read : parts) reads_.bytes += read.into.size();
  return outcomes;
}

std::unique_ptr<RecordReader> DiskTier::TakeReader() {
  const MutexLock lock(reading_);
  if (idle_readers_.empty()) return std::make_unique<RecordReader>();
  std::unique_ptr<RecordReader> reader = std::move(idle_readers_.back());
  idle_readers_.pop_back();
  return reader;
}

void DiskTier::GiveBack(std::unique_ptr<RecordReader> reader) {
  const MutexLock lock(reading_);
  idle_readers_.push_back(std::move(reader));
}

void DiskTier::ReadParts(std::span<PartRead> parts) {
  std::vector<std::shared_ptr<const File>> files;  // that stay open meanwhile
  std::vector<PartRead> readable;
  for (PartRead& read : parts) {
    const Result<SegmentFiles::Readable> segment = segments_.FileOf(read.part.record.segment);
    if (segment.ok()) {
      files.push_back(segment->file);
      read.file = segment->file.get();
      read.part.uuid = segment->uuid;
      readable.push_back(read);
    } else if (segments_.Contains(read.part.record.segment)) {
      std::ranges::fill(read.outcomes, ReadOutcome::kUnreadable);
    }  // else it was reclaimed since it was found
  }
  std::unique_ptr<RecordReader> reader = TakeReader();
  reader->Read(readable);
  GiveBack(std::move(reader));
  for (const PartRead& read : parts) {
    for (size_t i = 0; i < read.outcomes.size(); ++i) {
      if (read.outcomes[i] == ReadOutcome::kRead) {
        index_.Touch(read.expected.blocks[i].key, appended_bytes_);
      } else {
        index_.DropBefore(read.expected.blocks[i].key, read.part.record.sequence + 1);
      }
    }
  }
}

void DiskTier::Touch(std::span<const Digest> keys) { index_.Touch(keys, appended_bytes_); }

Status DiskTier::Erase(std::span<const Digest> keys) {
  if (keys.empty()) return OkStatus();
  const uint64_t sequence = NextSequence();
  for (const Digest& key : keys) index_.Drop(key);
  deletions_.Add(keys, sequence);
  CACHALOT_RETURN_IF_ERROR(Written(StoreDeletions()));
  // The deletion stands; a file that cannot be removed now goes when room is needed.
  (void)RemoveEmptySegments();
  return OkStatus();
}

Status DiskTier::Clear() {
  if (open_ != nullptr) AbandonOpen();
  return Written(RemoveAll());
}

Status DiskTier::EraseExpired() { return Erase(index_.TakeExpired(Seconds())); }

std::optional<Nanos> DiskTier::NextExpiry() const {
  const std::optional<int64_t> next = index_.NextExpiry();
  return next ? std::optional(MomentOf(*next)) : std::nullopt;
}

Status DiskTier::Flush() {
  const bool nothing = (open_ == nullptr || !open_->unsynced()) && segments_.names_synced() && !deletions_.unstored();
  return nothing ? OkStatus() : Written(SyncAll());
}

Status DiskTier::Seal() {
  if (open_ != nullptr) CACHALOT_RETURN_IF_ERROR(Written(SealOpen()));
  return Flush();
}

DiskTierStats DiskTier::stats() const {
  DiskTierStats stats = stats_;
  stats.segments = segments_.count();
  stats.occupied_bytes = segments_.occupied_bytes();
  stats.live_blocks = index_.live_blocks();
  stats.live_bytes = index_.live_bytes();
  stats.index_bytes = index_.MemoryBytes();
  stats.deletions = deletions_.size();
  stats.reads = reads();
  return stats;
}

DiskReads DiskTier::reads() const {
  const MutexLock lock(reading_);
  return reads_;
}

}  // namespace cachalot::tier
