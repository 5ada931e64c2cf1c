#include "tier/disk_inspection.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tier/deletion_log.h"
#include "tier/disk_index.h"

namespace cachalot::tier {
namespace {

SegmentReport ReportOf(const LoadedSegment& segment) {
  SegmentReport report;
  report.name = segment.name;
  report.state = segment.state;
  report.problem = segment.why.message();
  report.file_bytes = segment.file_bytes;
  report.created_unix_seconds = segment.header.created_unix_seconds;
  report.records = segment.records.size();
  report.damaged_records = segment.damaged_records;
  report.last_written_unix_seconds = segment.records.empty() ? 0 : LastWritten(segment);
  for (const FooterRecord& record : segment.records) report.blocks += record.header.blocks.size();
  return report;
}

Result<uint64_t> CountDamaged(FileSystem& files, const std::string& path, const LoadedSegment& segment) {
  CACHALOT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files.Open(path, OpenMode::kRead));
  uint64_t damaged = 0;
  for (const FooterRecord& record : segment.records) {
    CACHALOT_ASSIGN_OR_RETURN(const std::vector<bool> intact, CheckPayload(*file, record));
    damaged += static_cast<uint64_t>(std::ranges::count(intact, false));
  }
  return damaged;
}

void AddToIndex(const LoadedSegment& segment, const LoadedDeletions& deletions, DiskIndex& index) {
  for (const FooterRecord& record : segment.records) {
    index.AddRecord(segment.header.first_sequence, record, /*live=*/true, 0);
    for (const RecordBlock& block : record.header.blocks) {
      const auto deleted = deletions.deleted.find(block.key);
      if (deleted != deletions.deleted.end()) index.DropBefore(block.key, deleted->second);
    }
  }
}

void CountLive(const DiskIndex& index, FolderReport& report) {
  std::map<std::string, SegmentReport*> segments;
  for (SegmentReport& segment : report.segments) segments[segment.name.substr(0, segment.name.find('.'))] = &segment;
  std::map<Digest, IdentityReport> identities;
  index.ForEachLive([&](uint64_t id, const Digest& identity, const DiskBlock& block) {
    SegmentReport& segment = *segments.at(fmt::format("{:016x}", id));
    ++segment.live_blocks;
    segment.live_bytes += block.stored_bytes;
    IdentityReport& of_identity = identities[identity];
    of_identity.identity = identity;
    ++of_identity.blocks;
    of_identity.tokens += block.tokens;
    of_identity.bytes += block.stored_bytes;
  });
  for (const auto& [identity, of_identity] : identities) report.identities.push_back(of_identity);
  std::ranges::stable_sort(report.identities, std::ranges::greater{}, &IdentityReport::bytes);
}

}  // namespace

Result<FolderReport> InspectFolder(FileSystem& files, const std::string& folder, bool check_payloads,
                                   int64_t unix_seconds) {
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(folder));
  const FolderFiles found = SortFiles(names);
  FolderReport report{.foreign_files = found.foreign, .payloads_checked = check_payloads};
  LoadedDeletions deletions;
  if (found.deletions) {
    Result<LoadedDeletions> loaded = LoadDeletions(files, folder);
    report.deletions_problem = loaded.status().message();
    if (loaded.ok()) deletions = std::move(loaded).value();
  } else if (!found.segments.empty()) {
    report.deletions_problem = fmt::format("{} is missing", kDeletionFile);
  }
  report.openings = deletions.opening;
  report.deletions = deletions.deleted.size();

  DiskIndex index;
  for (const std::string& name : found.segments) {
    LoadedSegment segment = LoadSegment(files, folder, name);
    if (!report.segments.empty() && SequenceInName(report.segments.back().name) == SequenceInName(name)) {
      segment.state = SegmentState::kForeign;
      segment.why = Invalid(fmt::format("{} is there, too", report.segments.back().name));
      segment.records.clear();
    }
    SegmentReport& of_segment = report.segments.emplace_back(ReportOf(segment));
    if (check_payloads) {
      const Result<uint64_t> damaged = CountDamaged(files, fmt::format("{}/{}", folder, name), segment);
      if (damaged.ok()) of_segment.damaged_blocks = *damaged;
      if (!damaged.ok() && of_segment.problem.empty()) of_segment.problem = damaged.status().message();
    }
    if (report.deletions_problem.empty()) AddToIndex(segment, deletions, index);
  }
  int64_t last_written = 0;
  for (const SegmentReport& segment : report.segments) {
    last_written = std::max({last_written, segment.last_written_unix_seconds, segment.created_unix_seconds});
  }
  for (const Digest& key : index.TakeExpired(ExpiredBy(unix_seconds, last_written))) index.Drop(key);
  CountLive(index, report);
  return report;
}

}  // namespace cachalot::tier
