// BackgroundFile is a new file that grows by pieces, which a thread of its own makes and writes.
// Threads:   Append and TryAppend from any thread; what makes a piece runs on the file's thread, one at a time.
// Ownership: owns file and thread; a piece that was taken owns what it is made from.
// Invariant: pieces are whole and in the order in which they were taken: one that could not be written leaves nothing
//            behind but bytes that the next one overwrites, or that Close cuts off.
// Cost:      a lock per piece. What waits to be written counts at most kMostQueuedBytes, and one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file_system.h"
#include "base/mutex.h"
#include "base/status.h"

namespace cachalot {

class BackgroundFile {
 public:
  using Make = std::function<std::string()>;

  static constexpr uint64_t kMostQueuedBytes = uint64_t{64} << 20;

  // Whether pieces may be missing in between: kGaps: each is tried; kNoGaps: none comes after one that failed.
  enum class Gaps : uint8_t { kGaps, kNoGaps };

  // Read and written by its owner only. kUnavailable where there is a file already, or none can be made.
  static Result<std::unique_ptr<BackgroundFile>> Create(FileSystem& files, const std::string& path, Gaps gaps);
  ~BackgroundFile();  // Close()

  // `bytes`: what the piece holds until it is written. False: it is not taken, as there is no room.
  bool TryAppend(uint64_t bytes, Make make) CACHALOT_EXCLUDES(mutex_);
  // Waits for room.
  void Append(std::string piece) CACHALOT_EXCLUDES(mutex_);

  // Once all that was taken is written and on disk. Then nothing may be appended. The first error, if there was any.
  Status Close() CACHALOT_EXCLUDES(mutex_);

  // Pieces that were taken and could not be written.
  uint64_t failed_pieces() const CACHALOT_EXCLUDES(mutex_);
  const std::string& path() const { return path_; }

 private:
  struct Piece {
    uint64_t bytes = 0;
    Make make;
  };

  BackgroundFile(std::string path, std::unique_ptr<File> file, Gaps gaps);
  void Main() CACHALOT_EXCLUDES(mutex_);
  std::vector<Piece> TakeAll() CACHALOT_EXCLUDES(mutex_);
  Status Write(const Piece& piece);
  void NoteFailure(const Status& status) CACHALOT_EXCLUDES(mutex_);

  const std::string path_;
  const std::unique_ptr<File> file_;
  const Gaps gaps_;
  uint64_t size_ = 0;  // written so far; of the file's thread
  mutable Mutex mutex_;
  CondVar has_pieces_;
  CondVar has_room_;
  std::vector<Piece> pieces_ CACHALOT_GUARDED_BY(mutex_);
  uint64_t queued_bytes_ CACHALOT_GUARDED_BY(mutex_) = 0;
  uint64_t failed_pieces_ CACHALOT_GUARDED_BY(mutex_) = 0;
  Status first_error_ CACHALOT_GUARDED_BY(mutex_);
  bool closed_ CACHALOT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace cachalot
