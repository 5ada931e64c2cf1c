#include "tier/file_session_archive.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace cachalot::tier {
namespace {

MacKey NewKey(const std::function<uint64_t()>& entropy) {
  MacKey key;
  for (size_t i = 0; i < key.size(); i += sizeof(uint64_t)) {
    const uint64_t bits = entropy();
    std::memcpy(key.data() + i, &bits, sizeof(bits));
  }
  return key;
}

// The file's; a new one where there is no file.
Result<MacKey> KeyIn(FileSystem& files, const std::string& path, const std::function<uint64_t()>& entropy) {
  MacKey key;
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(key));
  if (const auto file = files.Open(path, OpenMode::kRead); file.ok()) {
    CACHALOT_ASSIGN_OR_RETURN(const uint64_t size, (*file)->Size());
    if (size != key.size()) return Invalid(fmt::format("{}: {} bytes, expected a key of {}", path, size, key.size()));
    CACHALOT_RETURN_IF_ERROR((*file)->ReadAt(0, bytes));
    return key;
  }
  key = NewKey(entropy);
  const std::string temporary = path + ".tmp";
  CACHALOT_RETURN_IF_ERROR(files.Remove(temporary));
  CACHALOT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files.Open(temporary, OpenMode::kCreate));
  CACHALOT_RETURN_IF_ERROR(file->WriteAt(0, bytes));
  CACHALOT_RETURN_IF_ERROR(file->Sync());
  CACHALOT_RETURN_IF_ERROR(files.Rename(temporary, path));
  CACHALOT_RETURN_IF_ERROR(files.SyncFolder(FolderAbove(path)));
  return key;
}

}  // namespace

class FileSessionArchive::Job final : public TransferJob {
 public:
  explicit Job(std::function<Status(Ended&)> work) : work_(std::move(work)) {}
  Status Run(std::span<std::byte>, const std::atomic<bool>&) override { return work_(ended_); }
  Ended Take() { return std::move(ended_); }

 private:
  const std::function<Status(Ended&)> work_;
  Ended ended_;
};

Result<std::unique_ptr<FileSessionArchive>> FileSessionArchive::Open(FileSystem& files, Clock& clock,
                                                                     const FileSessionArchiveOptions& options) {
  return Open(files, clock, options, [&clock](std::function<void()> notify) {
    return MakeTransferEngine({}, {.limits = {.in_flight_bytes = {1, 1}}, .threads = 1, .notify = std::move(notify)},
                              clock);
  });
}

Result<std::unique_ptr<FileSessionArchive>> FileSessionArchive::Open(FileSystem& files, Clock&,
                                                                     const FileSessionArchiveOptions& options,
                                                                     const MakeTransfers& make_transfers) {
  CACHALOT_RETURN_IF_ERROR(files.MakeFolder(options.folder));
  (void)files.SyncFolder(FolderAbove(options.folder));  // where it cannot be opened, the folder was there before
  CACHALOT_ASSIGN_OR_RETURN(const MacKey key, KeyIn(files, options.key_file, options.entropy));
  std::unique_ptr<FileSessionArchive> archive(new FileSessionArchive(files, options, key));
  CACHALOT_ASSIGN_OR_RETURN(archive->transfers_, make_transfers(archive->listener_.notify()));
  return archive;
}

FileSessionArchive::~FileSessionArchive() = default;

Status FileSessionArchive::BeginSave(const std::string& name, const ArchiveHeader& header) {
  CACHALOT_RETURN_IF_ERROR(CheckArchiveName(name));
  if (std::exchange(open_, true)) return Overloaded("another session is being saved or restored");
  writer_ = std::make_unique<ArchiveWriter>(files_, folder_, key_, min_free_bytes_);
  Submit([this, name, header](Ended&) { return writer_->Begin(name, header); });
  return OkStatus();
}

Result<std::span<std::byte>> FileSessionArchive::PartRoom(uint64_t bytes) {
  CACHALOT_CHECK(!under_way_);
  part_.bytes.resize(bytes);
  return std::span(part_.bytes);
}

void FileSessionArchive::WritePart(std::vector<uint32_t> groups) {
  part_.groups = std::move(groups);
  Submit([this](Ended&) { return writer_->Append(part_); });
}

void FileSessionArchive::FinishSave() {
  Submit([this](Ended& ended) {
    ended.file_bytes = writer_->bytes();
    return writer_->Finish();
  });
}

Status FileSessionArchive::BeginRestore(const std::string& owner, const std::string& name) {
  CACHALOT_RETURN_IF_ERROR(CheckArchiveName(name));
  if (std::exchange(open_, true)) return Overloaded("another session is being saved or restored");
  Submit([this, owner, name](Ended& ended) -> Status {
    CACHALOT_ASSIGN_OR_RETURN(ArchiveReader reader, ArchiveReader::Open(files_, folder_, owner, name, key_));
    reader_ = std::make_unique<ArchiveReader>(std::move(reader));
    ended.file_bytes = reader_->file_bytes();
    CACHALOT_RETURN_IF_ERROR(reader_->CheckAll());
    ended.header = reader_->header();
    return OkStatus();
  });
  return OkStatus();
}

void FileSessionArchive::ReadPart() {
  Submit([this](Ended& ended) -> Status {
    CACHALOT_ASSIGN_OR_RETURN(part_, reader_->Next());
    ended.groups = part_.groups;
    ended.bytes = part_.bytes;
    return OkStatus();
  });
}

void FileSessionArchive::Close() {
  CACHALOT_CHECK(!under_way_);
  writer_.reset();
  reader_.reset();
  part_ = {};
  open_ = false;
}

void FileSessionArchive::Submit(std::function<Status(Ended&)> work) {
  CACHALOT_CHECK(!under_way_);
  const Result<TransferId> id = transfers_->Submit({.priority = TransferPriority::kWriteBack,
                                                    .link = TierId::kDisk,
                                                    .direction = Direction::kDown,
                                                    .job = std::make_unique<Job>(std::move(work))});
  CACHALOT_CHECK(id.ok());  // it is the only one
  under_way_ = true;
}

std::optional<SessionArchive::Ended> FileSessionArchive::Poll() {
  for (TransferCompletion& completion : transfers_->Poll()) {
    under_way_ = false;
    Ended ended = static_cast<Job&>(*completion.job).Take();
    ended.status = std::move(completion.status);
    if (!ended.status.ok()) ended.header.reset();
    return ended;
  }
  return std::nullopt;
}

void FileSessionArchive::OnEnd(std::function<void()> call) { listener_.Set(std::move(call)); }

}  // namespace cachalot::tier
