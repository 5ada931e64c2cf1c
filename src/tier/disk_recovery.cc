#include "tier/disk_recovery.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/hex.h"
#include "tier/deletion_log.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
constexpr size_t kSequenceDigits = 16;
constexpr const char* kSealedEnding = ".seg";
constexpr const char* kOpenEnding = ".open";

Result<std::vector<std::byte>> ReadBytes(const File& file, uint64_t offset, uint64_t bytes) {
  std::vector<std::byte> out(bytes);
  CACHALOT_RETURN_IF_ERROR(file.ReadAt(offset, out));
  return out;
}

Result<uint32_t> CrcInFile(const File& file, uint64_t offset, uint64_t bytes) {
  std::vector<std::byte> piece(std::min(bytes, kPieceBytes));
  uint32_t crc = 0;
  while (bytes > 0) {
    const std::span<std::byte> part = std::span(piece).first(std::min(bytes, kPieceBytes));
    CACHALOT_RETURN_IF_ERROR(file.ReadAt(offset, part));
    crc = Crc32c(part, crc);
    offset += part.size();
    bytes -= part.size();
  }
  return crc;
}

// False when there is no intact footer.
Result<bool> LoadFooter(const File& file, LoadedSegment& segment) {
  if (segment.file_bytes < 2 * kDiskPage || segment.file_bytes % kDiskPage != 0) return false;
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<std::byte> last,
                            ReadBytes(file, segment.file_bytes - kDiskPage, kDiskPage));
  const Result<FooterTrailer> trailer = DecodeTrailer(last, segment.file_bytes);
  if (!trailer.ok() || trailer->uuid != segment.header.uuid) return false;
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<std::byte> body,
                            ReadBytes(file, trailer->body_offset, trailer->body_bytes));
  Result<std::vector<FooterRecord>> records = DecodeFooterBody(*trailer, body);
  if (!records.ok()) return false;
  segment.records = std::move(records).value();
  segment.data_bytes = trailer->body_offset;
  return true;
}

// The record at `offset`; kCorrupt or kInvalid where there is none.
Result<FooterRecord> RecordAt(const File& file, uint64_t offset, const LoadedSegment& segment) {
  if (segment.file_bytes - offset < kDiskPage) return Corrupt("end of the file");
  CACHALOT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, ReadBytes(file, offset, kDiskPage));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t header_bytes, HeaderBytesAt(bytes));
  if (header_bytes > segment.file_bytes - offset) return Corrupt("record that ends behind its file");
  if (header_bytes > bytes.size()) {
    CACHALOT_ASSIGN_OR_RETURN(bytes, ReadBytes(file, offset, header_bytes));
  }
  CACHALOT_ASSIGN_OR_RETURN(RecordHeader header, DecodeRecordHeader(bytes));
  const bool fits = header.uuid == segment.header.uuid && RecordBytes(header) <= segment.file_bytes - offset;
  if (!fits) return Corrupt("record of another segment");
  return FooterRecord{offset, std::move(header)};
}

Status ScanRecords(const File& file, LoadedSegment& segment) {
  segment.data_bytes = kDiskPage;
  uint64_t sequence = segment.header.first_sequence;
  while (true) {
    Result<FooterRecord> record = RecordAt(file, segment.data_bytes, segment);
    if (!record.ok()) return record.status().code() == Code::kUnavailable ? record.status() : OkStatus();
    if (record->header.sequence <= sequence) return OkStatus();
    sequence = record->header.sequence;
    CACHALOT_ASSIGN_OR_RETURN(const std::vector<bool> intact, CheckPayload(file, *record));
    segment.data_bytes += RecordBytes(record->header);
    if (std::ranges::count(intact, false) > 0) {
      ++segment.damaged_records;
    } else {
      segment.records.push_back(std::move(record).value());
    }
  }
}

