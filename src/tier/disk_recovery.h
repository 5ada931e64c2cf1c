// What a folder of the disk tier holds, found out from its files alone; nothing is changed.
// Threads:   any.
// Ownership: none.
// Invariant: a segment's records are those of its footer if it is sealed and the footer is intact; else those from its
//            beginning up to the first damaged header, less those with a damaged payload.
// Cost:      a footer is read whole; a segment without one is read whole, payloads piece by piece.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "tier/disk_format.h"

namespace cachalot::tier {

inline constexpr const char* kFolderLockFile = "cachalot.lock";

// Segments are named by their first sequence number. One that ends in .open may lack its footer.
std::string SegmentName(uint64_t first_sequence, bool sealed);
std::optional<uint64_t> SequenceInName(const std::string& name);

struct FolderFiles {
  std::vector<std::string> segments;  // oldest first
  std::vector<std::string> foreign;   // not ours
  bool deletions = false;
  bool new_deletions = false;  // left by a crash
};

FolderFiles SortFiles(const std::vector<std::string>& names);

enum class SegmentState : uint8_t {
  kSealed,      // read from its footer
  kScanned,     // unsealed, or its footer is damaged
  kForeign,     // another program's, a newer version's, or under a name that is not its own
  kDamaged,     // nothing of it can be found
  kUnreadable,  // reading failed
};

const char* NameOf(SegmentState state);

struct LoadedSegment {
  std::string name;
  SegmentState state = SegmentState::kUnreadable;
  Status why;  // when foreign, damaged or unreadable
  SegmentHeader header;
  std::vector<FooterRecord> records;
  uint64_t data_bytes = 0;  // where the records end
  uint64_t file_bytes = 0;
  uint64_t damaged_records = 0;  // skipped by the scan
};

LoadedSegment LoadSegment(FileSystem& files, const std::string& folder, const std::string& name);

// What ends by this moment has had its time, when a folder that was written to last at `last_written` is opened at
// `now`, both in Unix seconds: all that ends at all where the clock was set back, since nobody knows how long ago that
// was.
int64_t ExpiredBy(int64_t now, int64_t last_written);
// The latest of its records, or its making.
int64_t LastWritten(const LoadedSegment& segment);

// Whether each block's bytes agree with its checksum; kCorrupt when the file is too short.
Result<std::vector<bool>> CheckPayload(const File& file, const FooterRecord& record);

}  // namespace cachalot::tier
