#include "tier/session_journal.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"

namespace cachalot::tier {
namespace {

Status NotThere(const SessionKey& key) {
  return Invalid(fmt::format("no session '{}' of '{}' in the journal", key.id, key.owner));
}

Status CheckName(const char* what, const std::string& name, size_t least_bytes) {
  if (name.size() >= least_bytes && name.size() <= kSessionNameBytes) return OkStatus();
  return Invalid(fmt::format("{} has {} bytes, expected {} to {}", what, name.size(), least_bytes, kSessionNameBytes));
}

Status CheckKey(const SessionKey& key) {
  CACHALOT_RETURN_IF_ERROR(CheckName("session id", key.id, 1));
  return CheckName("owner of a session", key.owner, 0);
}

Status CheckTokens(uint64_t tokens) {
  if (tokens <= kSessionTokens) return OkStatus();
  return Invalid(fmt::format("a session of {} tokens, expected at most {}", tokens, kSessionTokens));
}

}  // namespace

SessionJournalOptions JournalWithin(uint64_t limit_bytes, const JournalUuid& uuid) {
  const SessionJournalOptions any{.uuid = uuid};
  const uint64_t part = limit_bytes / kJournalParts;
  return {uuid, std::min(any.dead_bytes, part), std::min(any.pending_bytes_limit, part), limit_bytes};
}

SessionJournal::SessionJournal(FileSystem& files, const std::string& folder, const SessionJournalOptions& options)
    : files_(files),
      folder_(folder),
      options_(options),
      seed_(SessionRecordSeed(options.uuid)),
      log_(files, folder, SessionFileName::kLog),
      deletions_(files, folder, SessionFileName::kDeletions) {}

Result<SessionJournal::Opened> SessionJournal::Open(FileSystem& files, const std::string& folder,
                                                    const SessionJournalOptions& options) {
  CACHALOT_ASSIGN_OR_RETURN(SessionReplay replay, ReplaySessions(files, folder));
  if (std::max(replay.next_sequence, replay.next_number) > kSessionSequenceLimit / 2) {
    return Invalid(fmt::format("the session journal in {} has numbers that no journal reaches", folder));
  }
  uint64_t live_bytes = 0;
  for (const auto& [key, replayed] : replay.sessions) live_bytes += SessionRecordBytes(replayed.session);
  if (live_bytes > LiveBytesWithin(options.limit_bytes)) {
    return Invalid(fmt::format("the sessions in {} take {} and may take {} there", folder, FormatBytes(live_bytes),
                               FormatBytes(LiveBytesWithin(options.limit_bytes))));
  }
  Opened opened;
  opened.journal.reset(new SessionJournal(files, folder, options));
  SessionJournal& journal = *opened.journal;
  journal.next_sequence_ = replay.next_sequence;
  journal.next_number_ = replay.next_number;
  journal.stats_.file_bytes = replay.file_bytes;
  journal.FillEntries(replay.sessions);
  journal.must_snapshot_ = !replay.names.empty();
  if (journal.must_snapshot_) (void)journal.Counted(journal.Snapshot(replay));
  for (auto& [key, replayed] : replay.sessions) opened.sessions.push_back(std::move(replayed.session));
  opened.recovery = replay.recovery;
  return opened;
}

void SessionJournal::FillEntries(const ReplayedSessions& sessions) {
  entries_.clear();
  stats_.live_bytes = 0;
  for (const auto& [key, replayed] : sessions) {
    Entry& entry = entries_[key];
    entry = {replayed.content_sequence, replayed.session.tokens.size(), 0};
    SetBytes(entry, SessionRecordBytes(replayed.session));
  }
}

SessionJournal::Entry* SessionJournal::Find(const SessionKey& key) {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

void SessionJournal::SetBytes(Entry& entry, uint64_t bytes) {
  stats_.live_bytes += bytes - entry.bytes;
  entry.bytes = bytes;
}

void SessionJournal::Erase(std::map<SessionKey, Entry>::iterator entry) {
  SetBytes(entry->second, 0);
  entries_.erase(entry);
}

Status SessionJournal::Record(SessionChange change) {
  const uint64_t bytes = SessionRecordBytes(change.session);
  const bool deletion = IsDeletion(change.kind);
  const uint64_t pending = pending_.bytes.size() + pending_deletions_.bytes.size();
  if (pending + (deletion ? 2 * bytes : bytes) > options_.pending_bytes_limit) {
    return Unavailable(fmt::format("session journal: {} bytes wait to be written to {}", pending, folder_));
  }
  change.sequence = next_sequence_++;
  const auto append = [&](Batch& batch) {
    if (batch.bytes.empty()) batch.first_sequence = change.sequence;
    AppendSessionRecord(change, seed_, batch.bytes);
  };
  append(pending_);
  if (deletion) append(pending_deletions_);
  return OkStatus();
}

// A change to the contents that the session has now.
SessionChange SessionJournal::ChangeTo(const SessionKey& key, const Entry& entry, SessionChangeKind kind) {
  SessionChange change;
  change.kind = kind;
  change.previous = entry.content_sequence;
  change.session.key = key;
  return change;
}

Status SessionJournal::Put(const StoredSession& session) {
  CACHALOT_RETURN_IF_ERROR(CheckKey(session.key));
  CACHALOT_RETURN_IF_ERROR(CheckTokens(session.tokens.size()));
  SessionChange change;
  change.kind = SessionChangeKind::kPut;
  change.session = session;
  CACHALOT_RETURN_IF_ERROR(Record(std::move(change)));
  Entry& entry = entries_[session.key];
  entry.content_sequence = next_sequence_ - 1;
  entry.tokens = session.tokens.size();
  SetBytes(entry, SessionRecordBytes(session));
  return OkStatus();
}

Status SessionJournal::Extend(const SessionKey& key, uint64_t from_position, std::span<const TokenId> tokens,
                              uint64_t last_used) {
  Entry* entry = Find(key);
  if (entry == nullptr) return NotThere(key);
  if (from_position > entry->tokens) {
    return Invalid(fmt::format("session '{}' of '{}' has {} tokens, expected {} or more", key.id, key.owner,
                               entry->tokens, from_position));
  }
  CACHALOT_RETURN_IF_ERROR(CheckTokens(from_position + tokens.size()));
  SessionChange change = ChangeTo(key, *entry, SessionChangeKind::kExtend);
  change.from_position = from_position;
  change.session.last_used = last_used;
  change.session.tokens.assign(tokens.begin(), tokens.end());
  CACHALOT_RETURN_IF_ERROR(Record(std::move(change)));
  const uint64_t without_tokens = entry->bytes - entry->tokens * sizeof(TokenId);
  entry->content_sequence = next_sequence_ - 1;
  entry->tokens = from_position + tokens.size();
  SetBytes(*entry, without_tokens + entry->tokens * sizeof(TokenId));
  return OkStatus();
}

Status SessionJournal::Touch(const SessionKey& key, uint64_t last_used) {
  const Entry* entry = Find(key);
  if (entry == nullptr) return NotThere(key);
  SessionChange change = ChangeTo(key, *entry, SessionChangeKind::kTouch);
  change.session.last_used = last_used;
  return Record(std::move(change));
}

Status SessionJournal::SetHeld(const SessionKey& key, bool pinned, bool suspended) {
  const Entry* entry = Find(key);
  if (entry == nullptr) return NotThere(key);
  SessionChange change = ChangeTo(key, *entry, SessionChangeKind::kHold);
  change.session.pinned = pinned;
  change.session.suspended = suspended;
  return Record(std::move(change));
}

Status SessionJournal::Delete(const SessionKey& key) {
  CACHALOT_RETURN_IF_ERROR(CheckKey(key));
  SessionChange change;
  change.kind = SessionChangeKind::kDelete;
  change.session.key = key;
  CACHALOT_RETURN_IF_ERROR(Record(std::move(change)));
  if (const auto found = entries_.find(key); found != entries_.end()) Erase(found);
  return OkStatus();
}

Status SessionJournal::ClearOwner(const std::string& owner) {
  CACHALOT_RETURN_IF_ERROR(CheckName("owner of sessions", owner, 0));
  SessionChange change;
  change.kind = SessionChangeKind::kClearOwner;
  change.session.key.owner = owner;
  CACHALOT_RETURN_IF_ERROR(Record(std::move(change)));
  auto next = entries_.lower_bound({owner, ""});
  while (next != entries_.end() && next->first.owner == owner) Erase(next++);
  return OkStatus();
}

Status SessionJournal::ClearAll() {
  SessionChange change;
  change.kind = SessionChangeKind::kClearAll;
  CACHALOT_RETURN_IF_ERROR(Record(std::move(change)));
  FillEntries({});
  return OkStatus();
}

Status SessionJournal::Counted(Status status) {
  if (status.ok()) return status;
  ++stats_.failures;
  ++stats_.failures_in_row;
  return Unavailable("session journal: " + status.message());
}

Status SessionJournal::Sync() {
  CACHALOT_RETURN_IF_ERROR(Counted(WriteAll()));
  stats_.failures_in_row = 0;
  // All is on disk already: a failure here costs only room.
  if (WantsSnapshot() && !Snapshot().ok()) {
    ++stats_.failures;
    next_snapshot_bytes_ = stats_.file_bytes + stats_.file_bytes / 2;
  }
  return OkStatus();
}

Status SessionJournal::WriteAll() {
  if (must_snapshot_) CACHALOT_RETURN_IF_ERROR(Snapshot());
  CACHALOT_RETURN_IF_ERROR(MakeRoom());
  // One after the other: a deletion is in its second place only when all before it is on disk.
  CACHALOT_RETURN_IF_ERROR(Write(log_, SessionFileKind::kLog, pending_));
  return Write(deletions_, SessionFileKind::kDeletions, pending_deletions_);
}

// For what is pending, beside what snapshots need.
Status SessionJournal::MakeRoom() {
  const uint64_t pending = pending_.bytes.size() + pending_deletions_.bytes.size();
  const uint64_t most = options_.limit_bytes - 2 * LiveBytesWithin(options_.limit_bytes);
  if (stats_.file_bytes + pending <= most) return OkStatus();
  CACHALOT_RETURN_IF_ERROR(Snapshot());
  if (stats_.file_bytes + pending <= most) return OkStatus();
  return Unavailable(fmt::format("{} and {} more in {} are too much for a limit of {}", FormatBytes(stats_.file_bytes),
                                 FormatBytes(pending), folder_, FormatBytes(options_.limit_bytes)));
}

Status SessionJournal::Write(SessionFileWriter& writer, SessionFileKind kind, Batch& batch) {
  if (batch.bytes.empty()) return OkStatus();
  if (!writer.is_open()) writer.SetHeader({kind, next_number_++, batch.first_sequence, 0, options_.uuid});
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t added, writer.Append(batch.bytes));
  stats_.file_bytes += added;
  batch = {};
  return OkStatus();
}

bool SessionJournal::WantsSnapshot() const {
  return stats_.file_bytes > 2 * stats_.live_bytes + options_.dead_bytes && stats_.file_bytes > next_snapshot_bytes_;
}

Status SessionJournal::Snapshot() {
  CACHALOT_ASSIGN_OR_RETURN(const SessionReplay replay, ReplaySessions(files_, folder_));
  CACHALOT_RETURN_IF_ERROR(Snapshot(replay));
  if (!pending_.bytes.empty()) return OkStatus();
  // What was damaged meanwhile is not in the journal any more: extending it is refused, putting it heals.
  stats_.lost_records += replay.recovery.lost_records + next_sequence_ - std::min(next_sequence_, replay.next_sequence);
  FillEntries(replay.sessions);
  return OkStatus();
}

Status SessionJournal::Snapshot(const SessionReplay& replay) {
  // The snapshot's number would be above theirs, and make what is appended to them void.
  log_.Close();
  deletions_.Close();
  const uint64_t next_sequence = pending_.bytes.empty() ? next_sequence_ : pending_.first_sequence;
  const SessionFileHeader header{SessionFileKind::kSnapshot, next_number_++, next_sequence, replay.sessions.size(),
                                 options_.uuid};
  CACHALOT_ASSIGN_OR_RETURN(stats_.file_bytes, log_.BeginWithSnapshot(replay.sessions, header));
  must_snapshot_ = false;
  next_snapshot_bytes_ = 0;
  ++stats_.snapshots;
  // One that stays is void, and is tried again with the next snapshot.
  for (const std::string& name : replay.names) {
    const std::string path = folder_ + "/" + name;
    if (files_.Remove(path).ok()) continue;
    if (const Result<uint64_t> occupied = files_.Occupied(path); occupied.ok()) stats_.file_bytes += *occupied;
  }
  return OkStatus();
}

uint64_t SessionJournal::TokensOf(const SessionKey& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? 0 : found->second.tokens;
}

SessionJournalStats SessionJournal::stats() const {
  SessionJournalStats stats = stats_;
  stats.sessions = entries_.size();
  stats.pending_bytes = pending_.bytes.size() + pending_deletions_.bytes.size();
  return stats;
}

}  // namespace cachalot::tier
