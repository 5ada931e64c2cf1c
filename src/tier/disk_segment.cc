#include "tier/disk_segment.h"

#include <algorithm>

#include "base/check.h"
#include "base/copy_bytes.h"

namespace cachalot::tier {
namespace {

// Direct files take aligned memory only.
Status WritePages(File& file, uint64_t offset, std::span<const std::byte> pages, AlignedBytes& staging) {
  const std::span<std::byte> aligned = staging.Resize(pages.size());
  CopyBytes(pages, aligned);
  return file.WriteAt(offset, aligned);
}

Result<uint64_t> WriteFooterBytes(File& file, uint64_t data_bytes, std::span<const std::byte> footer,
                                  AlignedBytes& staging) {
  CACHALOT_RETURN_IF_ERROR(WritePages(file, data_bytes, footer, staging));
  CACHALOT_RETURN_IF_ERROR(file.Truncate(data_bytes + footer.size()));
  return data_bytes + footer.size();
}

}  // namespace

uint64_t SegmentBytesFor(const RecordHeader& record) {
  return kDiskPage + RecordBytes(record) + FooterBytes(FooterEntryBytes(record));
}

Result<uint64_t> WriteFooter(File& file, const SegmentUuid& uuid, uint64_t data_bytes,
                             std::span<const FooterRecord> records) {
  std::vector<std::byte> body;
  for (const FooterRecord& record : records) {
    const std::vector<std::byte> entry = EncodeFooterRecord(record.offset, EncodeRecordHeader(record.header));
    body.insert(body.end(), entry.begin(), entry.end());
  }
  AlignedBytes staging;
  return WriteFooterBytes(file, data_bytes, EncodeFooter(uuid, data_bytes, static_cast<uint32_t>(records.size()), body),
                          staging);
}

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::Create(FileSystem& files, const std::string& path,
                                                             const SegmentHeader& header, uint64_t bytes) {
  CACHALOT_ASSIGN_OR_RETURN(std::shared_ptr<File> file, files.OpenDirect(path, OpenMode::kCreate));
  CACHALOT_RETURN_IF_ERROR(file->Allocate(bytes));
  std::unique_ptr<SegmentWriter> writer(new SegmentWriter(std::move(file), header, bytes));
  CACHALOT_RETURN_IF_ERROR(WritePages(*writer->file_, 0, EncodeSegmentHeader(header), writer->staging_));
  return writer;
}

bool SegmentWriter::Fits(const RecordHeader& record) const {
  const uint64_t footer = FooterBytes(footer_body_.size() + FooterEntryBytes(record));
  return end_ + RecordBytes(record) + footer <= bytes_;
}

Result<uint64_t> SegmentWriter::Append(const RecordHeader& record, std::span<const std::byte> payload) {
  CACHALOT_DCHECK(Fits(record) && record.uuid == header_.uuid && payload.size() == PayloadBytes(record));
  const std::vector<std::byte> header = EncodeRecordHeader(record);
  const std::span<std::byte> bytes = staging_.Resize(RecordBytes(record));
  const size_t payload_begin = ToPages(header.size());
  std::ranges::fill(CopyBytes(header, bytes.first(payload_begin)), std::byte{0});
  std::ranges::fill(CopyBytes(payload, bytes.subspan(payload_begin)), std::byte{0});
  unsynced_ = true;
  CACHALOT_RETURN_IF_ERROR(file_->WriteAt(end_, bytes));
  const uint64_t offset = end_;
  end_ += bytes.size();
  ++records_;
  const std::vector<std::byte> entry = EncodeFooterRecord(offset, header);
  footer_body_.insert(footer_body_.end(), entry.begin(), entry.end());
  return offset;
}

Status SegmentWriter::Sync() {
  CACHALOT_RETURN_IF_ERROR(file_->Sync());
  unsynced_ = false;
  return OkStatus();
}

Result<uint64_t> SegmentWriter::Finish() {
  unsynced_ = true;
  return WriteFooterBytes(*file_, end_, EncodeFooter(header_.uuid, end_, records_, footer_body_), staging_);
}

}  // namespace cachalot::tier
