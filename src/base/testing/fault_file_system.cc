#include "base/testing/fault_file_system.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/mutex.h"
#include "base/random.h"

namespace cachalot {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kFileBytesLimit = uint64_t{1} << 32;  // sparse files are not sparse here

using Bytes = std::vector<std::byte>;

uint64_t PagesOf(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }

// A change of contents: bytes written at `offset`, or the size set to it.
struct Change {
  bool resizes = false;
  uint64_t offset = 0;
  Bytes bytes;
};

void Apply(const Change& change, Bytes& contents) {
  const uint64_t end = change.offset + change.bytes.size();
  if (change.resizes || contents.size() < end) contents.resize(end);
  std::ranges::copy(change.bytes, contents.begin() + static_cast<ptrdiff_t>(change.offset));
}

struct Node {
  bool is_folder = false;
  Bytes written;
  Bytes on_disk;
  std::vector<Change> unsynced;
  std::set<uint64_t> pages;  // that the file occupies
};

using NodePtr = std::shared_ptr<Node>;
using Names = std::map<std::string, NodePtr>;

// A change of names: `gone`, if any, no longer names `node`; `made`, if any, does.
struct NameChange {
  std::string gone;
  std::string made;
  NodePtr node;
};

void Apply(const NameChange& change, Names& names) {
  const auto found = names.find(change.gone);
  if (found != names.end() && found->second == change.node) names.erase(found);
  if (!change.made.empty()) names[change.made] = change.node;
}

std::string Tidy(const std::string& path) {
  std::string tidy = path;
  while (tidy.size() > 1 && tidy.back() == '/') tidy.pop_back();
  return tidy;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

bool IsRoot(const std::string& folder) { return folder.empty() || folder == "." || folder == "/"; }

bool FolderExists(const Names& names, const std::string& folder) {
  const auto found = names.find(folder);
  return IsRoot(folder) || (found != names.end() && found->second->is_folder);
}

Bytes ContentsAfterCrash(const Node& node, Unsynced unsynced, SplitMix64& choices) {
  if (unsynced == Unsynced::kKept) return node.written;
  Bytes contents = node.on_disk;
  if (unsynced == Unsynced::kLost) return contents;
  for (Change change : node.unsynced) {
    const uint64_t fate = choices.Below(3);
    if (fate == 0) continue;
    if (fate == 1 && !change.resizes) change.bytes.resize(choices.Below(change.bytes.size() + 1));
    Apply(change, contents);
  }
  return contents;
}

Names NamesAfterCrash(Names names, const std::vector<NameChange>& unsynced, SplitMix64& choices) {
  // Half the time changes reach the disk in order, as with a journal; else each by itself.
  const bool in_order = choices.Below(2) == 0;
  const uint64_t first = choices.Below(unsynced.size() + 1);
  for (size_t i = 0; i < unsynced.size(); ++i) {
    if (in_order ? i < first : choices.Below(2) == 0) Apply(unsynced[i], names);
  }
  // A folder sorts before what is in it.
  std::erase_if(names, [&](const auto& entry) { return !FolderExists(names, FolderOf(entry.first)); });
  return names;
}

}  // namespace

uint64_t FileCounts::Of(FileOp op) const {
  if (op == FileOp::kAny) return std::accumulate(operations.begin(), operations.end(), uint64_t{0});
  return operations[static_cast<size_t>(op)];
}

struct FaultFileSystem::Disk {
  mutable Mutex mutex;
  Names written CACHALOT_GUARDED_BY(mutex);
  Names on_disk CACHALOT_GUARDED_BY(mutex);
  std::vector<NameChange> unsynced CACHALOT_GUARDED_BY(mutex);
  std::vector<FileFault> faults CACHALOT_GUARDED_BY(mutex);  // `nth` counts down
  FileCounts counts CACHALOT_GUARDED_BY(mutex);
  uint64_t total_bytes CACHALOT_GUARDED_BY(mutex) = uint64_t{1} << 30;

  // Counts the operation; an error when a fault hits it.
  Status Begin(FileOp op, const std::string& path) CACHALOT_REQUIRES(mutex) {
    ++counts.operations[static_cast<size_t>(op)];
    Status status;
    for (FileFault& fault : faults) {
      if (fault.op != op && fault.op != FileOp::kAny) continue;
      if (fault.nth == 1) status = Status(fault.code, fmt::format("cannot use {}: injected fault", path));
      if (fault.nth > 1 || !fault.onwards) fault.nth -= std::min<uint64_t>(fault.nth, 1);
    }
    return status;
  }

  NodePtr Find(const std::string& path) const CACHALOT_REQUIRES(mutex) {
    const auto found = written.find(path);
    return found == written.end() ? nullptr : found->second;
  }