// Fills `segment`; the state is set where it is not a matter of the status.
Status Load(const File& file, bool sealed, LoadedSegment& segment) {
  CACHALOT_ASSIGN_OR_RETURN(segment.file_bytes, file.Size());
  if (segment.file_bytes > kMaxSegmentBytes) return Invalid("larger than a segment may be");
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<std::byte> page,
                            ReadBytes(file, 0, std::min(segment.file_bytes, kDiskPage)));
  // What a crash leaves of a file just made.
  if (std::ranges::all_of(page, [](std::byte b) { return b == std::byte{0}; })) return Corrupt("empty");
  CACHALOT_ASSIGN_OR_RETURN(segment.header, DecodeSegmentHeader(page));
  if (SequenceInName(segment.name) != segment.header.first_sequence) {
    return Invalid(fmt::format("it was made as {}", SegmentName(segment.header.first_sequence, sealed)));
  }
  if (sealed) {
    CACHALOT_ASSIGN_OR_RETURN(const bool found, LoadFooter(file, segment));
    segment.state = SegmentState::kSealed;
    if (found) return OkStatus();
  }
  segment.state = SegmentState::kScanned;
  return ScanRecords(file, segment);
}

}  // namespace

std::string SegmentName(uint64_t first_sequence, bool sealed) {
  return fmt::format("{:016x}{}", first_sequence, sealed ? kSealedEnding : kOpenEnding);
}

std::optional<uint64_t> SequenceInName(const std::string& name) {
  if (!name.ends_with(kSealedEnding) && !name.ends_with(kOpenEnding)) return std::nullopt;
  if (name.find('.') != kSequenceDigits) return std::nullopt;
  uint64_t sequence = 0;
  for (const char digit : name.substr(0, kSequenceDigits)) {
    if (HexValue(digit) < 0) return std::nullopt;
    sequence = sequence * 16 + static_cast<uint64_t>(HexValue(digit));
  }
  return sequence;
}

FolderFiles SortFiles(const std::vector<std::string>& names) {
  FolderFiles sorted;
  for (const std::string& name : names) {
    if (name == kDeletionFile) {
      sorted.deletions = true;
    } else if (name == kNewDeletionFile) {
      sorted.new_deletions = true;
    } else if (SequenceInName(name)) {
      sorted.segments.push_back(name);
    } else if (name != kFolderLockFile) {
      sorted.foreign.push_back(name);
    }
  }
  std::ranges::sort(sorted.segments, {}, [](const std::string& name) { return SequenceInName(name); });
  return sorted;
}

const char* NameOf(SegmentState state) {
  switch (state) {
    case SegmentState::kSealed: return "sealed";
    case SegmentState::kScanned: return "unsealed";
    case SegmentState::kForeign: return "foreign";
    case SegmentState::kDamaged: return "damaged";
    case SegmentState::kUnreadable: break;
  }
  return "unreadable";
}

LoadedSegment LoadSegment(FileSystem& files, const std::string& folder, const std::string& name) {
  LoadedSegment segment;
  segment.name = name;
  const Result<std::unique_ptr<File>> file = files.Open(fmt::format("{}/{}", folder, name), OpenMode::kRead);
  segment.why = file.ok() ? Load(**file, name.ends_with(kSealedEnding), segment) : file.status();
  if (segment.why.ok()) return segment;
  segment.why = segment.why.Annotate(name);
  segment.records.clear();
  switch (segment.why.code()) {
    case Code::kInvalid: segment.state = SegmentState::kForeign; break;
    case Code::kCorrupt: segment.state = SegmentState::kDamaged; break;
    default: segment.state = SegmentState::kUnreadable; break;
  }
  return segment;
}

int64_t ExpiredBy(int64_t now, int64_t last_written) {
  constexpr int64_t kSlackSeconds = 60;  // that clocks are corrected by
  if (now < last_written - kSlackSeconds) return kNeverExpires;
  return std::max(now, last_written);
}

int64_t LastWritten(const LoadedSegment& segment) {
  int64_t last = segment.header.created_unix_seconds;
  for (const FooterRecord& record : segment.records) last = std::max(last, record.header.written_unix_seconds);
  return last;
}

Result<std::vector<bool>> CheckPayload(const File& file, const FooterRecord& record) {
  std::vector<bool> intact;
  uint64_t offset = record.offset + ToPages(HeaderBytes(record.header));
  for (const RecordBlock& block : record.header.blocks) {
    CACHALOT_ASSIGN_OR_RETURN(const uint32_t crc, CrcInFile(file, offset, block.stored_bytes));
    intact.push_back(crc == block.crc);
    offset += block.stored_bytes;
  }
  return intact;
}

}  // namespace cachalot::tier
