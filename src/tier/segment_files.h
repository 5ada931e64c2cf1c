// SegmentFiles is the set of segment files in a folder: their names, the room they take and which are open for reading.
// Threads:   belongs to one.
// Ownership: keeps at most `open_limit` files open; a reader that holds one keeps it beyond that and its removal.
// Invariant: occupied_bytes() is the sum of what the file system said of each file, or its size where that is more.
// Cost:      map look-ups, and a system call where a file is opened, removed or asked for.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "tier/disk_format.h"

namespace cachalot::tier {

class SegmentFiles {
 public:
  struct Segment {
    std::string name;
    SegmentUuid uuid{};
    uint64_t occupied_bytes = 0;
    std::shared_ptr<const File> file;  // when open
  };

  SegmentFiles(FileSystem& files, std::string folder, size_t open_limit)
      : files_(files), folder_(std::move(folder)), open_limit_(open_limit) {}

  std::string PathOf(const std::string& name) const;
  const std::map<uint64_t, Segment>& all() const { return segments_; }
  uint64_t occupied_bytes() const { return occupied_bytes_; }

  // A file that is there, of `file_bytes`. `id` is its first sequence number.
  void Add(uint64_t id, const std::string& name, const SegmentUuid& uuid, uint64_t file_bytes);
  // As its size changed. Asks the file system again.
  void Resized(uint64_t id, uint64_t file_bytes);
  // Its name ends as a sealed one's. If that fails it keeps the other.
  Status RenameAsSealed(uint64_t id);

  // Requires that it is there.
  const SegmentUuid& UuidOf(uint64_t id) const { return segments_.at(id).uuid; }
  Result<std::shared_ptr<const File>> FileOf(uint64_t id);

  // Gone, but perhaps back after a crash until SyncNames. If it cannot be removed it stays.
  Status Remove(uint64_t id);
  // Names as they are now survive a crash. Gives the segments that are now gone for good.
  Result<std::vector<uint64_t>> SyncNames();
  // A file was made or renamed.
  void NoteNameChange() { names_synced_ = false; }
  bool names_synced() const { return names_synced_; }

 private:
  FileSystem& files_;
  const std::string folder_;
  const size_t open_limit_;
  std::map<uint64_t, Segment> segments_;
  uint64_t occupied_bytes_ = 0;
  std::deque<uint64_t> opened_;  // in that order
  std::vector<uint64_t> removed_;
  bool names_synced_ = true;
};

}  // namespace cachalot::tier
