// SegmentWriter fills one segment file: records one after the other, then a footer.
// Threads:   belongs to one; others may read file() meanwhile, where records were appended.
// Ownership: shares the file with readers; never removes or renames it.
// Invariant: a record that was appended is never overwritten; one that failed to be may be there or not, in part or
//            whole. The footer always fits: room for it is kept back.
// Cost:      Append copies a record once and writes it with one call; the headers stay in memory until Finish.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "tier/aligned_bytes.h"
#include "tier/disk_format.h"

namespace cachalot::tier {

// Room that a segment needs when it holds nothing but this record.
uint64_t SegmentBytesFor(const RecordHeader& record);

// Writes the footer at the end of `data_bytes` of records and cuts the file behind it. Not synced. The file's size.
Result<uint64_t> WriteFooter(File& file, const SegmentUuid& uuid, uint64_t data_bytes,
                             std::span<const FooterRecord> records);

class SegmentWriter {
 public:
  // A new file that occupies `bytes`, a multiple of kDiskPage.
  static Result<std::unique_ptr<SegmentWriter>> Create(FileSystem& files, const std::string& path,
                                                       const SegmentHeader& header, uint64_t bytes);

  const SegmentHeader& header() const { return header_; }
  // False when there is nothing that Sync would save.
  bool unsynced() const { return unsynced_; }
  std::shared_ptr<const File> file() const { return file_; }

  bool Fits(const RecordHeader& record) const;
  // Where the record begins. Requires Fits(record), and the payload that it describes; its uuid is this segment's.
  Result<uint64_t> Append(const RecordHeader& record, std::span<const std::byte> payload);
  Status Sync();
  // Footer written, the file cut to its end. Nothing can be appended once it succeeded. Its size.
  Result<uint64_t> Finish();

 private:
  SegmentWriter(std::shared_ptr<File> file, const SegmentHeader& header, uint64_t bytes)
      : file_(std::move(file)), header_(header), bytes_(bytes) {}

  const std::shared_ptr<File> file_;
  const SegmentHeader header_;
  const uint64_t bytes_;
  uint64_t end_ = kDiskPage;  // of the records
  uint32_t records_ = 0;
  std::vector<std::byte> footer_body_;
  bool unsynced_ = true;
  AlignedBytes staging_;
};

}  // namespace cachalot::tier
