#include "tier/segment_files.h"

#include <algorithm>

#include <fmt/format.h>

#include "tier/disk_recovery.h"

namespace cachalot::tier {

std::string SegmentFiles::PathOf(const std::string& name) const { return fmt::format("{}/{}", folder_, name); }

void SegmentFiles::Add(uint64_t id, const std::string& name, const SegmentUuid& uuid, uint64_t file_bytes) {
  segments_[id] = {name, uuid, 0, nullptr};
  Resized(id, file_bytes);
}

void SegmentFiles::Resized(uint64_t id, uint64_t file_bytes) {
  Segment& segment = segments_.at(id);
  const Result<uint64_t> occupied = files_.Occupied(PathOf(segment.name));
  occupied_bytes_ -= segment.occupied_bytes;
  segment.occupied_bytes = std::max(ToPages(file_bytes), occupied.ok() ? *occupied : 0);
  occupied_bytes_ += segment.occupied_bytes;
}

Status SegmentFiles::RenameAsSealed(uint64_t id) {
  Segment& segment = segments_.at(id);
  const std::string sealed = SegmentName(id, /*sealed=*/true);
  if (segment.name == sealed) return OkStatus();
  CACHALOT_RETURN_IF_ERROR(files_.Rename(PathOf(segment.name), PathOf(sealed)));
  segment.name = sealed;
  NoteNameChange();
  return OkStatus();
}

Result<std::shared_ptr<const File>> SegmentFiles::FileOf(uint64_t id) {
  Segment& segment = segments_.at(id);
  if (segment.file != nullptr) return segment.file;
  CACHALOT_ASSIGN_OR_RETURN(segment.file, files_.OpenDirect(PathOf(segment.name), OpenMode::kRead));
  opened_.push_back(id);
  if (opened_.size() > open_limit_) {
    const auto oldest = segments_.find(opened_.front());
    if (oldest != segments_.end() && oldest->first != id) oldest->second.file = nullptr;
    opened_.pop_front();
  }
  return segment.file;
}

Status SegmentFiles::Remove(uint64_t id) {
  const auto segment = segments_.find(id);
  CACHALOT_RETURN_IF_ERROR(files_.Remove(PathOf(segment->second.name)));
  occupied_bytes_ -= segment->second.occupied_bytes;
  segments_.erase(segment);
  std::erase(opened_, id);
  removed_.push_back(id);
  NoteNameChange();
  return OkStatus();
}

Result<std::vector<uint64_t>> SegmentFiles::SyncNames() {
  if (!names_synced_) CACHALOT_RETURN_IF_ERROR(files_.SyncFolder(folder_));
  names_synced_ = true;
  return std::exchange(removed_, {});
}

}  // namespace cachalot::tier
