// FileSessionArchive keeps saved sessions as files of one folder that it signs (tier/archive_file.h).
// Threads:   belongs to the engine thread; files are written and read on the transfer engine's.
// Ownership: owns the key, the file that is open, and the transfers.
// Invariant: that of SessionArchive.
// Cost:      memory for one part of a file, while it is open.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/entropy.h"
#include "base/file_system.h"
#include "base/hmac.h"
#include "base/status.h"
#include "tier/archive_file.h"
#include "tier/end_listener.h"
#include "tier/session_archive.h"
#include "tier/transfer_engine.h"

namespace cachalot::tier {

struct FileSessionArchiveOptions {
  std::string folder;                                 // made if needed
  std::string key_file;                               // made if needed, for its owner's eyes only
  uint64_t min_free_bytes = 0;                        // of the disk, left to others
  std::function<uint64_t()> entropy = SystemEntropy;  // for a new key
};

class FileSessionArchive final : public SessionArchive {
 public:
  // With a thread of its own.
  static Result<std::unique_ptr<FileSessionArchive>> Open(FileSystem& files, Clock& clock,
                                                          const FileSessionArchiveOptions& options);
  using MakeTransfers = std::function<Result<std::unique_ptr<TransferEngine>>(std::function<void()>)>;
  static Result<std::unique_ptr<FileSessionArchive>> Open(FileSystem& files, Clock& clock,
                                                          const FileSessionArchiveOptions& options,
                                                          const MakeTransfers& make_transfers);
  ~FileSessionArchive() override;

  Status BeginSave(const std::string& name, const ArchiveHeader& header) override;
  Result<std::span<std::byte>> PartRoom(uint64_t bytes) override;
  void WritePart(std::vector<uint32_t> groups) override;
  void FinishSave() override;
  Status BeginRestore(const std::string& owner, const std::string& name) override;
  void ReadPart() override;
  void Close() override;
  bool under_way() const override { return under_way_; }
  std::optional<Ended> Poll() override;
  void OnEnd(std::function<void()> call) override;
  std::optional<Nanos> WakeAt() const override { return transfers_->WakeAt(); }

 private:
  class Job;

  FileSessionArchive(FileSystem& files, const FileSessionArchiveOptions& options, const MacKey& key)
      : files_(files), folder_(options.folder), min_free_bytes_(options.min_free_bytes), key_(key) {}
  void Submit(std::function<Status(Ended&)> work);

  FileSystem& files_;
  const std::string folder_;
  const uint64_t min_free_bytes_;
  const MacKey key_;
  EndListener listener_;
  std::unique_ptr<ArchiveWriter> writer_;  // these three are the job's while one is under way
  std::unique_ptr<ArchiveReader> reader_;
  ArchivedKv part_;
  bool open_ = false;
  bool under_way_ = false;
  std::unique_ptr<TransferEngine> transfers_;  // ends before what its jobs use
};

}  // namespace cachalot::tier
