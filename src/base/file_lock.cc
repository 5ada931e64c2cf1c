#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace cachalot {

namespace {

Status Failed(const char* operation, const std::string& path) {
  return Unavailable(fmt::format("cannot {} {}: {}", operation, path, std::generic_category().message(errno)));
}

}  // namespace

Result<FileLock> FileLock::OpenUnlocked(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Failed("open", path);
  return FileLock(fd);
}

Result<FileLock> FileLock::Acquire(const std::string& path, const std::function<void()>& on_wait) {
  CACHALOT_ASSIGN_OR_RETURN(FileLock lock, OpenUnlocked(path));
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK && on_wait) on_wait();
  while (::flock(lock.fd_, LOCK_EX) != 0) {
    if (errno != EINTR) return Failed("lock", path);
  }
  return lock;
}

Result<FileLock> FileLock::TryAcquire(const std::string& path) {
  CACHALOT_ASSIGN_OR_RETURN(FileLock lock, OpenUnlocked(path));
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) return Unavailable(fmt::format("{} is held by another process", path));
  return Failed("lock", path);
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace cachalot
