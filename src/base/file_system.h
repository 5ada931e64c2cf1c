// FileSystem is how whoever keeps data on disk sees the disk: files by path, and folders that are synced.
// Threads:   a FileSystem from any thread; one File takes reads from any thread at once, writes from one at a time.
// Ownership: a File closes when destroyed; what was written and not synced may be lost in a crash.
// Invariant: a read or write is whole or an error: short ones are continued inside. Errors name the path, the operation
//            and what the system said.
// Cost:      that of the system calls.
//
// DiskFileSystem is the real one; testing/fault_file_system.h has one in memory that crashes, tears writes and fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ring_reads.h"
#include "base/status.h"

namespace cachalot {

enum class OpenMode : uint8_t {
  kRead,          // exists
  kReadWrite,     // exists
  kCreate,        // does not exist yet; read and written by the owner only (0600)
  kCreatePublic,  // does not exist yet; others may read it (0644)
};

// What lies in a file from `offset` on, and where it is to go.
struct FileRange {
  uint64_t offset = 0;
  std::span<std::byte> into;
};

class File {
 public:
  virtual ~File() = default;

  // kCorrupt when the file ends before `into` is full, kUnavailable when reading fails.
  virtual Status ReadAt(uint64_t offset, std::span<std::byte> into) const = 0;
  // All of them, at once where the system can; a range that begins where the one before ends is read along with it.
  virtual Status ReadAt(std::span<const FileRange> ranges) const {
    for (const FileRange& range : ranges) CACHALOT_RETURN_IF_ERROR(ReadAt(range.offset, range.into));
    return OkStatus();
  }
  // kOverloaded when the disk or quota is full, kUnavailable when writing fails. After an error any part may be
  // written.
  virtual Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual Status Truncate(uint64_t bytes) = 0;
  // Blocks are set aside for [0, bytes), so that writing there does not meet a full disk. The size becomes that.
  virtual Status Allocate(uint64_t bytes) = 0;
  // Contents and size are on disk, in a file that still has a name. After an error what was written since the last
  // success may never get there, though a later Sync succeeds: write it again, elsewhere.
  virtual Status Sync() = 0;
  virtual Result<uint64_t> Size() const = 0;
};

// How much room a folder's disk has.
struct DiskRoom {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;  // for this process
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // kUnavailable when missing, present (kCreate) or not permitted; kInvalid when not a regular file.
  virtual Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) = 0;
  // With O_DIRECT where the file system has it: offsets, sizes and addresses are then multiples of 4096.
  virtual Result<std::unique_ptr<File>> OpenDirect(const std::string& path, OpenMode mode) = 0;
  // Replaces `to`. On disk after SyncFolder.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // A missing file is no error.
  virtual Status Remove(const std::string& path) = 0;
  // Made with access for the owner alone; no error when it exists.
  virtual Status MakeFolder(const std::string& path) = 0;
  // Names of the regular files in it, sorted.
  virtual Result<std::vector<std::string>> List(const std::string& folder) = 0;
  // Names made, renamed and removed in it are on disk.
  virtual Status SyncFolder(const std::string& folder) = 0;
  virtual Result<DiskRoom> Room(const std::string& folder) = 0;
  // Bytes that the file occupies, as `du` counts them.
  virtual Result<uint64_t> Occupied(const std::string& path) = 0;
  // How it reads several ranges of a direct file, for people.
  virtual std::string ReadsBy() const { return "pread"; }
};

// The folder that `path` is in: "." or "/" where it names none.
std::string FolderAbove(const std::string& path);

// The file system of this machine, which reads by pread.
std::unique_ptr<FileSystem> DiskFileSystem();

// How several ranges of a direct file are read. One place alone gains nothing by io_uring and costs more
// (docs/performance.md), so that kAuto leaves it to pread.
enum class DiskIo : uint8_t {
  kAuto,     // by io_uring where it works
  kPread,    // one after the other
  kIoUring,  // by io_uring, also where they are one place
};

struct RingOptions {
  RingMaker make = MakeRing;
  size_t most = 8;  // reads at once that have one; the others go by pread
};

// That, with rings. kUnavailable for kIoUring where io_uring does not work.
Result<std::unique_ptr<FileSystem>> DiskFileSystemBy(DiskIo io, const RingOptions& rings = {});

}  // namespace cachalot