  void Record(NameChange change) CACHALOT_REQUIRES(mutex) {
    Apply(change, written);
    unsynced.push_back(std::move(change));
  }

  uint64_t FreePages() const CACHALOT_REQUIRES(mutex) {
    uint64_t used = 0;
    for (const auto& [path, node] : written) used += node->pages.size();
    return total_bytes / kPageBytes - std::min(used, total_bytes / kPageBytes);
  }

  // Bytes of [begin, end) from its beginning for which there is room; they are taken.
  uint64_t Occupy(Node& node, uint64_t begin, uint64_t end) CACHALOT_REQUIRES(mutex) {
    uint64_t free_pages = FreePages();
    for (uint64_t page = begin / kPageBytes; page < PagesOf(end); ++page) {
      if (node.pages.contains(page)) continue;
      if (free_pages == 0) return page * kPageBytes - std::min(begin, page * kPageBytes);
      --free_pages;
      node.pages.insert(page);
    }
    return end - begin;
  }
};

class FaultFileSystem::OpenFile final : public File {
 public:
  struct Access {
    bool writes = false;
    bool direct = false;
  };

  OpenFile(std::shared_ptr<Disk> disk, NodePtr node, std::string path, Access access)
      : disk_(std::move(disk)), node_(std::move(node)), path_(std::move(path)), access_(access) {}

  Status ReadAt(uint64_t offset, std::span<std::byte> into) const override {
    const MutexLock lock(disk_->mutex);
    CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kRead, path_));
    CACHALOT_RETURN_IF_ERROR(CheckAligned(offset, into));
    const Bytes& contents = node_->written;
    if (offset > contents.size() || contents.size() - offset < into.size()) {
      return Corrupt(fmt::format("{} ends before byte {}", path_, offset + into.size()));
    }
    disk_->counts.bytes_read += into.size();
    std::copy_n(contents.begin() + static_cast<ptrdiff_t>(offset), into.size(), into.begin());
    return OkStatus();
  }

  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
    const MutexLock lock(disk_->mutex);
    CACHALOT_RETURN_IF_ERROR(CheckWritable());
    CACHALOT_RETURN_IF_ERROR(CheckAligned(offset, bytes));
    CACHALOT_RETURN_IF_ERROR(CheckSize(offset, bytes.size()));
    Status status = disk_->Begin(FileOp::kWrite, path_);
    if (!status.ok()) {
      SplitMix64 choices(disk_->counts.Of(FileOp::kWrite));
      bytes = bytes.first(choices.Below(bytes.size() + 1));
    }
    const uint64_t fitting = disk_->Occupy(*node_, offset, offset + bytes.size());
    if (fitting < bytes.size()) status = Overloaded(fmt::format("cannot write {}: the disk is full", path_));
    disk_->counts.bytes_written += fitting;
    if (fitting > 0) Record({false, offset, Bytes(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(fitting))});
    return status;
  }

  Status Truncate(uint64_t bytes) override {
    const MutexLock lock(disk_->mutex);
    CACHALOT_RETURN_IF_ERROR(CheckWritable());
    CACHALOT_RETURN_IF_ERROR(CheckSize(bytes, 0));
    CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kTruncate, path_));
    Resize(bytes);
    return OkStatus();
  }

  Status Allocate(uint64_t bytes) override {
    const MutexLock lock(disk_->mutex);
    CACHALOT_RETURN_IF_ERROR(CheckWritable());
    CACHALOT_RETURN_IF_ERROR(CheckSize(bytes, 0));
    CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kAllocate, path_));
    if (disk_->Occupy(*node_, 0, bytes) < bytes) {
      return Overloaded(fmt::format("cannot allocate {} bytes for {}: the disk is full", bytes, path_));
    }
    Resize(bytes);
    return OkStatus();
  }

  Status Sync() override {
    const MutexLock lock(disk_->mutex);
    const Status status = disk_->Begin(FileOp::kSync, path_);
    if (!status.ok()) {
      SplitMix64 choices(disk_->counts.Of(FileOp::kSync));
      std::erase_if(node_->unsynced, [&](const Change&) { return choices.Below(2) == 0; });
      return status;
    }
    for (const Change& change : node_->unsynced) Apply(change, node_->on_disk);
    node_->unsynced.clear();
    const auto is_this = [this](const auto& name) { return name.second == node_; };
    return std::ranges::any_of(disk_->written, is_this) ? OkStatus() : Unavailable(path_ + " has been removed");
  }

  Result<uint64_t> Size() const override {
    const MutexLock lock(disk_->mutex);
    CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kSize, path_));
    return uint64_t{node_->written.size()};
  }

 private:
  Status CheckWritable() const {
    return access_.writes ? OkStatus() : Unavailable(fmt::format("cannot change {}: opened for reading", path_));
  }

  Status CheckSize(uint64_t offset, uint64_t bytes) const {
    if (bytes <= kFileBytesLimit && offset <= kFileBytesLimit - bytes) return OkStatus();
    return Unavailable(fmt::format("cannot change {}: file too large", path_));
  }

  Status CheckAligned(uint64_t offset, std::span<const std::byte> bytes) const {
    const bool aligned = (offset | bytes.size() | reinterpret_cast<uintptr_t>(bytes.data())) % kPageBytes == 0;
    return aligned || !access_.direct ? OkStatus() : Internal(fmt::format("unaligned direct access to {}", path_));
  }

  void Record(Change change) {
    Apply(change, node_->written);
    node_->unsynced.push_back(std::move(change));
  }

  void Resize(uint64_t bytes) {
    Record({true, bytes, {}});
    node_->pages.erase(node_->pages.lower_bound(PagesOf(bytes)), node_->pages.end());
  }

  const std::shared_ptr<Disk> disk_;
  const NodePtr node_;
  const std::string path_;
  const Access access_;
};

