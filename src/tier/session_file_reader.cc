#include "tier/session_file_reader.h"

#include <algorithm>
#include <utility>

namespace cachalot::tier {
namespace {

constexpr uint64_t kWindowBytes = uint64_t{1} << 20;

// kCorrupt is for what was read; a file that shrinks while it is read is as good as one that cannot be read.
Status Readable(const Status& status) { return status.ok() ? OkStatus() : Unavailable(status.message()); }

}  // namespace

Result<SessionFileReader> SessionFileReader::Open(FileSystem& files, const std::string& path) {
  CACHALOT_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files.Open(path, OpenMode::kRead));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t file_bytes, file->Size());
  std::vector<std::byte> bytes(std::min<uint64_t>(file_bytes, kSessionFileHeaderBytes));
  CACHALOT_RETURN_IF_ERROR(Readable(file->ReadAt(0, bytes)));
  const Result<SessionFileHeader> header = DecodeSessionFileHeader(bytes);
  if (!header.ok()) return header.status().Annotate(path);
  return SessionFileReader(std::move(file), file_bytes, *header);
}

SessionFileReader::SessionFileReader(std::unique_ptr<File> file, uint64_t file_bytes, SessionFileHeader header)
    : file_(std::move(file)), file_bytes_(file_bytes), header_(header), seed_(SessionRecordSeed(header.uuid)) {}

Result<std::span<const std::byte>> SessionFileReader::View(uint64_t offset, uint64_t bytes) {
  const uint64_t end = std::min(offset + bytes, file_bytes_);
  if (offset >= end) return std::span<const std::byte>();
  if (offset < window_begin_ || end > window_begin_ + window_.size()) {
    window_.resize(std::min(std::max(bytes, kWindowBytes), file_bytes_ - offset));
    window_begin_ = offset;
    const Status status = Readable(file_->ReadAt(offset, window_));
    if (!status.ok()) {
      window_.clear();
      return status;
    }
  }
  return std::span<const std::byte>(window_).subspan(offset - window_begin_, end - offset);
}

Result<std::optional<SessionChange>> SessionFileReader::RecordHere() {
  std::optional<SessionChange> none;
  CACHALOT_ASSIGN_OR_RETURN(const auto head_bytes, View(offset_, kSessionRecordHeadBytes));
  if (head_bytes.size() < kSessionRecordHeadBytes) return none;
  const auto head = DecodeSessionRecordHead(head_bytes, seed_);
  if (!head || head->sequence <= last_sequence_) return none;
  if (head->payload_bytes > file_bytes_ - offset_ - kSessionRecordHeadBytes) return none;
  CACHALOT_ASSIGN_OR_RETURN(const auto record, View(offset_, kSessionRecordHeadBytes + head->payload_bytes));
  return DecodeSessionRecord(*head, record.subspan(kSessionRecordHeadBytes), seed_);
}

Status SessionFileReader::PassOverDamage() {
  const uint64_t begin = offset_;
  const auto magic = std::as_bytes(std::span(kSessionRecordMagic));
  for (++offset_; offset_ < file_bytes_;) {
    CACHALOT_RETURN_IF_ERROR(View(offset_, magic.size()).status());
    const auto bytes = std::span<const std::byte>(window_).subspan(offset_ - window_begin_);
    const auto found = std::search(bytes.begin(), bytes.end(), magic.begin(), magic.end());
    offset_ += static_cast<uint64_t>(found - bytes.begin());
    if (found != bytes.end()) break;
    // The magic number may lie across the end of the window.
    if (offset_ < file_bytes_) offset_ -= magic.size() - 1;
  }
  bad_bytes_ += offset_ - begin;
  return OkStatus();
}

Result<std::optional<SessionChange>> SessionFileReader::Next() {
  while (offset_ < file_bytes_) {
    CACHALOT_ASSIGN_OR_RETURN(std::optional<SessionChange> change, RecordHere());
    if (change) {
      offset_ += SessionRecordBytes(change->session);
      last_sequence_ = change->sequence;
      return change;
    }
    CACHALOT_RETURN_IF_ERROR(PassOverDamage());
  }
  return std::optional<SessionChange>();
}

}  // namespace cachalot::tier
