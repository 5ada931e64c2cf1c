// FileLock is an exclusive lock between processes (and between FileLocks of one process), tied to a lock file.
// Threads:   one FileLock belongs to one thread at a time.
// Ownership: holds the lock until destroyed; the operating system drops it if the process dies.
// Invariant: the lock file is never removed, so that all who wait wait for the same one.
// Cost:      one system call when free; waiting costs nothing.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/status.h"

namespace cachalot {

class FileLock {
 public:
  // Creates the file if needed. Calls `on_wait`, if any, once before it waits for another holder. kUnavailable when
  // the file cannot be made or locked.
  static Result<FileLock> Acquire(const std::string& path, const std::function<void()>& on_wait = nullptr);

  // Fails at once, kUnavailable, when somebody else holds it.
  static Result<FileLock> TryAcquire(const std::string& path);

  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  static Result<FileLock> OpenUnlocked(const std::string& path);

  int fd_;
};

}  // namespace cachalot
