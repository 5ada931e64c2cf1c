// SessionFileReader reads the records of one file of the session journal, past damage to the next whole one.
// Threads:   one.
// Ownership: keeps the file open.
// Invariant: gives whole records only, by ascending sequence; damage costs the records that it lies in, no other.
// Cost:      reads the file once, by 1 MiB or the longest record; one buffer of that size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "tier/session_record.h"

namespace cachalot::tier {

class SessionFileReader {
 public:
  // kCorrupt and kInvalid as DecodeSessionFileHeader; kUnavailable when reading fails.
  static Result<SessionFileReader> Open(FileSystem& files, const std::string& path);

  const SessionFileHeader& header() const { return header_; }
  uint64_t file_bytes() const { return file_bytes_; }
  // Passed over so far.
  uint64_t bad_bytes() const { return bad_bytes_; }
  // Nothing at the end. Fails when reading does.
  Result<std::optional<SessionChange>> Next();

 private:
  SessionFileReader(std::unique_ptr<File> file, uint64_t file_bytes, SessionFileHeader header);

  // Up to `bytes` from `offset`, fewer at the end of the file; valid until the next call.
  Result<std::span<const std::byte>> View(uint64_t offset, uint64_t bytes);
  // The record at offset_, if there is a whole one that belongs there.
  Result<std::optional<SessionChange>> RecordHere();
  // offset_ becomes that of the next magic number, or the file's end.
  Status PassOverDamage();

  std::unique_ptr<File> file_;
  uint64_t file_bytes_;
  SessionFileHeader header_;
  uint32_t seed_;
  uint64_t offset_ = kSessionFileHeaderBytes;
  uint64_t last_sequence_ = 0;
  uint64_t bad_bytes_ = 0;
  std::vector<std::byte> window_;
  uint64_t window_begin_ = 0;
};

}  // namespace cachalot::tier
