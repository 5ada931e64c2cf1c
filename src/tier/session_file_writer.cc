#include "tier/session_file_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace cachalot::tier {
namespace {

constexpr size_t kSnapshotPartBytes = size_t{1} << 20;

}  // namespace

std::string SessionFileWriter::PathOf(SessionFileName kind) const {
  return folder_ + "/" + NameOfSessionFile(kind, header_.number);
}

Result<uint64_t> SessionFileWriter::Append(std::span<const std::byte> records) {
  const uint64_t before = is_open() ? synced_bytes_ : 0;
  if (!is_open()) {
    synced_bytes_ = 0;
    const Status status = Begin(records);
    if (!status.ok()) {
      Abandon();
      return status;
    }
    synced_bytes_ = kSessionFileHeaderBytes;
  } else {
    Status status = file_->WriteAt(synced_bytes_, records);
    if (status.ok()) status = file_->Sync();
    if (!status.ok()) {
      Abandon();
      return status;
    }
  }
  synced_bytes_ += records.size();
  return synced_bytes_ - before;
}

Status SessionFileWriter::Begin(std::span<const std::byte> records) {
  CACHALOT_ASSIGN_OR_RETURN(file_, files_.Open(PathOf(kind_), OpenMode::kCreate));
  CACHALOT_RETURN_IF_ERROR(file_->WriteAt(0, EncodeSessionFileHeader(header_)));
  CACHALOT_RETURN_IF_ERROR(file_->WriteAt(kSessionFileHeaderBytes, records));
  CACHALOT_RETURN_IF_ERROR(file_->Sync());
  return files_.SyncFolder(folder_);
}

void SessionFileWriter::Abandon() {
  if (!is_open()) return;
  if (synced_bytes_ > 0) {
    (void)file_->Truncate(synced_bytes_);
  } else {
    (void)files_.Remove(PathOf(kind_));
  }
  Close();
}

Result<uint64_t> SessionFileWriter::BeginWithSnapshot(const ReplayedSessions& sessions,
                                                      const SessionFileHeader& header) {
  CACHALOT_CHECK(!is_open());
  SetHeader(header);
  const std::string temporary = PathOf(SessionFileName::kTemporary);
  CACHALOT_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Open(temporary, OpenMode::kCreate));
  Status status = WriteSnapshot(*file, sessions);
  if (status.ok()) status = files_.Rename(temporary, PathOf(kind_));
  if (!status.ok()) {
    (void)files_.Remove(temporary);
    return status;
  }
  // Whether the name lasts is open until this succeeds; either way the same sessions are on disk.
  CACHALOT_RETURN_IF_ERROR(files_.SyncFolder(folder_));
  file_ = std::move(file);
  return synced_bytes_;
}

Status SessionFileWriter::WriteSnapshot(File& file, const ReplayedSessions& sessions) {
  std::vector<const ReplayedSession*> in_order;
  for (const auto& [key, replayed] : sessions) in_order.push_back(&replayed);
  std::ranges::sort(in_order, {}, &ReplayedSession::content_sequence);

  const uint32_t seed = SessionRecordSeed(header_.uuid);
  std::vector<std::byte> part = EncodeSessionFileHeader(header_);
  synced_bytes_ = 0;
  const auto write = [&]() -> Status {
    CACHALOT_RETURN_IF_ERROR(file.WriteAt(synced_bytes_, part));
    synced_bytes_ += part.size();
    part.clear();
    return OkStatus();
  };
  for (const ReplayedSession* replayed : in_order) {
    SessionChange change;
    change.sequence = replayed->content_sequence;
    change.session = replayed->session;
    AppendSessionRecord(change, seed, part);
    if (part.size() >= kSnapshotPartBytes) CACHALOT_RETURN_IF_ERROR(write());
  }
  CACHALOT_RETURN_IF_ERROR(write());
  return file.Sync();
}

}  // namespace cachalot::tier
