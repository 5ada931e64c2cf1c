// SegmentFiles is the set of segment files in a folder: their names, the room they take and which are open for reading.
// Threads:   any; changed by one.
// Ownership: keeps at most `open_limit` files open; a reader that holds one keeps it beyond that and its removal.
// Invariant: occupied_bytes() is the sum of what the file system said of each file, or its size where that is more.
// Cost:      map look-ups, and a system call under the lock where a file is opened, removed, renamed or asked for.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/mutex.h"
#include "base/status.h"
#include "tier/disk_format.h"

namespace cachalot::tier {

class SegmentFiles {
 public:
  struct Room {
    uint64_t id = 0;  // the segment's first sequence number
    uint64_t occupied_bytes = 0;
  };
  struct Readable {
    std::shared_ptr<const File> file;
    SegmentUuid uuid{};
  };

  SegmentFiles(FileSystem& files, std::string folder, size_t open_limit)
      : files_(files), folder_(std::move(folder)), open_limit_(open_limit) {}

  std::string PathOf(const std::string& name) const;
  // By id.
  std::vector<Room> all() const;
  uint64_t count() const;
  bool Contains(uint64_t id) const;
  uint64_t occupied_bytes() const;

  // A file that is there, of `file_bytes`.
  void Add(uint64_t id, const std::string& name, const SegmentUuid& uuid, uint64_t file_bytes);
  // As its size changed. Asks the file system again. Requires that it is there.
  void Resized(uint64_t id, uint64_t file_bytes);
  // Its name ends as a sealed one's. If that fails it keeps the other. Requires that it is there.
  Status RenameAsSealed(uint64_t id);

  // kUnavailable when it cannot be opened, or is gone.
  Result<Readable> FileOf(uint64_t id);

  // Gone, but perhaps back after a crash until SyncNames. If it cannot be removed it stays. Requires that it is there.
  Status Remove(uint64_t id);
  // Names as they are now survive a crash. Gives the segments that are now gone for good.
  Result<std::vector<uint64_t>> SyncNames();
  // A file was made or renamed.
  void NoteNameChange();
  bool names_synced() const;

 private:
  struct Segment {
    std::string name;
    SegmentUuid uuid{};
    uint64_t occupied_bytes = 0;
    std::shared_ptr<const File> file;  // when open
  };

  void Measure(Segment& segment, uint64_t file_bytes) CACHALOT_REQUIRES(mutex_);

  FileSystem& files_;
  const std::string folder_;
  const size_t open_limit_;
  mutable Mutex mutex_;
  std::map<uint64_t, Segment> segments_ CACHALOT_GUARDED_BY(mutex_);
  uint64_t occupied_bytes_ CACHALOT_GUARDED_BY(mutex_) = 0;
  std::deque<uint64_t> opened_ CACHALOT_GUARDED_BY(mutex_);  // in that order
  std::vector<uint64_t> removed_ CACHALOT_GUARDED_BY(mutex_);
  bool names_synced_ CACHALOT_GUARDED_BY(mutex_) = true;
};

}  // namespace cachalot::tier
