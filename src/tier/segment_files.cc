#include "tier/segment_files.h"

#include <algorithm>

#include <fmt/format.h>

#include "tier/disk_recovery.h"

namespace cachalot::tier {

std::string SegmentFiles::PathOf(const std::string& name) const { return fmt::format("{}/{}", folder_, name); }

std::vector<SegmentFiles::Room> SegmentFiles::all() const {
  const MutexLock lock(mutex_);
  std::vector<Room> rooms;
  for (const auto& [id, segment] : segments_) rooms.push_back({id, segment.occupied_bytes});
  return rooms;
}

uint64_t SegmentFiles::count() const {
  const MutexLock lock(mutex_);
  return segments_.size();
}

bool SegmentFiles::Contains(uint64_t id) const {
  const MutexLock lock(mutex_);
  return segments_.contains(id);
}

uint64_t SegmentFiles::occupied_bytes() const {
  const MutexLock lock(mutex_);
  return occupied_bytes_;
}

void SegmentFiles::Measure(Segment& segment, uint64_t file_bytes) {
  const Result<uint64_t> occupied = files_.Occupied(PathOf(segment.name));
  occupied_bytes_ -= segment.occupied_bytes;
  segment.occupied_bytes = std::max(ToPages(file_bytes), occupied.ok() ? *occupied : 0);
  occupied_bytes_ += segment.occupied_bytes;
}

void SegmentFiles::Add(uint64_t id, const std::string& name, const SegmentUuid& uuid, uint64_t file_bytes) {
  const MutexLock lock(mutex_);
  segments_[id] = {name, uuid, 0, nullptr};
  Measure(segments_[id], file_bytes);
}

void SegmentFiles::Resized(uint64_t id, uint64_t file_bytes) {
  const MutexLock lock(mutex_);
  Measure(segments_.at(id), file_bytes);
}

Status SegmentFiles::RenameAsSealed(uint64_t id) {
  const MutexLock lock(mutex_);
  Segment& segment = segments_.at(id);
  const std::string sealed = SegmentName(id, /*sealed=*/true);
  if (segment.name == sealed) return OkStatus();
  CACHALOT_RETURN_IF_ERROR(files_.Rename(PathOf(segment.name), PathOf(sealed)));
  segment.name = sealed;
  names_synced_ = false;
  return OkStatus();
}

Result<SegmentFiles::Readable> SegmentFiles::FileOf(uint64_t id) {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(id);
  if (found == segments_.end()) return Unavailable(fmt::format("{} is gone", PathOf(SegmentName(id, true))));
  Segment& segment = found->second;
  if (segment.file != nullptr) return Readable{segment.file, segment.uuid};
  CACHALOT_ASSIGN_OR_RETURN(segment.file, files_.OpenDirect(PathOf(segment.name), OpenMode::kRead));
  opened_.push_back(id);
  if (opened_.size() > open_limit_) {
    const auto oldest = segments_.find(opened_.front());
    if (oldest != segments_.end() && oldest->first != id) oldest->second.file = nullptr;
    opened_.pop_front();
  }
  return Readable{segment.file, segment.uuid};
}

Status SegmentFiles::Remove(uint64_t id) {
  const MutexLock lock(mutex_);
  const auto segment = segments_.find(id);
  CACHALOT_RETURN_IF_ERROR(files_.Remove(PathOf(segment->second.name)));
  occupied_bytes_ -= segment->second.occupied_bytes;
  segments_.erase(segment);
  std::erase(opened_, id);
  removed_.push_back(id);
  names_synced_ = false;
  return OkStatus();
}

Result<std::vector<uint64_t>> SegmentFiles::SyncNames() {
  const MutexLock lock(mutex_);
  if (!names_synced_) CACHALOT_RETURN_IF_ERROR(files_.SyncFolder(folder_));
  names_synced_ = true;
  return std::exchange(removed_, {});
}

void SegmentFiles::NoteNameChange() {
  const MutexLock lock(mutex_);
  names_synced_ = false;
}

bool SegmentFiles::names_synced() const {
  const MutexLock lock(mutex_);
  return names_synced_;
}

}  // namespace cachalot::tier
