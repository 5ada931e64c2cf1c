// FaultFileSystem is a disk in memory that tells what is synced from what is written, crashes, and fails on demand.
// Threads:   any.
// Ownership: open files keep the disk they belong to; AfterCrash copies it.
// Invariant: a file's contents are on disk after Sync, a name after SyncFolder of its folder; until then a crash may
//            lose them, file by file, write by write, name by name.
// Cost:      memory for all contents, twice.
//
// "", "." and "/" are folders that exist. A rename into another folder is on disk when that one is synced. What a
// failed Sync was to save may never reach the disk, though a later Sync succeeds: so it is on Linux.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"

namespace cachalot {

enum class FileOp : uint8_t {
  kOpen,
  kRead,
  kWrite,
  kTruncate,
  kAllocate,
  kSync,
  kSize,
  kRename,
  kRemove,
  kMakeFolder,
  kList,
  kSyncFolder,
  kRoom,
  kOccupied,
  kAny,  // for faults and sums
};

struct FileFault {
  FileOp op = FileOp::kAny;
  uint64_t nth = 1;      // of such operations, counted from when the fault is set
  bool onwards = false;  // that one and all later ones
  Code code = Code::kUnavailable;
};

// What of the unsynced a crash leaves.
enum class Unsynced : uint8_t {
  kLost,
  kKept,   // all of it, as after kill -9
  kMixed,  // each write lost, kept or cut at a byte, each name as before or after, by the seed
};

struct FileCounts {
  std::array<uint64_t, static_cast<size_t>(FileOp::kAny)> operations{};  // by FileOp, failed ones too
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;

  uint64_t Of(FileOp op) const;
};

class FaultFileSystem final : public FileSystem {
 public:
  FaultFileSystem();

  // The disk as the next process finds it, without faults. This one goes on as if nothing had happened.
  std::unique_ptr<FaultFileSystem> AfterCrash(Unsynced unsynced, uint64_t seed = 0) const;

  // A failing write writes some of its bytes, any other failing operation nothing.
  void Fail(FileFault fault);
  void Heal();
  // Room for so much; 1 GiB unless set.
  void SetTotalBytes(uint64_t bytes);

  // These change or show what is written and on disk alike. Require that the file exists, but for SetContents.
  void FlipBit(const std::string& path, uint64_t bit);
  void Cut(const std::string& path, uint64_t bytes);
  void SetContents(const std::string& path, std::span<const std::byte> bytes);
  std::vector<std::byte> Contents(const std::string& path) const;

  FileCounts counts() const;

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  Result<std::unique_ptr<File>> OpenDirect(const std::string& path, OpenMode mode) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status MakeFolder(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& folder) override;
  Status SyncFolder(const std::string& folder) override;
  Result<DiskRoom> Room(const std::string& folder) override;
  Result<uint64_t> Occupied(const std::string& path) override;

 private:
  struct Disk;
  class OpenFile;
  Result<std::unique_ptr<File>> OpenAs(const std::string& path, OpenMode mode, bool direct);

  std::shared_ptr<Disk> disk_;
};

}  // namespace cachalot
