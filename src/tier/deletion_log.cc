#include "tier/deletion_log.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "tier/byte_fields.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kMagic = 0x314c4544'4c414343;  // "CCALDEL1"
constexpr uint64_t kPageKeys = 100;
constexpr uint64_t kTwinBytes = 2 * kDiskPage;

using Entry = std::pair<Digest, uint64_t>;

struct Page {
  uint32_t opening = 0;
  std::vector<Entry> entries;
};

// A page and its twin.
void AppendPage(std::vector<std::byte>& out, uint64_t number, uint32_t opening, std::span<const Entry> entries) {
  std::vector<std::byte> page;
  FieldWriter w(page);
  w.U64(kMagic);
  w.U32(kDiskFormatVersion);
  w.U32(opening);
  w.U64(number);
  w.U32(static_cast<uint32_t>(entries.size()));
  for (const auto& [key, sequence] : entries) {
    w.Bytes(key);
    w.U64(sequence);
  }
  page.resize(kDiskPage - 4);
  w.U32(Crc32c(page));
  out.insert(out.end(), page.begin(), page.end());
  out.insert(out.end(), page.begin(), page.end());
}

std::vector<std::byte> PagesOf(uint64_t first_number, uint32_t opening, std::span<const Entry> entries) {
  std::vector<std::byte> out;
  do {
    const auto count = std::min<size_t>(entries.size(), kPageKeys);
    AppendPage(out, first_number++, opening, entries.first(count));
    entries = entries.subspan(count);
  } while (!entries.empty());
  return out;
}

Result<Page> DecodePage(std::span<const std::byte> bytes, uint64_t number) {
  FieldReader in(bytes);
  const Status damaged = Corrupt(fmt::format("page {} is damaged", number));
  if (in.U64() != kMagic || Crc32c(bytes.first(kDiskPage - 4)) != FieldReader(bytes.last(4)).U32()) return damaged;
  if (const uint32_t version = in.U32(); version > kDiskFormatVersion) {
    return Invalid(fmt::format("it is of version {}; this program reads up to {}", version, kDiskFormatVersion));
  }
  Page page;
  page.opening = in.U32();
  if (in.U64() != number) return damaged;
  const uint32_t entries = in.U32();
  if (entries > kPageKeys) return damaged;
  for (uint32_t i = 0; i < entries; ++i) {
    const Digest key = in.Bytes<32>();
    page.entries.emplace_back(key, in.U64());
  }
  return page;
}

// Either twin, if one is good.
Result<Page> DecodeTwins(std::span<const std::byte> contents, uint64_t number) {
  Result<Page> page = Corrupt(fmt::format("page {} is missing", number));
  for (uint64_t offset = number * kTwinBytes; offset < (number + 1) * kTwinBytes && !page.ok(); offset += kDiskPage) {
    if (offset + kDiskPage <= contents.size()) page = DecodePage(contents.subspan(offset, kDiskPage), number);
  }
  return page;
}

Result<LoadedDeletions> Decode(std::span<const std::byte> contents) {
  LoadedDeletions loaded;
  const uint64_t pages = (contents.size() + kTwinBytes - 1) / kTwinBytes;
  bool ended = false;  // what a crash cut off was never acknowledged, and nothing good follows it
  for (uint64_t number = 0; number < std::max<uint64_t>(pages, 1); ++number) {
    const Result<Page> page = DecodeTwins(contents, number);
    if (!page.ok() && (number == 0 || page.status().code() == Code::kInvalid)) return page.status();
    ended = ended || !page.ok();
    if (!page.ok()) continue;
    if (ended) return Corrupt(fmt::format("a page before page {} is damaged", number));
    loaded.opening = page->opening;
    for (const auto& [key, sequence] : page->entries) {
      uint64_t& at = loaded.deleted[key];
      at = std::max(at, sequence);
    }
  }
  return loaded;
}

}  // namespace

Result<LoadedDeletions> LoadDeletions(FileSystem& files, const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, kDeletionFile);
  CACHALOT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files.Open(path, OpenMode::kRead));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
  if (bytes > kMaxDeletionLogBytes) return Corrupt(fmt::format("{}: {} bytes are too many", path, bytes));
  std::vector<std::byte> contents(bytes);
  CACHALOT_RETURN_IF_ERROR(file->ReadAt(0, contents));
  Result<LoadedDeletions> loaded = Decode(contents);
  if (!loaded.ok()) return loaded.status().Annotate(path);
  return loaded;
}

uint64_t DeletionLog::SequenceOf(const Digest& key) const {
  const auto found = state_.deleted.find(key);
  return found == state_.deleted.end() ? 0 : found->second;
}

void DeletionLog::Add(std::span<const Digest> keys, uint64_t sequence) {
  for (const Digest& key : keys) {
    state_.deleted[key] = sequence;
    unstored_.emplace_back(key, sequence);
  }
}

void DeletionLog::KeepOnly(const std::unordered_set<Digest, DigestHash>& needed) {
  std::erase_if(state_.deleted, [&](const auto& entry) { return !needed.contains(entry.first); });
}

bool DeletionLog::Fits() const { return (size() / kPageKeys + 1) * kTwinBytes <= limit_bytes_; }

Status DeletionLog::Store() {
  if (!unstored()) return OkStatus();
  const uint64_t pages_after = pages_ + (unstored_.size() + kPageKeys - 1) / kPageKeys;
  const uint64_t pages_needed = size() / kPageKeys + 1;
  const bool wasteful = pages_after > 2 * pages_needed + 16 || pages_after * kTwinBytes > limit_bytes_;
  const Status status = rewrite_ || wasteful ? Rewrite() : Append();
  rewrite_ = !status.ok();
  if (status.ok()) unstored_.clear();
  return status;
}

Status DeletionLog::Append() {
  const std::vector<std::byte> bytes = PagesOf(pages_, state_.opening, unstored_);
  CACHALOT_RETURN_IF_ERROR(file_->WriteAt(pages_ * kTwinBytes, bytes));
  CACHALOT_RETURN_IF_ERROR(file_->Sync());
  pages_ += bytes.size() / kTwinBytes;
  return OkStatus();
}

Status DeletionLog::Rewrite() {
  const std::string path = fmt::format("{}/{}", folder_, kDeletionFile);
  const std::string written = fmt::format("{}/{}", folder_, kNewDeletionFile);
  std::vector<Entry> entries(state_.deleted.begin(), state_.deleted.end());
  std::ranges::sort(entries);
  const std::vector<std::byte> bytes = PagesOf(0, state_.opening, entries);
  CACHALOT_RETURN_IF_ERROR(files_.Remove(written));
  CACHALOT_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Open(written, OpenMode::kCreate));
  CACHALOT_RETURN_IF_ERROR(file->WriteAt(0, bytes));
  CACHALOT_RETURN_IF_ERROR(file->Sync());
  CACHALOT_RETURN_IF_ERROR(files_.Rename(written, path));
  file_ = std::move(file);
  pages_ = bytes.size() / kTwinBytes;
  return files_.SyncFolder(folder_);
}

}  // namespace cachalot::tier
