#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace cachalot {

Result<FileLock> FileLock::Acquire(const std::string& path, const std::function<void()>& on_wait) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Unavailable(fmt::format("cannot open {}: {}", path, std::generic_category().message(errno)));
  FileLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK && on_wait) on_wait();
  while (::flock(fd, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    return Unavailable(fmt::format("cannot lock {}: {}", path, std::generic_category().message(errno)));
  }
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace cachalot