FaultFileSystem::FaultFileSystem() : disk_(std::make_shared<Disk>()) {}

std::unique_ptr<FaultFileSystem> FaultFileSystem::AfterCrash(Unsynced unsynced, uint64_t seed) const {
  auto after = std::make_unique<FaultFileSystem>();
  const MutexLock lock(disk_->mutex);
  const MutexLock lock_after(after->disk_->mutex);
  SplitMix64 choices(seed);
  Names left = unsynced == Unsynced::kKept ? disk_->written : disk_->on_disk;
  if (unsynced == Unsynced::kMixed) left = NamesAfterCrash(std::move(left), disk_->unsynced, choices);
  for (const auto& [path, node] : left) {
    Bytes contents = ContentsAfterCrash(*node, unsynced, choices);
    std::set<uint64_t> pages;
    for (const uint64_t page : node->pages) {
      if (page < PagesOf(contents.size())) pages.insert(page);
    }
    after->disk_->written[path] =
        std::make_shared<Node>(Node{node->is_folder, contents, std::move(contents), {}, std::move(pages)});
  }
  after->disk_->on_disk = after->disk_->written;
  after->disk_->total_bytes = disk_->total_bytes;
  return after;
}

void FaultFileSystem::Fail(FileFault fault) {
  CACHALOT_CHECK(fault.nth > 0);
  const MutexLock lock(disk_->mutex);
  disk_->faults.push_back(fault);
}

void FaultFileSystem::Heal() {
  const MutexLock lock(disk_->mutex);
  disk_->faults.clear();
}

void FaultFileSystem::SetTotalBytes(uint64_t bytes) {
  const MutexLock lock(disk_->mutex);
  disk_->total_bytes = bytes;
}

void FaultFileSystem::FlipBit(const std::string& path, uint64_t bit) {
  Bytes contents = Contents(path);
  contents.at(bit / 8) ^= static_cast<std::byte>(1U << (bit % 8));
  SetContents(path, contents);
}

void FaultFileSystem::Cut(const std::string& path, uint64_t bytes) {
  Bytes contents = Contents(path);
  contents.resize(std::min<uint64_t>(bytes, contents.size()));
  SetContents(path, contents);
}

void FaultFileSystem::SetContents(const std::string& path, std::span<const std::byte> bytes) {
  const MutexLock lock(disk_->mutex);
  NodePtr node = disk_->Find(path);
  if (node == nullptr) node = std::make_shared<Node>();
  disk_->written[path] = disk_->on_disk[path] = node;
  node->written = node->on_disk = Bytes(bytes.begin(), bytes.end());
  node->unsynced.clear();
  node->pages.clear();
  for (uint64_t page = 0; page < PagesOf(bytes.size()); ++page) node->pages.insert(page);
}

std::vector<std::byte> FaultFileSystem::Contents(const std::string& path) const {
  const MutexLock lock(disk_->mutex);
  const NodePtr node = disk_->Find(path);
  CACHALOT_CHECK(node != nullptr);
  return node->written;
}

FileCounts FaultFileSystem::counts() const {
  const MutexLock lock(disk_->mutex);
  return disk_->counts;
}

namespace {

Status Missing(const std::string& path) { return Unavailable(fmt::format("{} does not exist", path)); }

}  // namespace

Result<std::unique_ptr<File>> FaultFileSystem::Open(const std::string& path, OpenMode mode) {
  return OpenAs(path, mode, /*direct=*/false);
}

