// ArchiveWriter and ArchiveReader write and read one session with its KV as a file that its server signs
// (docs/session_format.md).
// Threads:   each belongs to the thread that does its I/O; every call may wait for the disk.
// Ownership: each keeps its file open; borrows the file system.
// Invariant: the file's name shows a whole file or none; what is read is what this server wrote, part by part, or the
//            call fails.
// Cost:      one HMAC over each part; memory for one part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/hash.h"
#include "base/hmac.h"
#include "base/status.h"
#include "tier/stored_session.h"

namespace cachalot::tier {

struct ArchiveHeader {
  StoredSession session;
  uint64_t slot_bytes = 0;
  uint32_t block_tokens = 0;
  uint32_t kv_tokens = 0;   // leading ones whose KV is there
  uint32_t parts = 0;       // that their blocks are cut into, and that follow
  uint64_t saved = 0;       // wall time in seconds
  uint64_t kv_seconds = 0;  // after which nobody wishes to have its KV any more; 0: there is no end
  bool operator==(const ArchiveHeader&) const = default;
};

// Consecutive blocks of the history, from its beginning on; each the slots of its groups, in ascending order. All are
// whole but the last of all, which may hold fewer tokens.
struct ArchivedKv {
  std::vector<uint32_t> groups;  // by block; bit g: layer group g is there
  std::vector<std::byte> bytes;
  bool operator==(const ArchivedKv&) const = default;
};

inline constexpr uint64_t kArchivedKvBytes = uint64_t{4} << 20;  // most of a part, but for a larger block
inline constexpr uint32_t kArchivedKvBlocks = 1024;

// OK for the name of a file that lies in the folder itself: 1 to 128 letters, digits, '.', '_' and '-', no leading dot.
Status CheckArchiveName(const std::string& name);

// What its file is called in the folder: each owner has names of their own, and without an owner it is the name itself.
std::string ArchiveFileName(const std::string& owner, const std::string& name);

class ArchiveWriter {
 public:
  // `min_free_bytes` of the disk are left to others.
  ArchiveWriter(FileSystem& files, std::string folder, const MacKey& key, uint64_t min_free_bytes)
      : files_(files), folder_(std::move(folder)), key_(key), min_free_bytes_(min_free_bytes) {}
  // What was not finished leaves no file.
  ~ArchiveWriter();

  // It belongs to the session's owner. kOverloaded, as for Append, when the disk is full.
  Status Begin(const std::string& name, const ArchiveHeader& header);
  Status Append(const ArchivedKv& part);
  // All parts were appended: it takes the place of the owner's older file of its name.
  Status Finish();
  uint64_t bytes() const { return offset_; }

 private:
  Status Write(std::span<const std::byte> body);

  FileSystem& files_;
  const std::string folder_;
  const MacKey key_;
  const uint64_t min_free_bytes_;
  std::string path_, temporary_;
  std::unique_ptr<File> file_;
  Digest last_{};  // MAC of the part before
  uint64_t offset_ = 0;
};

class ArchiveReader {
 public:
  // kInvalid when the owner has no such file, and only then; kCorrupt when it is not what this server wrote.
  static Result<ArchiveReader> Open(FileSystem& files, const std::string& folder, const std::string& owner,
                                    const std::string& name, const MacKey& key);

  const ArchiveHeader& header() const { return header_; }
  uint64_t file_bytes() const { return file_bytes_; }
  // As often as header().parts.
  Result<ArchivedKv> Next();
  // All parts are whole and nothing follows; Next begins at the first again.
  Status CheckAll();

 private:
  ArchiveReader(std::unique_ptr<File> file, uint64_t file_bytes, const MacKey& key);
  Result<std::vector<std::byte>> Read();

  std::unique_ptr<File> file_;
  uint64_t file_bytes_;
  MacKey key_;
  ArchiveHeader header_;
  Digest last_{};
  uint64_t offset_ = 0;
};

}  // namespace cachalot::tier
