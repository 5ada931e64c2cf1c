// SessionArchive saves sessions with their KV as files of one folder, and reads them again, without the engine waiting.
// Threads:   belongs to the engine thread; files are written and read on the transfer engine's.
// Ownership: owns the key, the file that is open, and the transfers.
// Invariant: one file at a time; every call that returns OK ends exactly once, through Poll. A file that a Restore was
//            begun with is whole and was written with this key: all of it was read before that ended.
// Cost:      memory for one part of a file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/entropy.h"
#include "base/file_system.h"
#include "base/hmac.h"
#include "base/status.h"
#include "tier/archive_file.h"
#include "tier/end_listener.h"
#include "tier/transfer_engine.h"

namespace cachalot::tier {

struct SessionArchiveOptions {
  std::string folder;                                 // made if needed
  std::string key_file;                               // made if needed, for its owner's eyes only
  std::function<uint64_t()> entropy = SystemEntropy;  // for a new key
};

class SessionArchive {
 public:
  struct Ended {
    Status status;
    ArchiveHeader header;     // of BeginRestore
    ArchivedKv part;          // of ReadPart
    uint64_t file_bytes = 0;  // so far, or of the whole file
  };

  // With a thread of its own.
  static Result<std::unique_ptr<SessionArchive>> Open(FileSystem& files, Clock& clock,
                                                      const SessionArchiveOptions& options);
  using MakeTransfers = std::function<Result<std::unique_ptr<TransferEngine>>(std::function<void()>)>;
  static Result<std::unique_ptr<SessionArchive>> Open(FileSystem& files, Clock& clock,
                                                      const SessionArchiveOptions& options,
                                                      const MakeTransfers& make_transfers);
  ~SessionArchive();

  // Begin: kInvalid for a bad name, kOverloaded while another file is open. Each other call requires that the one
  // before has ended well.
  Status BeginSave(const std::string& name, const ArchiveHeader& header);
  void WritePart(ArchivedKv part);
  void FinishSave();
  Status BeginRestore(const std::string& name);
  void ReadPart();
  // The file is closed; one that was being saved leaves nothing. Requires that nothing is under way.
  void Close();

  bool under_way() const { return under_way_; }
  std::optional<Ended> Poll();
  // Called from any thread whenever there is something to Poll, until it is replaced; not under way once this returns.
  void OnEnd(std::function<void()> call);
  std::optional<Nanos> WakeAt() const { return transfers_->WakeAt(); }

 private:
  class Job;

  SessionArchive(FileSystem& files, std::string folder, const MacKey& key)
      : files_(files), folder_(std::move(folder)), key_(key) {}
  void Submit(std::function<Status(Ended&)> work);

  FileSystem& files_;
  const std::string folder_;
  const MacKey key_;
  EndListener listener_;
  std::unique_ptr<ArchiveWriter> writer_;  // these two are the job's while one is under way
  std::unique_ptr<ArchiveReader> reader_;
  bool open_ = false;
  bool under_way_ = false;
  std::unique_ptr<TransferEngine> transfers_;  // ends before what its jobs use
};

}  // namespace cachalot::tier
