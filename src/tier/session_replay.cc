#include "tier/session_replay.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tier/session_file_reader.h"
#include "tier/session_record.h"

namespace cachalot::tier {
namespace {

constexpr size_t kNumberDigits = 16;

struct NameParts {
  std::string_view prefix;
  std::string_view suffix;
};

// By SessionFileName.
constexpr std::array<NameParts, 3> kNames = {{{"sessions-", ".log"}, {"deleted-", ".log"}, {"sessions-", ".tmp"}}};

struct NamedFile {
  SessionFileName kind = SessionFileName::kLog;
  uint64_t number = 0;
  std::string name;
};

struct JournalFile {
  std::string path;
  SessionFileHeader header;
};

std::optional<NamedFile> ParseName(const std::string& name) {
  for (size_t kind = 0; kind < kNames.size(); ++kind) {
    const auto& [prefix, suffix] = kNames[kind];
    if (name.size() != prefix.size() + kNumberDigits + suffix.size()) continue;
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    NamedFile file{static_cast<SessionFileName>(kind), 0, name};
    const char* begin = name.data() + prefix.size();
    const auto parsed = std::from_chars(begin, begin + kNumberDigits, file.number, 16);
    if (parsed.ec == std::errc() && parsed.ptr == begin + kNumberDigits && file.number < kSessionSequenceLimit &&
        NameOfSessionFile(file.kind, file.number) == name) {
      return file;
    }
  }
  return std::nullopt;
}

bool Belongs(const SessionFileHeader& header, const NamedFile& file) {
  const bool deletions = header.kind == SessionFileKind::kDeletions;
  return header.number == file.number && deletions == (file.kind == SessionFileName::kDeletions);
}

// Applies changes in their order.
class Replayer {
 public:
  explicit Replayer(SessionReplay& replay) : replay_(replay) {}

  void Apply(SessionChange change) {
    ++replay_.recovery.records;
    if (IsDeletion(change.kind)) return Erase(change);
    SessionKey key = change.session.key;
    if (change.kind == SessionChangeKind::kPut) {
      replay_.sessions[std::move(key)] = {std::move(change.session), change.sequence};
      return;
    }
    const auto found = replay_.sessions.find(key);
    if (found == replay_.sessions.end() || !Change(change, found->second)) ++replay_.recovery.unconnected_records;
  }

  // Sessions that this deletes and that were written before it.
  void Erase(const SessionChange& deletion) {
    const SessionKey& key = deletion.session.key;
    const auto covered = [&](const auto& entry) {
      if (entry.second.content_sequence > deletion.sequence) return false;
      return deletion.kind == SessionChangeKind::kClearAll || entry.first.owner == key.owner;
    };
    if (deletion.kind != SessionChangeKind::kDelete) {
      std::erase_if(replay_.sessions, covered);
    } else if (const auto found = replay_.sessions.find(key); found != replay_.sessions.end() && covered(*found)) {
      replay_.sessions.erase(found);
    }
  }

 private:
  static bool Change(const SessionChange& change, ReplayedSession& replayed) {
    StoredSession& session = replayed.session;
    if (change.previous != replayed.content_sequence) return false;
    if (change.kind == SessionChangeKind::kHold) {
      session.pinned = change.session.pinned;
      session.suspended = change.session.suspended;
      return true;
    }
    if (change.kind == SessionChangeKind::kExtend) {
      if (change.from_position > session.tokens.size()) return false;
      if (change.from_position + change.session.tokens.size() > kSessionTokens) return false;
      session.tokens.resize(change.from_position);
      session.tokens.insert(session.tokens.end(), change.session.tokens.begin(), change.session.tokens.end());
      replayed.content_sequence = change.sequence;
    }
    session.last_used = change.session.last_used;
    return true;
  }

  SessionReplay& replay_;
};

// Counts the sequence numbers that are missing, but for deletions of which the other copy is there.
class LossCount {
 public:
  explicit LossCount(std::vector<uint64_t> deletions) : deletions_(std::move(deletions)) {
    std::ranges::sort(deletions_);
    deletions_.erase(std::unique(deletions_.begin(), deletions_.end()), deletions_.end());
  }
  void StartAt(uint64_t sequence) { expected_ = std::max(expected_, sequence); }
  // Everything before `sequence` was to come before.
  void Expect(uint64_t sequence) {
    if (sequence <= expected_) return;
    const auto begin = std::ranges::lower_bound(deletions_, expected_);
    const auto end = std::ranges::lower_bound(deletions_, sequence);
    lost_ += sequence - expected_ - static_cast<uint64_t>(end - begin);
    expected_ = sequence;
  }
  void ExpectAllDeletions() {
    if (!deletions_.empty()) Expect(deletions_.back() + 1);
  }
  uint64_t lost() const { return lost_; }
  uint64_t expected() const { return expected_; }

