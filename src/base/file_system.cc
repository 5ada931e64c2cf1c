#include "base/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace cachalot {
namespace {

constexpr uint64_t kStatBlockBytes = 512;  // of st_blocks, whatever the file system's blocks are
constexpr size_t kMostParts = IOV_MAX;     // of one operation

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

// How a file uses rings: for reads of so many places or more. No pool: never.
struct RingUse {
  std::shared_ptr<RingPool> pool;
  size_t least_places = 2;
};

// Ranges that follow each other are one place. `parts` has room for all.
std::vector<PlaceRead> PlacesOf(std::span<const FileRange> ranges, std::vector<iovec>* parts) {
  std::vector<PlaceRead> places;
  uint64_t end = 0;  // of the last place
  for (const FileRange& range : ranges) {
    if (range.into.empty()) continue;
    parts->push_back({range.into.data(), range.into.size()});
    if (!places.empty() && range.offset == end && places.back().into.size() < kMostParts) {
      places.back().into = {places.back().into.data(), places.back().into.size() + 1};
    } else {
      places.push_back({range.offset, std::span(&parts->back(), 1)});
    }
    end = range.offset + range.into.size();
  }
  return places;
}

class DiskFile final : public File {
 public:
  DiskFile(int fd, std::string path, RingUse rings) : fd_(fd), path_(std::move(path)), rings_(std::move(rings)) {}
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

  Status ReadAt(std::span<const FileRange> ranges) const override {
    std::vector<iovec> parts;
    parts.reserve(ranges.size());  // places point into it
    std::vector<PlaceRead> places = PlacesOf(ranges, &parts);
    if (rings_.pool != nullptr && places.size() >= rings_.least_places) rings_.pool->Read(fd_, places);
    for (const PlaceRead& place : places) CACHALOT_RETURN_IF_ERROR(Finish(place));
    return OkStatus();
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
  // What is missing of it, or the reason, is for plain reads.
  Status Finish(const PlaceRead& place) const {
    uint64_t offset = place.offset, got = place.read_bytes;
    if (got == 0) {
      const int parts = static_cast<int>(place.into.size());
      const ssize_t n =
          Uninterrupted([&] { return ::preadv(fd_, place.into.data(), parts, static_cast<off_t>(offset)); });
      got = static_cast<uint64_t>(std::max<ssize_t>(n, 0));
    }
    for (const iovec& part : place.into) {
      const std::span<std::byte> into(static_cast<std::byte*>(part.iov_base), part.iov_len);
      const size_t there = std::min(got, into.size());
      CACHALOT_RETURN_IF_ERROR(ReadAt(offset + there, into.subspan(there)));
      offset += into.size();
      got -= there;
    }
    return OkStatus();
  }

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
  const RingUse rings_;
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
  RealFileSystem(RingUse rings, std::string reads_by) : rings_(std::move(rings)), reads_by_(std::move(reads_by)) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    return OpenWith(path, mode, 0, {});
  }

  Result<std::unique_ptr<File>> OpenDirect(const std::string& path, OpenMode mode) override {
    return OpenWith(path, mode, O_DIRECT, rings_);
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

  std::string ReadsBy() const override { return reads_by_; }

 private:
  static Result<std::unique_ptr<File>> OpenWith(const std::string& path, OpenMode mode, int wished_flags,
                                                RingUse rings) {
    // O_NONBLOCK: opening a pipe must not wait for its other end before we can refuse it.
    const mode_t access = mode == OpenMode::kCreatePublic ? 0644 : 0600;
    const int fd = Uninterrupted([&] { return ::open(path.c_str(), FlagsOf(mode) | O_CLOEXEC | O_NONBLOCK, access); });
    if (fd < 0 && (errno == EISDIR || errno == ENXIO)) return Invalid(fmt::format("{} is not a regular file", path));
    if (fd < 0) return Failed("open", path, errno);
    auto file = std::make_unique<DiskFile>(fd, path, std::move(rings));
    struct stat info;
    if (::fstat(fd, &info) != 0) return Failed("stat", path, errno);
    if (!S_ISREG(info.st_mode)) return Invalid(fmt::format("{} is not a regular file", path));
    // Set afterwards: an open() that refuses O_DIRECT may have made the file already. With O_NONBLOCK io_uring gives
    // up reads for which the disk's queue has no room at once.
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) return Failed("open", path, errno);
    if (wished_flags != 0) (void)::fcntl(fd, F_SETFL, (flags & ~O_NONBLOCK) | wished_flags);
    return std::unique_ptr<File>(std::move(file));
  }

  const RingUse rings_;
  const std::string reads_by_;
};

}  // namespace

std::string FolderAbove(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::unique_ptr<FileSystem> DiskFileSystem() { return std::make_unique<RealFileSystem>(RingUse{}, "pread"); }

Result<std::unique_ptr<FileSystem>> DiskFileSystemBy(DiskIo io, const RingOptions& rings) {
  if (io == DiskIo::kPread) return DiskFileSystem();
  auto pool = std::make_shared<RingPool>(rings.make, rings.most);
  const Status works = pool->status();
  if (!works.ok() && io == DiskIo::kIoUring) return works.Annotate("io_uring");
  std::unique_ptr<FileSystem> files;
  if (works.ok()) {
    const size_t least_places = io == DiskIo::kIoUring ? 1 : 2;
    files = std::make_unique<RealFileSystem>(RingUse{std::move(pool), least_places}, "io_uring");
  } else {
    files = std::make_unique<RealFileSystem>(RingUse{}, fmt::format("pread (io_uring: {})", works.message()));
  }
  return files;
}

}  // namespace cachalot
