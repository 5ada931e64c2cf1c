// Any bytes as a segment or as the deletion file of a folder: the tier opens, and what it then finds it reads or drops.
// The first byte chooses the file. Record headers are given checksums that agree, so that what is behind them is met.
// The bytes are also unpacked as a block.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "tier/block_packer.h"
#include "tier/disk_inspection.h"
#include "tier/disk_tier.h"

namespace cachalot::tier {
namespace {

// Files in memory: contents by path, nothing else.
class MemoryFiles final : public FileSystem {
 public:
  using Contents = std::shared_ptr<std::vector<std::byte>>;

  class MemoryFile final : public File {
   public:
    explicit MemoryFile(Contents contents) : contents_(std::move(contents)) {}
    Status ReadAt(uint64_t offset, std::span<std::byte> into) const override {
      if (offset > contents_->size() || contents_->size() - offset < into.size()) return Corrupt("end");
      if (!into.empty()) std::memcpy(into.data(), contents_->data() + offset, into.size());
      return OkStatus();
    }
    Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
      if (contents_->size() < offset + bytes.size()) contents_->resize(offset + bytes.size());
      if (!bytes.empty()) std::memcpy(contents_->data() + offset, bytes.data(), bytes.size());
      return OkStatus();
    }
    Status Truncate(uint64_t bytes) override {
      contents_->resize(bytes);
      return OkStatus();
    }
    Status Allocate(uint64_t bytes) override { return Truncate(bytes); }
    Status Sync() override { return OkStatus(); }
    Result<uint64_t> Size() const override { return uint64_t{contents_->size()}; }

   private:
    const Contents contents_;
  };

  void Set(const std::string& path, std::span<const std::byte> bytes) {
    files_[path] = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  }
  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    if (mode == OpenMode::kCreate) Set(path, {});
    const auto found = files_.find(path);
    if (found == files_.end()) return Unavailable("missing");
    return std::unique_ptr<File>(std::make_unique<MemoryFile>(found->second));
  }
  Result<std::unique_ptr<File>> OpenDirect(const std::string& path, OpenMode mode) override { return Open(path, mode); }
  Status Rename(const std::string& from, const std::string& to) override {
    const Contents contents = files_.at(from);
    files_.erase(from);
    files_[to] = contents;
    return OkStatus();
  }
  Status Remove(const std::string& path) override {
    files_.erase(path);
    return OkStatus();
  }
  Status MakeFolder(const std::string&) override { return OkStatus(); }
  Result<std::vector<std::string>> List(const std::string& folder) override {
    std::vector<std::string> names;
    for (const auto& [path, contents] : files_) names.push_back(path.substr(folder.size() + 1));
    return names;
  }
  Status SyncFolder(const std::string&) override { return OkStatus(); }
  Result<DiskRoom> Room(const std::string&) override { return DiskRoom{uint64_t{1} << 30, uint64_t{1} << 30}; }
  Result<uint64_t> Occupied(const std::string& path) override { return uint64_t{files_.at(path)->size()}; }

 private:
  std::map<std::string, Contents> files_;
};

void FixCrc(std::span<std::byte> bytes, uint64_t end) {
  if (bytes.size() < end + 4) return;
  const uint32_t crc = Crc32c(bytes.first(end));
  for (size_t i = 0; i < 4; ++i) bytes[end + i] = static_cast<std::byte>(crc >> (8 * i));
}

// A segment with the header that its name asks for, holding `bytes` as records, of its uuid.
std::vector<std::byte> SegmentOf(std::span<const std::byte> bytes, uint64_t first_sequence) {
  SegmentHeader header{};
  header.first_sequence = first_sequence;
  std::vector<std::byte> segment = EncodeSegmentHeader(header);
  segment.insert(segment.end(), bytes.begin(), bytes.end());
  segment.resize(ToPages(segment.size()));
  const std::span<std::byte> record = std::span(segment).subspan(kDiskPage);
  const Result<uint64_t> header_bytes = HeaderBytesAt(record);
  if (header_bytes.ok()) FixCrc(record, *header_bytes - 4);
  FixCrc(record, record.size() < 4 ? 0 : record.size() - 4);
  return segment;
}

void ReadAll(DiskTier& tier, std::span<const std::byte> bytes) {
  const Result<RecordHeader> record = DecodeRecordHeader(bytes);
  if (!record.ok()) return;
  KvRun run{record->identity, record->parent, record->first_position, {}, record->tokens};
  for (const RecordBlock& block : record->blocks) run.blocks.push_back({block.key, block.tokens, block.groups});
  uint64_t raw_bytes = 0;
  for (const RecordBlock& block : record->blocks) raw_bytes += block.bytes;
  if (raw_bytes > (1 << 20)) return;
  std::vector<std::byte> into(raw_bytes);
  const Result<std::vector<ReadOutcome>> outcomes = tier.Read(run, into);
  if (!outcomes.ok()) return;
  for (size_t i = 0; i < outcomes->size(); ++i) {
    if (outcomes->at(i) == ReadOutcome::kRead) CACHALOT_CHECK(tier.Find(run.blocks[i].key).has_value());
  }
}

void Decode(std::span<const std::byte> bytes) {
  (void)DecodeSegmentHeader(bytes);
  if (const Result<RecordHeader> record = DecodeRecordHeader(bytes); record.ok()) {
    CACHALOT_CHECK(DecodeRecordHeader(EncodeRecordHeader(*record)).value() == *record);
  }
  std::array<std::byte, 256> block;
  (void)BlockPacker().Unpack(bytes, block);
  if (bytes.size() < kDiskPage) return;
  const Result<FooterTrailer> trailer = DecodeTrailer(bytes, bytes.size() + kDiskPage);
  if (trailer.ok() && trailer->body_bytes <= bytes.size()) {
    (void)DecodeFooterBody(*trailer, bytes.first(trailer->body_bytes));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data + 1, size - 1));
  Decode(bytes);
  MemoryFiles files;
  ManualClock clock;
  DiskTierOptions options{.folder = "/disk", .limit_bytes = 2 << 20, .lock = false, .entropy = [] { return 7; }};
  CACHALOT_CHECK(DiskTier::Open(files, clock, options).ok());  // makes the deletion file
  const bool sealed = data[0] % 2 == 0;
  switch (data[0] / 2 % 3) {
    case 0: files.Set("/disk/" + SegmentName(1, sealed), bytes); break;
    case 1: files.Set("/disk/" + SegmentName(1, sealed), SegmentOf(bytes, 1)); break;
    case 2: files.Set(std::string("/disk/") + kDeletionFile, bytes); break;
  }
  CACHALOT_CHECK(InspectFolder(files, "/disk", true).ok());
  const Result<std::unique_ptr<DiskTier>> tier = DiskTier::Open(files, clock, options);
  if (!tier.ok()) {
    CACHALOT_CHECK(tier.status().code() == Code::kInvalid);  // of a newer version
    return 0;
  }
  ReadAll(**tier, bytes);
  CACHALOT_CHECK((*tier)->Seal().ok());
  return 0;
}

}  // namespace cachalot::tier