 private:
  std::vector<uint64_t> deletions_;
  uint64_t expected_ = 1;
  uint64_t lost_ = 0;
};

// The journal's files that count, by number.
struct JournalFiles {
  std::vector<JournalFile> logs;
  std::vector<JournalFile> deletions;
};

// A file without a whole header holds nothing that can be read: it was torn when it began, or is damaged.
Result<JournalFiles> FindFiles(FileSystem& files, const std::string& folder, SessionReplay& replay) {
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(folder));
  std::vector<JournalFile> found;
  uint64_t snapshot = 0;
  for (const std::string& name : names) {
    const std::optional<NamedFile> file = ParseName(name);
    if (!file) continue;
    replay.next_number = std::max(replay.next_number, file->number + 1);
    const std::string path = fmt::format("{}/{}", folder, name);
    if (file->kind != SessionFileName::kTemporary) {
      const Result<SessionFileReader> reader = SessionFileReader::Open(files, path);
      if (!reader.ok() && reader.status().code() != Code::kCorrupt) return reader.status();
      if (reader.ok() && !Belongs(reader->header(), *file)) {
        ++replay.recovery.foreign_files;
        continue;
      }
      if (!reader.ok()) {
        ++replay.recovery.headless_files;
      } else {
        found.push_back({path, reader->header()});
        if (reader->header().kind == SessionFileKind::kSnapshot) snapshot = std::max(snapshot, file->number);
      }
    }
    replay.names.push_back(name);
  }
  std::ranges::sort(found, {}, [](const JournalFile& file) { return file.header.number; });
  JournalFiles out;
  for (JournalFile& file : found) {
    if (file.header.number < snapshot) continue;
    const bool deletions = file.header.kind == SessionFileKind::kDeletions;
    (deletions ? out.deletions : out.logs).push_back(std::move(file));
  }
  return out;
}

Result<std::vector<SessionChange>> ReadDeletions(FileSystem& files, const std::vector<JournalFile>& from,
                                                 SessionReplay& replay) {
  std::vector<SessionChange> deletions;
  for (const JournalFile& file : from) {
    CACHALOT_ASSIGN_OR_RETURN(SessionFileReader reader, SessionFileReader::Open(files, file.path));
    while (true) {
      CACHALOT_ASSIGN_OR_RETURN(std::optional<SessionChange> change, reader.Next());
      if (!change) break;
      if (IsDeletion(change->kind)) deletions.push_back(std::move(*change));
    }
    ++replay.recovery.files;
    replay.recovery.bad_bytes += reader.bad_bytes();
    replay.file_bytes += reader.file_bytes();
  }
  return deletions;
}

// `end`: from here on a later file has it.
Status ReplayLog(FileSystem& files, const JournalFile& file, uint64_t end, LossCount& losses, SessionReplay& replay) {
  CACHALOT_ASSIGN_OR_RETURN(SessionFileReader reader, SessionFileReader::Open(files, file.path));
  const SessionFileHeader& header = reader.header();
  Replayer replayer(replay);
  uint64_t snapshot_records = 0;
  if (header.kind == SessionFileKind::kSnapshot) losses.StartAt(header.first_sequence);
  losses.Expect(header.first_sequence);
  while (true) {
    CACHALOT_ASSIGN_OR_RETURN(std::optional<SessionChange> change, reader.Next());
    if (!change) break;
    if (change->sequence >= end) continue;
    if (change->sequence < header.first_sequence) {
      if (header.kind != SessionFileKind::kSnapshot) continue;
      ++snapshot_records;
    } else {
      losses.Expect(change->sequence);
      losses.StartAt(change->sequence + 1);
    }
    replayer.Apply(std::move(*change));
  }
  replay.recovery.lost_records += header.snapshot_records - std::min(header.snapshot_records, snapshot_records);
  ++replay.recovery.files;
  replay.recovery.bad_bytes += reader.bad_bytes();
  replay.file_bytes += reader.file_bytes();
  return OkStatus();
}

}  // namespace

std::string NameOfSessionFile(SessionFileName kind, uint64_t number) {
  const auto& [prefix, suffix] = kNames[static_cast<size_t>(kind)];
  return fmt::format("{}{:0{}x}{}", prefix, number, kNumberDigits, suffix);
}

Result<SessionReplay> ReplaySessions(FileSystem& files, const std::string& folder) {
  SessionReplay replay;
  CACHALOT_ASSIGN_OR_RETURN(const JournalFiles found, FindFiles(files, folder, replay));
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<SessionChange> deletions, ReadDeletions(files, found.deletions, replay));
  std::vector<uint64_t> deleted(deletions.size());
  std::ranges::transform(deletions, deleted.begin(), &SessionChange::sequence);
  LossCount losses(std::move(deleted));
  std::vector<uint64_t> ends(found.logs.size() + 1, kSessionSequenceLimit);
  for (size_t i = found.logs.size(); i > 0; --i)
    ends[i - 1] = std::min(ends[i], found.logs[i - 1].header.first_sequence);
  for (size_t i = 0; i < found.logs.size(); ++i) {
    CACHALOT_RETURN_IF_ERROR(ReplayLog(files, found.logs[i], ends[i + 1], losses, replay));
  }
  Replayer replayer(replay);
  for (const SessionChange& deletion : deletions) replayer.Erase(deletion);
  losses.ExpectAllDeletions();
  replay.recovery.lost_records += losses.lost();
  replay.next_sequence = losses.expected();
  return replay;
}

}  // namespace cachalot::tier