Result<std::unique_ptr<File>> FaultFileSystem::OpenDirect(const std::string& path, OpenMode mode) {
  return OpenAs(path, mode, /*direct=*/true);
}

Result<std::unique_ptr<File>> FaultFileSystem::OpenAs(const std::string& path, OpenMode mode, bool direct) {
  const MutexLock lock(disk_->mutex);
  CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kOpen, path));
  NodePtr node = disk_->Find(path);
  if (FolderExists(disk_->written, path)) return Invalid(fmt::format("{} is not a regular file", path));
  if (mode == OpenMode::kCreate) {
    if (node != nullptr) return Unavailable(fmt::format("{} exists", path));
    if (!FolderExists(disk_->written, FolderOf(path))) return Missing(FolderOf(path));
    node = std::make_shared<Node>();
    disk_->Record({"", path, node});
  }
  if (node == nullptr) return Missing(path);
  const OpenFile::Access access{mode != OpenMode::kRead, direct};
  return std::unique_ptr<File>(std::make_unique<OpenFile>(disk_, std::move(node), path, access));
}

Status FaultFileSystem::Rename(const std::string& from, const std::string& to) {
  const MutexLock lock(disk_->mutex);
  CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kRename, from));
  const NodePtr node = disk_->Find(from);
  if (node == nullptr) return Missing(from);
  if (!FolderExists(disk_->written, FolderOf(to))) return Missing(FolderOf(to));
  if (node->is_folder || FolderExists(disk_->written, to)) return Unavailable(fmt::format("{} is a folder", to));
  if (from != to) disk_->Record({from, to, node});
  return OkStatus();
}

Status FaultFileSystem::Remove(const std::string& path) {
  const MutexLock lock(disk_->mutex);
  CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kRemove, path));
  if (FolderExists(disk_->written, path)) return Unavailable(fmt::format("{} is a folder", path));
  if (const NodePtr node = disk_->Find(path); node != nullptr) disk_->Record({path, "", node});
  return OkStatus();
}

Status FaultFileSystem::MakeFolder(const std::string& path) {
  const std::string folder = Tidy(path);
  const MutexLock lock(disk_->mutex);
  CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kMakeFolder, folder));
  if (FolderExists(disk_->written, folder)) return OkStatus();
  if (disk_->Find(folder) != nullptr) return Unavailable(fmt::format("{} is a file", folder));
  if (!FolderExists(disk_->written, FolderOf(folder))) return Missing(FolderOf(folder));
  auto node = std::make_shared<Node>();
  node->is_folder = true;
  disk_->Record({"", folder, std::move(node)});
  return OkStatus();
}

Result<std::vector<std::string>> FaultFileSystem::List(const std::string& folder) {
  const std::string wanted = Tidy(folder);
  const MutexLock lock(disk_->mutex);
  CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kList, wanted));
  if (!FolderExists(disk_->written, wanted)) return Missing(wanted);
  std::vector<std::string> names;
  for (const auto& [path, node] : disk_->written) {
    const bool inside = FolderOf(path) == wanted || (IsRoot(wanted) && wanted != "/" && FolderOf(path) == ".");
    if (inside && !node->is_folder) names.push_back(path.substr(path.rfind('/') + 1));
  }
  std::ranges::sort(names);
  return names;
}

Status FaultFileSystem::SyncFolder(const std::string& folder) {
  const std::string synced = Tidy(folder);
  const MutexLock lock(disk_->mutex);
  CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kSyncFolder, synced));
  if (!FolderExists(disk_->written, synced)) return Missing(synced);
  std::vector<NameChange> left;
  for (NameChange& change : disk_->unsynced) {
    if (FolderOf(change.made.empty() ? change.gone : change.made) != synced) {
      left.push_back(std::move(change));
    } else {
      Apply(change, disk_->on_disk);
    }
  }
  disk_->unsynced = std::move(left);
  return OkStatus();
}

Result<DiskRoom> FaultFileSystem::Room(const std::string& folder) {
  const MutexLock lock(disk_->mutex);
  CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kRoom, folder));
  if (!FolderExists(disk_->written, Tidy(folder))) return Missing(folder);
  return DiskRoom{disk_->total_bytes, disk_->FreePages() * kPageBytes};
}

Result<uint64_t> FaultFileSystem::Occupied(const std::string& path) {
  const MutexLock lock(disk_->mutex);
  CACHALOT_RETURN_IF_ERROR(disk_->Begin(FileOp::kOccupied, path));
  const NodePtr node = disk_->Find(path);
  if (node == nullptr) return Missing(path);
  return node->pages.size() * kPageBytes;
}

}  // namespace cachalot
