// SessionFileWriter appends to the newest file of one kind of the session journal and begins a new one where needed.
// Threads:   one.
// Ownership: keeps the file open; does not own the FileSystem.
// Invariant: when a call succeeds all that it was given is on disk, name and contents; when it fails no file is open
//            and nothing that was on disk before is touched: the same records are to be given again.
// Cost:      one write and one sync per call, and a sync of the folder for a new file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "tier/session_record.h"
#include "tier/session_replay.h"

namespace cachalot::tier {

class SessionFileWriter {
 public:
  SessionFileWriter(FileSystem& files, std::string folder, SessionFileName kind)
      : files_(files), folder_(std::move(folder)), kind_(kind) {}

  bool is_open() const { return file_ != nullptr; }
  void Close() { file_.reset(); }

  // Requires !is_open(). The next Append begins the file with it.
  void SetHeader(const SessionFileHeader& header) { header_ = header; }
  // Returns how many bytes longer the journal is.
  Result<uint64_t> Append(std::span<const std::byte> records);
  // Requires !is_open(). Begins with a snapshot, under a temporary name until it is whole. Returns its bytes.
  Result<uint64_t> BeginWithSnapshot(const ReplayedSessions& sessions, const SessionFileHeader& header);

 private:
  std::string PathOf(SessionFileName kind) const;
  Status Begin(std::span<const std::byte> records);
  Status WriteSnapshot(File& file, const ReplayedSessions& sessions);
  // What was not acknowledged goes, if the disk lets it: not needed for reading, but to fill no disk with trials.
  void Abandon();

  FileSystem& files_;
  const std::string folder_;
  const SessionFileName kind_;
  SessionFileHeader header_;
  std::unique_ptr<File> file_;
  uint64_t synced_bytes_ = 0;  // of the open file
};

}  // namespace cachalot::tier
