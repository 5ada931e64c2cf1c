#include "cli/inspect_disk.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/json.h"
#include "base/units.h"
#include "tier/disk_inspection.h"

namespace cachalot::cli {
namespace {

using tier::FolderReport;
using tier::IdentityReport;
using tier::SegmentReport;

// "5 s", "12 min", "3 h", "9 d".
std::string AgeText(int64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", std::max<int64_t>(seconds, 0));
  if (seconds < 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < 86400) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / 86400);
}

bool IsDamaged(const SegmentReport& segment) {
  return segment.state == tier::SegmentState::kDamaged || segment.state == tier::SegmentState::kUnreadable ||
         segment.damaged_records > 0 || segment.damaged_blocks > 0;
}

struct Totals {
  uint64_t file_bytes = 0, live_blocks = 0, live_bytes = 0, damaged = 0;
};

Totals TotalsOf(const FolderReport& report) {
  Totals totals;
  for (const SegmentReport& segment : report.segments) {
    totals.file_bytes += segment.file_bytes;
    totals.live_blocks += segment.live_blocks;
    totals.live_bytes += segment.live_bytes;
    totals.damaged += IsDamaged(segment) ? 1 : 0;
  }
  return totals;
}

void PrintTable(const FolderReport& report, const InspectDiskOptions& options, int64_t now) {
  fmt::print("{:<22} {:<10} {:>10} {:>8} {:>8} {:>8} {:>10} {:>8} {:>8}\n", "segment", "state", "bytes", "records",
             "blocks", "live", "live bytes", "written", "damaged");
  for (const SegmentReport& segment : report.segments) {
    fmt::print("{:<22} {:<10} {:>10} {:>8} {:>8} {:>8} {:>10} {:>8} {:>8}\n", segment.name, NameOf(segment.state),
               FormatBytes(segment.file_bytes), segment.records, segment.blocks, segment.live_blocks,
               FormatBytes(segment.live_bytes),
               segment.records == 0 ? "-" : AgeText(now - segment.last_written_unix_seconds),
               segment.damaged_records + segment.damaged_blocks);
    if (!segment.problem.empty()) fmt::print("  {}\n", segment.problem);
  }
  fmt::print("\n");
  for (const IdentityReport& identity : report.identities) {
    fmt::print("identity       {}: {} blocks, {} tokens, {}{}\n", HexOf(identity.identity),
               FormatCount(identity.blocks), FormatCount(identity.tokens), FormatBytes(identity.bytes),
               options.reusable_by == identity.identity ? " (reusable by this model)" : "");
  }
  const Totals totals = TotalsOf(report);
  fmt::print("total          {} segments of {}, {} live blocks of {}\n", report.segments.size(),
             FormatBytes(totals.file_bytes), FormatCount(totals.live_blocks), FormatBytes(totals.live_bytes));
  fmt::print("deletions      {}{}\n", FormatCount(report.deletions),
             report.deletions_problem.empty() ? "" : fmt::format(": {}", report.deletions_problem));
  for (const std::string& name : report.foreign_files) fmt::print("foreign file   {}\n", name);
  fmt::print("integrity      {}\n", totals.damaged > 0       ? fmt::format("{} segments with damage", totals.damaged)
                                    : options.check_payloads ? "all payloads agree with their checksums"
                                                             : "headers are good; --check reads payloads too");
}

void WriteSegment(JsonWriter& w, const SegmentReport& segment) {
  w.BeginObject();
  w.Key("name").String(segment.name);
  w.Key("state").String(NameOf(segment.state));
  if (!segment.problem.empty()) w.Key("problem").String(segment.problem);
  w.Key("file_bytes").UInt(segment.file_bytes);
  w.Key("created_unix_seconds").Int(segment.created_unix_seconds);
  w.Key("last_written_unix_seconds").Int(segment.last_written_unix_seconds);
  w.Key("records").UInt(segment.records);
  w.Key("blocks").UInt(segment.blocks);
  w.Key("live_blocks").UInt(segment.live_blocks);
  w.Key("live_bytes").UInt(segment.live_bytes);
  w.Key("damaged_records").UInt(segment.damaged_records);
  w.Key("damaged_blocks").UInt(segment.damaged_blocks);
  w.EndObject();
}

void PrintJson(const FolderReport& report, const InspectDiskOptions& options) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.Key("segments").BeginArray();
  for (const SegmentReport& segment : report.segments) WriteSegment(w, segment);
  w.EndArray();
  w.Key("identities").BeginArray();
  for (const IdentityReport& identity : report.identities) {
    w.BeginObject();
    w.Key("identity").String(HexOf(identity.identity));
    w.Key("blocks").UInt(identity.blocks);
    w.Key("tokens").UInt(identity.tokens);
    w.Key("bytes").UInt(identity.bytes);
    if (options.reusable_by) w.Key("reusable").Bool(options.reusable_by == identity.identity);
    w.EndObject();
  }
  w.EndArray();
  w.Key("foreign_files").BeginArray();
  for (const std::string& name : report.foreign_files) w.String(name);
  w.EndArray();
  w.Key("openings").UInt(report.openings);
  w.Key("deletions").UInt(report.deletions);
  if (!report.deletions_problem.empty()) w.Key("deletions_problem").String(report.deletions_problem);
  w.Key("payloads_checked").Bool(report.payloads_checked);
  w.EndObject();
  fmt::print("{}\n", out);
}

}  // namespace

Status InspectDisk(const std::string& folder, const InspectDiskOptions& options) {
  const std::unique_ptr<FileSystem> files = DiskFileSystem();
  CACHALOT_ASSIGN_OR_RETURN(const FolderReport report,
                            tier::InspectFolder(*files, folder, options.check_payloads, SteadyClock().UnixSeconds()));
  if (report.segments.empty() && report.openings == 0) {
    return Invalid(fmt::format("{} is no folder of the disk tier: there is no segment in it", folder));
  }
  if (options.json) {
    PrintJson(report, options);
  } else {
    PrintTable(report, options, SteadyClock().UnixSeconds());
  }
  if (!report.deletions_problem.empty()) return Corrupt(report.deletions_problem);
  const uint64_t damaged = TotalsOf(report).damaged;
  return damaged == 0 ? OkStatus() : Corrupt(fmt::format("{}: {} segments with damage", folder, damaged));
}

}  // namespace cachalot::cli
