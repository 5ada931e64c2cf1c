#include "base/background_file.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace cachalot {

BackgroundFile::BackgroundFile(std::string path, std::unique_ptr<File> file, Gaps gaps)
    : path_(std::move(path)), file_(std::move(file)), gaps_(gaps), thread_([this] { Main(); }) {}

BackgroundFile::~BackgroundFile() { static_cast<void>(Close()); }

Result<std::unique_ptr<BackgroundFile>> BackgroundFile::Create(FileSystem& files, const std::string& path, Gaps gaps) {
  CACHALOT_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files.Open(path, OpenMode::kCreate));
  return std::unique_ptr<BackgroundFile>(new BackgroundFile(path, std::move(file), gaps));
}

bool BackgroundFile::TryAppend(uint64_t bytes, Make make) {
  {
    MutexLock lock(mutex_);
    if (queued_bytes_ >= kMostQueuedBytes) return false;
    queued_bytes_ += bytes;
    pieces_.push_back({bytes, std::move(make)});
  }
  has_pieces_.NotifyOne();
  return true;
}

void BackgroundFile::Append(std::string piece) {
  const uint64_t bytes = piece.size();
  {
    MutexLock lock(mutex_);
    while (queued_bytes_ >= kMostQueuedBytes) has_room_.Wait(mutex_);
    queued_bytes_ += bytes;
    pieces_.push_back({bytes, [piece = std::move(piece)] { return piece; }});
  }
  has_pieces_.NotifyOne();
}

Status BackgroundFile::Close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  has_pieces_.NotifyOne();
  if (thread_.joinable()) thread_.join();
  MutexLock lock(mutex_);
  return first_error_;
}

uint64_t BackgroundFile::failed_pieces() const {
  MutexLock lock(mutex_);
  return failed_pieces_;
}

// Empty: it is closed.
std::vector<BackgroundFile::Piece> BackgroundFile::TakeAll() {
  MutexLock lock(mutex_);
  while (!closed_ && pieces_.empty()) has_pieces_.Wait(mutex_);
  return std::exchange(pieces_, {});
}

void BackgroundFile::Main() {
  for (std::vector<Piece> pieces = TakeAll(); !pieces.empty(); pieces = TakeAll()) {
    for (Piece& piece : pieces) {
      if (const Status status = Write(piece); !status.ok()) NoteFailure(status);
      piece.make = {};
      {
        MutexLock lock(mutex_);
        queued_bytes_ -= piece.bytes;
      }
      has_room_.NotifyAll();
    }
  }
  Status status = file_->Truncate(size_);
  if (status.ok()) status = file_->Sync();
  MutexLock lock(mutex_);
  if (first_error_.ok()) first_error_ = std::move(status);
}

Status BackgroundFile::Write(const Piece& piece) {
  if (gaps_ == Gaps::kNoGaps) {
    MutexLock lock(mutex_);
    if (!first_error_.ok()) return first_error_;
  }
  const std::string bytes = piece.make();
  CACHALOT_RETURN_IF_ERROR(file_->WriteAt(size_, std::as_bytes(std::span(bytes))));
  size_ += bytes.size();
  return OkStatus();
}

void BackgroundFile::NoteFailure(const Status& status) {
  MutexLock lock(mutex_);
  ++failed_pieces_;
  if (!first_error_.ok()) return;
  first_error_ = status;
  LogWarning(fmt::format("{}: {}; {}", path_, status.message(),
                         gaps_ == Gaps::kNoGaps ? "nothing more is written there" : "some of it will be missing"));
}

}  // namespace cachalot
