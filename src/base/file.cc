#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/file_system.h"

namespace cachalot {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

namespace {

std::string ErrnoText(int error) { return std::generic_category().message(error); }

Status OpenFailed(const std::string& path, int error) {
  return Unavailable(fmt::format("cannot open {}: {}", path, ErrnoText(error)));
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer before we can refuse it.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.ok()) return OpenFailed(path, errno);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return Unavailable(fmt::format("cannot stat {}: {}", path, ErrnoText(errno)));
  if (!S_ISREG(info.st_mode)) return Invalid(fmt::format("{} is not a regular file", path));
  const size_t file_bytes = static_cast<size_t>(info.st_size);
  if (file_bytes == 0) return MappedFile({});
  void* data = ::mmap(nullptr, file_bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return Unavailable(fmt::format("cannot map {}: {}", path, ErrnoText(errno)));
  return MappedFile({static_cast<const std::byte*>(data), file_bytes});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

namespace {

// madvise on what of `map` lies in the blocks of 2 MiB that `part` touches; a wish, so that failing is no error.
void Advise(std::span<const std::byte> map, std::span<const std::byte> part, int advice) {
  constexpr uintptr_t kBlockBytes = 2 << 20;  // a multiple of every page size
  if (part.empty()) return;
  const auto map_begin = reinterpret_cast<uintptr_t>(map.data());
  const auto part_begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t begin = std::max(part_begin / kBlockBytes * kBlockBytes, map_begin);
  const uintptr_t end = (part_begin + part.size() + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  ::madvise(reinterpret_cast<void*>(begin), std::min(end, map_begin + map.size()) - begin, advice);
}

}  // namespace

void MappedFile::Prefetch(std::span<const std::byte> part) const { Advise(bytes_, part, MADV_WILLNEED); }
void MappedFile::Release(std::span<const std::byte> part) const { Advise(bytes_, part, MADV_DONTNEED); }

InputStream::InputStream(std::string path, std::shared_ptr<const FileDescriptor> file)
    : path_(std::move(path)), file_(std::move(file)) {}

Result<InputStream> InputStream::Open(const std::string& path) {
  auto file = std::make_shared<const FileDescriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file->ok()) return OpenFailed(path, errno);
  return InputStream(path, std::move(file));
}

Result<bool> InputStream::Read(uint64_t most_bytes, std::string* bytes) {
  const size_t have = bytes->size();
  bytes->resize(have + most_bytes);
  ssize_t n = 0;
  do {
    n = ::read(file_->get(), bytes->data() + have, most_bytes);
  } while (n < 0 && errno == EINTR);
  const int error = errno;
  bytes->resize(have + static_cast<size_t>(std::max<ssize_t>(n, 0)));
  if (n < 0 && error == EISDIR) return Invalid(fmt::format("{} is a folder, expected a file", path_));
  if (n < 0) return Unavailable(fmt::format("cannot read {}: {}", path_, ErrnoText(error)));
  return n > 0;
}

Result<std::string> ReadFile(const std::string& path, uint64_t limit_bytes) {
  constexpr uint64_t kChunkBytes = 64 << 10;
  CACHALOT_ASSIGN_OR_RETURN(InputStream stream, InputStream::Open(path));
  std::string out;
  while (true) {
    CACHALOT_ASSIGN_OR_RETURN(const bool more, stream.Read(kChunkBytes, &out));
    if (out.size() > limit_bytes) return Invalid(fmt::format("{} is larger than {} bytes", path, limit_bytes));
    if (!more) return out;
  }
}

Result<AtomicFile> AtomicFile::Create(const std::string& path, FileAccess access) {
  AtomicFile out;
  out.path_ = path;
  struct stat there;
  if (::stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return Invalid(fmt::format("{} is a folder, expected a file", path));
    if (!S_ISREG(there.st_mode)) {
      out.stream_ = std::make_shared<const FileDescriptor>(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      if (!out.stream_->ok()) return OpenFailed(path, errno);
      return out;
    }
    std::error_code error;  // none: it is there
    out.path_ = std::filesystem::canonical(path, error).string();
    if (error) return OpenFailed(path, error.value());
  }
  static std::atomic<uint64_t> next{0};
  out.temporary_ = fmt::format("{}.tmp.{}.{}", out.path_, ::getpid(), next.fetch_add(1));
  const OpenMode mode = access == FileAccess::kOwnerOnly ? OpenMode::kCreate : OpenMode::kCreatePublic;
  CACHALOT_ASSIGN_OR_RETURN(out.file_, DiskFileSystem()->Open(out.temporary_, mode));
  return out;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept = default;

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(file_, other.file_);
  std::swap(stream_, other.stream_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) (void)DiskFileSystem()->Remove(temporary_);
}

Status AtomicFile::Append(std::span<const std::byte> bytes) {
  while (stream_ != nullptr && !bytes.empty()) {
    const ssize_t n = ::write(stream_->get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Unavailable(fmt::format("cannot write to {}: {}", path_, ErrnoText(errno)));
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  if (stream_ != nullptr) return OkStatus();
  CACHALOT_RETURN_IF_ERROR(file_->WriteAt(bytes_, bytes));
  bytes_ += bytes.size();
  return OkStatus();
}

Status AtomicFile::Commit() {
  if (stream_ != nullptr) return OkStatus();
  const std::unique_ptr<FileSystem> files = DiskFileSystem();
  CACHALOT_RETURN_IF_ERROR(file_->Sync());
  CACHALOT_RETURN_IF_ERROR(files->Rename(temporary_, path_));
  file_ = nullptr;
  return files->SyncFolder(FolderAbove(path_));
}

Status WriteFileAtomically(const std::string& path, std::string_view contents, FileAccess access) {
  CACHALOT_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, access));
  CACHALOT_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(contents))));
  return file.Commit();
}

std::string GetEnv(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

}  // namespace cachalot
