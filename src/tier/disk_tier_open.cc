// How a disk tier finds what a folder holds.
#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"
#include "tier/disk_tier.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kMinLimitBytes = uint64_t{1} << 20;
constexpr uint64_t kSegmentsAtLeast = 8;

Status Check(const DiskTierOptions& options) {
  if (options.limit_bytes < kMinLimitBytes) {
    return Invalid(fmt::format("disk tier of {}: expected at least {}", FormatBytes(options.limit_bytes),
                               FormatBytes(kMinLimitBytes)));
  }
  if (SegmentBytes(options) < 8 * kDiskPage) {
    return Invalid(fmt::format("segments of {}: expected at least {}", FormatBytes(options.segment_bytes),
                               FormatBytes(8 * kDiskPage)));
  }
  return OkStatus();
}

// The last number of an opening that the files know of.
uint32_t LastOpening(const std::vector<std::string>& segment_names, const LoadedDeletions& deletions) {
  uint32_t last = deletions.opening;
  for (const std::string& name : segment_names) {
    last = std::max(last, static_cast<uint32_t>(SequenceInName(name).value_or(0) >> 32));
  }
  return last;
}

}  // namespace

uint64_t DeletionLogRoom(const DiskTierOptions& options) {
  return std::clamp(ToPages(options.limit_bytes / 64), 8 * kDiskPage, kMaxDeletionLogBytes);
}

uint64_t SegmentRoom(const DiskTierOptions& options) {
  const uint64_t reserved = 2 * DeletionLogRoom(options) + options.limit_bytes / 128;
  return options.limit_bytes - std::min(options.limit_bytes, reserved);
}

uint64_t SegmentBytes(const DiskTierOptions& options) {
  const uint64_t share = SegmentRoom(options) / kSegmentsAtLeast / kDiskPage * kDiskPage;
  return std::min({ToPages(options.segment_bytes), share, kMaxSegmentBytes});
}

DiskTier::DiskTier(FileSystem& files, const Clock& clock, DiskTierOptions options, LoadedDeletions deletions)
    : files_(files),
      clock_(clock),
      options_(std::move(options)),
      segment_bytes_(SegmentBytes(options_)),
      segments_(files, options_.folder, options_.open_files),
      opening_(deletions.opening),
      deletions_(files, options_.folder, DeletionLogRoom(options_), std::move(deletions)),
      health_(options_.failures_until_degraded, options_.retry_after) {}

DiskTier::~DiskTier() = default;

Result<std::unique_ptr<DiskTier>> DiskTier::Open(FileSystem& files, const Clock& clock, DiskTierOptions options) {
  CACHALOT_RETURN_IF_ERROR(Check(options));
  CACHALOT_RETURN_IF_ERROR(files.MakeFolder(options.folder));
  // The folder itself may be new. Where the one above cannot be opened, it was there before.
  (void)files.SyncFolder(FolderAbove(options.folder));
  std::optional<FileLock> lock;
  if (options.lock) {
    Result<FileLock> held = FileLock::TryAcquire(fmt::format("{}/{}", options.folder, kFolderLockFile));
    if (!held.ok()) return held.status().Annotate(fmt::format("disk tier in {}", options.folder));
    lock = std::move(held).value();
  }
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(options.folder));
  const FolderFiles found = SortFiles(names);
  LoadedDeletions deletions;
  bool deletions_known = false;
  if (found.deletions) {
    Result<LoadedDeletions> loaded = LoadDeletions(files, options.folder);
    if (!loaded.ok() && loaded.status().code() != Code::kCorrupt) return loaded.status();
    deletions_known = loaded.ok();
    if (loaded.ok()) deletions = std::move(loaded).value();
  }
  deletions.opening = LastOpening(found.segments, deletions);
  if (++deletions.opening == 0)
    return Invalid(
        fmt::format("{}: the names of its files leave no number for another opening; remove the one with the highest",
                    options.folder));
  std::unique_ptr<DiskTier> tier(new DiskTier(files, clock, std::move(options), std::move(deletions)));
  tier->lock_ = std::move(lock);
  const Status recovered = tier->Recover(found, deletions_known);
  if (!recovered.ok()) return recovered.Annotate(fmt::format("disk tier in {}", tier->options_.folder));
  return tier;
}

Status DiskTier::Recover(const FolderFiles& found, bool deletions_known) {
  CACHALOT_RETURN_IF_ERROR(files_.Remove(segments_.PathOf(kNewDeletionFile)));
  for (const std::string& name : found.foreign) NoteForeign(name);
  for (const std::string& name : found.segments) CACHALOT_RETURN_IF_ERROR(RecoverSegment(name, deletions_known));
  CACHALOT_RETURN_IF_ERROR(SyncNames());
  PruneDeletions();
  CACHALOT_RETURN_IF_ERROR(StoreDeletions());
  CACHALOT_RETURN_IF_ERROR(EraseExpiredSinceLastTime());
  // The limit may be lower than last time. Where other files leave no room, Put says so.
  const Status room = MakeRoom(0, 0);
  return room.code() == Code::kOverloaded ? OkStatus() : room;
}

Status DiskTier::EraseExpiredSinceLastTime() {
  const int64_t now = clock_.UnixSeconds();
  opened_at_ = clock_.Now();
  opened_unix_seconds_ = std::max(now, last_written_);
  return Erase(index_.TakeExpired(ExpiredBy(now, last_written_)));
}

void DiskTier::NoteForeign(const std::string& name) {
  const Result<uint64_t> occupied = files_.Occupied(segments_.PathOf(name));
  ++stats_.foreign_files;
  if (occupied.ok()) stats_.foreign_bytes += *occupied;
}

Status DiskTier::RecoverSegment(const std::string& name, bool deletions_known) {
  LoadedSegment segment = LoadSegment(files_, options_.folder, name);
  const uint64_t id = segment.header.first_sequence;
  if (segment.state == SegmentState::kForeign || segments_.Contains(id)) {
    NoteForeign(name);
    return OkStatus();
  }
  stats_.damaged_records += segment.damaged_records;
  last_written_ = std::max(last_written_, LastWritten(segment));
  const bool usable = segment.why.ok() && deletions_known;
  if (!usable || segment.records.empty() || !SealRecovered(segment).ok()) {
    // Nothing is kept of which nobody knows what it holds: it could come back once it is readable.
    if (!usable || !segment.records.empty()) ++stats_.discarded_segments;
    segments_.NoteNameChange();
    return files_.Remove(segments_.PathOf(name));
  }
  ++(segment.state == SegmentState::kSealed ? stats_.recovered_sealed : stats_.recovered_scanned);
  segments_.Add(id, name, segment.header.uuid, segment.file_bytes);
  // Under its old name the next Open scans it.
  (void)segments_.RenameAsSealed(id);
  for (const FooterRecord& record : segment.records) {
    index_.AddRecord(id, record, /*live=*/true, appended_bytes_);
    appended_bytes_ += RecordBytes(record.header);
    for (const RecordBlock& block : record.header.blocks) {
      index_.DropBefore(block.key, deletions_.SequenceOf(block.key));
    }
  }
  return OkStatus();
}

Status DiskTier::SealRecovered(LoadedSegment& segment) {
  if (segment.state == SegmentState::kSealed) return OkStatus();
  CACHALOT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                            files_.OpenDirect(segments_.PathOf(segment.name), OpenMode::kReadWrite));
  CACHALOT_ASSIGN_OR_RETURN(segment.file_bytes,
                            WriteFooter(*file, segment.header.uuid, segment.data_bytes, segment.records));
  return file->Sync();
}

}  // namespace cachalot::tier
