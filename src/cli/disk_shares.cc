#include "cli/disk_shares.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "cli/place.h"
#include "tier/session_journal.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kSessionShare = 16;  // of --disk-size: tokens take a thousandth of what their KV does
constexpr uint64_t kMostMemory = std::numeric_limits<uint64_t>::max() / tier::kJournalParts;

// Folders that are still to be made included.
bool IsWithin(const std::string& path, const std::string& folder) {
  const std::filesystem::path from_outer = PlaceOf(path).lexically_relative(PlaceOf(folder));
  return !from_outer.empty() && *from_outer.begin() != "..";
}

}  // namespace

std::string SessionFolder(const TierOptions& options) {
  if (!options.session_path.empty() || options.disk_path.empty()) return options.session_path;
  return options.disk_path + "/sessions";
}

Result<DiskShares> ShareDisk(const TierOptions& options, uint64_t session_memory) {
  DiskShares shares{.kv_bytes = options.disk_size.bytes, .session_memory = session_memory};
  if (options.disk_path.empty()) return shares;
  if (!options.session_files.empty() && IsWithin(options.session_files, options.disk_path)) {
    return Invalid(
        fmt::format("--session-files: {} lies in --disk-path, which holds no more than --disk-size; name a "
                    "folder elsewhere",
                    options.session_files));
  }
  if (!IsWithin(SessionFolder(options), options.disk_path)) return shares;
  shares.session_bytes =
      std::min(options.disk_size.bytes / kSessionShare, tier::kJournalParts * std::min(session_memory, kMostMemory));
  shares.session_memory = std::min(session_memory, tier::LiveBytesWithin(shares.session_bytes));
  shares.kv_bytes -= shares.session_bytes;
  return shares;
}

}  // namespace cachalot::cli
