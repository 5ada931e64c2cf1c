#include "base/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace cachalot {
namespace {

constexpr uint64_t kStatBlockBytes = 512;  // of st_blocks, whatever the file system's blocks are

Status Failed(std::string_view operation, const std::string& path, int error) {
  std::string message = fmt::format("cannot {} {}: {}", operation, path, std::generic_category().message(error));
  const bool full = error == ENOSPC || error == EDQUOT;
  return full ? Overloaded(std::move(message)) : Unavailable(std::move(message));
}

// The result of `call`, repeated while a signal interrupts it.
template <class F>
auto Uninterrupted(F call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class DiskFile final : public File {
 public:
  DiskFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~DiskFile() override { ::close(fd_); }

  Status ReadAt(uint64_t offset, std::span<std::byte> into) const override {
    while (!into.empty()) {
      const ssize_t n =
          Uninterrupted([&] { return ::pread(fd_, into.data(), into.size(), static_cast<off_t>(offset)); });
      // A direct read that was cut short by the end of the file goes on from an odd offset, which some refuse.
      if (n == 0 || (n < 0 && errno == EINVAL && EndsBefore(offset + 1))) {
        return Corrupt(fmt::format("{} ends before byte {}", path_, offset + into.size()));
      }
      if (n < 0) return Failed("read", path_, errno);
      into = into.subspan(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return OkStatus();
  }

  Status ReadAt(uint64_t offset, std::span<std::byte> first, std::span<std::byte> second) const override {
    const std::array<iovec, 2> parts{iovec{first.data(), first.size()}, iovec{second.data(), second.size()}};
    const ssize_t n =
        Uninterrupted([&] { return ::preadv(fd_, parts.data(), parts.size(), static_cast<off_t>(offset)); });
    // What is missing, or the reason, is for plain reads.
    const size_t got = static_cast<size_t>(std::max<ssize_t>(n, 0)), of_first = std::min(got, first.size());
    CACHALOT_RETURN_IF_ERROR(ReadAt(offset + of_first, first.subspan(of_first)));
    return ReadAt(offset + std::max(got, first.size()), second.subspan(got - of_first));
  }

  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n =
          Uninterrupted([&] { return ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
      if (n <= 0) return Failed("write", path_, n < 0 ? errno : EIO);
      bytes = bytes.subspan(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return OkStatus();
  }

  Status Truncate(uint64_t bytes) override {
    if (Uninterrupted([&] { return ::ftruncate(fd_, static_cast<off_t>(bytes)); }) == 0) return OkStatus();
    return Failed("resize", path_, errno);
  }

  Status Allocate(uint64_t bytes) override {
    // Some file systems fill up before they find that the whole does not fit, to the harm of everyone beside us.
    if (Missing(bytes) > 0) return Failed("allocate room for", path_, ENOSPC);
    if (bytes > 0 && Uninterrupted([&] { return ::fallocate(fd_, 0, 0, static_cast<off_t>(bytes)); }) != 0) {
      const int error = errno == EOPNOTSUPP ? AllocateByWriting(bytes) : errno;
      if (error != 0) return Failed("allocate room for", path_, error);
    }
    return Truncate(bytes);  // the file may have been longer
  }

  Status Sync() override {
    if (Uninterrupted([&] { return ::fdatasync(fd_); }) != 0) return Failed("sync", path_, errno);
    struct stat info;
    if (::fstat(fd_, &info) == 0 && info.st_nlink == 0) return Failed("sync", path_, ENOENT);  // somebody removed it
    return OkStatus();
  }

  Result<uint64_t> Size() const override {
    struct stat info;
    if (::fstat(fd_, &info) != 0) return Failed("stat", path_, errno);
    return static_cast<uint64_t>(info.st_size);
  }

 private:
  bool EndsBefore(uint64_t byte) const {
    struct stat info;
    return ::fstat(fd_, &info) == 0 && static_cast<uint64_t>(info.st_size) < byte;
  }

  // How many bytes the disk is short of, for a file of `bytes`; 0 where it does not tell.
  uint64_t Missing(uint64_t bytes) const {
    struct stat file;
    struct statvfs disk;
    if (::fstat(fd_, &file) != 0 || ::fstatvfs(fd_, &disk) != 0) return 0;
    const uint64_t room =
        static_cast<uint64_t>(file.st_blocks) * kStatBlockBytes + uint64_t{disk.f_bavail} * disk.f_frsize;
    return bytes - std::min(bytes, room);
  }

  // 0 or an errno. posix_fallocate writes a byte per block where the file system cannot allocate, which a direct file
  // refuses.
  int AllocateByWriting(uint64_t bytes) {
    const int flags = ::fcntl(fd_, F_GETFL);
    if (flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_DIRECT) != 0) return errno;
    int error = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
    while (error == EINTR) error = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
    return ::fcntl(fd_, F_SETFL, flags) == 0 ? error : errno;
  }

  const int fd_;
  const std::string path_;
};

int FlagsOf(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead: return O_RDONLY;
    case OpenMode::kReadWrite: return O_RDWR;
    case OpenMode::kCreate:
    case OpenMode::kCreatePublic: break;
  }
  return O_RDWR | O_CREAT | O_EXCL;
}

class RealFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    return OpenWith(path, mode, 0);
  }

  Result<std::unique_ptr<File>> OpenDirect(const std::string& path, OpenMode mode) override {
    return OpenWith(path, mode, O_DIRECT);
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return OkStatus();
    return Failed(fmt::format("rename {} to", from), to, errno);
  }

  Status Remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) return OkStatus();
    return Failed("remove", path, errno);
  }

