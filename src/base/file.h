// Files: a read-only memory map, reads of a whole file or from front to back, and atomic writes. With file_system.cc
// the place that calls open().
// Threads:   a MappedFile may be read from any thread; an AtomicFile belongs to one.
// Ownership: MappedFile unmaps when destroyed; AtomicFile removes what was not committed.
// Invariant: bytes() is exactly the file as it was when opened.
// Cost:      mapping is O(1); pages arrive on first touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace cachalot {

class File;

class MappedFile {
 public:
  // kUnavailable when the file is missing or unreadable, kInvalid when it is not a regular file. An empty file maps
  // to an empty span.
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

  // For one who reads bytes() once, part by part. Prefetch asks for a part in the background; Release gives back the
  // memory of the pages around it, up to the next 2 MiB on both sides, since reading one brings its neighbours along. A
  // later read fetches them again.
  void Prefetch(std::span<const std::byte> part) const;
  void Release(std::span<const std::byte> part) const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

class FileDescriptor;

// A file, pipe or device from front to back.
class InputStream {
 public:
  // kUnavailable when it is missing or unreadable.
  static Result<InputStream> Open(const std::string& path);

  // Adds what comes next to the end of `bytes`, at most `most_bytes`. False: it has ended. kInvalid for a folder.
  Result<bool> Read(uint64_t most_bytes, std::string* bytes);

 private:
  InputStream(std::string path, std::shared_ptr<const FileDescriptor> file);
  std::string path_;
  std::shared_ptr<const FileDescriptor> file_;
};

// The whole file, if it holds at most `limit_bytes`. kInvalid when larger.
Result<std::string> ReadFile(const std::string& path, uint64_t limit_bytes);

enum class FileAccess : uint8_t { kEverybodyReads, kOwnerOnly };

// Writes to a temporary name in the same folder, then renames: old or new, never mixed. A link stays one: what it names
// is replaced. A pipe, a device or a socket that has the name is written into.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path, FileAccess access = FileAccess::kEverybodyReads);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Status Append(std::span<const std::byte> bytes);
  // The file has its name, and is on disk. Once, as the last call.
  Status Commit();

 private:
  AtomicFile() = default;
  std::string path_;
  std::string temporary_;
  std::unique_ptr<File> file_;  // null: nothing to remove
  std::shared_ptr<const FileDescriptor> stream_;
  uint64_t bytes_ = 0;
};

// Create, Append and Commit in one.
Status WriteFileAtomically(const std::string& path, std::string_view contents,
                           FileAccess access = FileAccess::kEverybodyReads);

// The value of an environment variable, or `fallback`.
std::string GetEnv(const char* name, const std::string& fallback);

}  // namespace cachalot