  Status MakeFolder(const std::string& path) override {
    if (::mkdir(path.c_str(), 0700) == 0) return OkStatus();
    const int error = errno;
    struct stat info;
    if (error == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return OkStatus();
    return Failed("make the folder", path, error);
  }

  Result<std::vector<std::string>> List(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      std::error_code gone;  // an entry that disappears meanwhile is not a regular file
      if (std::filesystem::is_regular_file(at->symlink_status(gone))) names.push_back(at->path().filename().string());
    }
    if (error) return Failed("list", folder, error.value());
    std::ranges::sort(names);
    return names;
  }

  Status SyncFolder(const std::string& folder) override {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return Failed("open", folder, errno);
    // EINVAL: the file system has no such operation for folders.
    const bool done = Uninterrupted([&] { return ::fsync(fd); }) == 0 || errno == EINVAL;
    const int error = errno;
    ::close(fd);
    return done ? OkStatus() : Failed("sync", folder, error);
  }

  Result<DiskRoom> Room(const std::string& folder) override {
    struct statvfs info;
    if (Uninterrupted([&] { return ::statvfs(folder.c_str(), &info); }) != 0) {
      return Failed("ask for the room of", folder, errno);
    }
    return DiskRoom{uint64_t{info.f_blocks} * info.f_frsize, uint64_t{info.f_bavail} * info.f_frsize};
  }

  Result<uint64_t> Occupied(const std::string& path) override {
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) return Failed("stat", path, errno);
    return static_cast<uint64_t>(info.st_blocks) * kStatBlockBytes;
  }

 private:
  static Result<std::unique_ptr<File>> OpenWith(const std::string& path, OpenMode mode, int wished_flags) {
    // O_NONBLOCK: opening a pipe must not wait for its other end before we can refuse it.
    const mode_t access = mode == OpenMode::kCreatePublic ? 0644 : 0600;
    const int fd = Uninterrupted([&] { return ::open(path.c_str(), FlagsOf(mode) | O_CLOEXEC | O_NONBLOCK, access); });
    if (fd < 0 && (errno == EISDIR || errno == ENXIO)) return Invalid(fmt::format("{} is not a regular file", path));
    if (fd < 0) return Failed("open", path, errno);
    auto file = std::make_unique<DiskFile>(fd, path);
    struct stat info;
    if (::fstat(fd, &info) != 0) return Failed("stat", path, errno);
    if (!S_ISREG(info.st_mode)) return Invalid(fmt::format("{} is not a regular file", path));
    // Set afterwards: an open() that refuses O_DIRECT may have made the file already.
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0) return Failed("open", path, errno);
    if (wished_flags != 0) (void)::fcntl(fd, F_SETFL, flags | wished_flags);
    return std::unique_ptr<File>(std::move(file));
  }
};

}  // namespace

std::string FolderAbove(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::unique_ptr<FileSystem> DiskFileSystem() { return std::make_unique<RealFileSystem>(); }

}  // namespace cachalot
