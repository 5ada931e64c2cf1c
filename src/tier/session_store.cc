#include "tier/session_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace cachalot::tier {
namespace {

constexpr uint32_t kFailuresUntilDegraded = 3;
constexpr Nanos kRetry = std::chrono::seconds(1);  // between tries while writing fails
constexpr const char* kLockFile = "lock";

JournalUuid NewUuid(const std::function<uint64_t()>& entropy) {
  const std::array<uint64_t, 2> bits = {entropy(), entropy()};
  JournalUuid uuid;
  std::memcpy(uuid.data(), bits.data(), uuid.size());
  return uuid;
}

Status Apply(SessionJournal& journal, const SessionChange& change) {
  const StoredSession& session = change.session;
  switch (change.kind) {
    case SessionChangeKind::kPut: return journal.Put(session);
    case SessionChangeKind::kExtend:
      return journal.Extend(session.key, change.from_position, session.tokens, session.last_used);
    case SessionChangeKind::kTouch: return journal.Touch(session.key, session.last_used);
    case SessionChangeKind::kHold: return journal.SetHeld(session.key, session.pinned, session.suspended);
    default: return journal.Delete(session.key);
  }
}

}  // namespace

// Gives changes to the journal and makes them last.
class SessionStore::Batch final : public TransferJob {
 public:
  Batch(SessionJournal& journal, std::vector<SessionChange> changes)
      : journal_(journal), changes_(std::move(changes)), stats_(journal.stats()) {}

  Status Run(std::span<std::byte>, const std::atomic<bool>&) override {
    Status status = ApplyAll();
    stats_ = journal_.stats();
    return status;
  }

  // Those that the journal did not take.
  std::vector<SessionKey> Refused() const {
    std::vector<SessionKey> keys = unknown_;
    for (size_t i = applied_; i < changes_.size(); ++i) keys.push_back(changes_[i].session.key);
    return keys;
  }
  const SessionJournalStats& stats() const { return stats_; }

 private:
  Status ApplyAll() {
    for (; applied_ < changes_.size(); ++applied_) {
      Status status = Apply(journal_, changes_[applied_]);
      if (status.code() == Code::kUnavailable) {  // too much waits in memory
        CACHALOT_RETURN_IF_ERROR(journal_.Sync());
        status = Apply(journal_, changes_[applied_]);
      }
      if (status.code() == Code::kInvalid) {
        unknown_.push_back(changes_[applied_].session.key);  // damage took it from the journal
      } else {
        CACHALOT_RETURN_IF_ERROR(status);
      }
    }
    CACHALOT_RETURN_IF_ERROR(journal_.Sync());
    return unknown_.empty() ? OkStatus() : Unavailable("session journal: damage took sessions that are written anew");
  }

  SessionJournal& journal_;
  const std::vector<SessionChange> changes_;
  size_t applied_ = 0;
  std::vector<SessionKey> unknown_;
  SessionJournalStats stats_;
};

SessionStore::SessionStore(SessionJournal::Opened journal, std::optional<FileLock> lock, Clock& clock)
    : lock_(std::move(lock)),
      journal_(std::move(journal.journal)),
      recovery_(journal.recovery),
      found_(std::move(journal.sessions)),
      clock_(clock),
      health_(kFailuresUntilDegraded, kRetry),
      journal_stats_(journal_->stats()) {
  for (const StoredSession& session : found_) written_.insert(session.key);
}

SessionStore::~SessionStore() = default;

Result<std::unique_ptr<SessionStore>> SessionStore::Open(FileSystem& files, Clock& clock,
                                                         const SessionStoreOptions& options,
                                                         const MakeTransfers& make_transfers) {
  CACHALOT_RETURN_IF_ERROR(files.MakeFolder(options.folder));
  // The folder itself may be new. Where the one above cannot be opened, it was there before.
  (void)files.SyncFolder(FolderAbove(options.folder));
  std::optional<FileLock> lock;
  if (options.lock) {
    Result<FileLock> held = FileLock::TryAcquire(fmt::format("{}/{}", options.folder, kLockFile));
    if (!held.ok()) return held.status().Annotate(fmt::format("sessions in {}", options.folder));
    lock = std::move(held).value();
  }
  Result<SessionJournal::Opened> journal =
      SessionJournal::Open(files, options.folder, JournalWithin(options.limit_bytes, NewUuid(options.entropy)));
  if (!journal.ok()) return journal.status().Annotate(fmt::format("sessions in {}", options.folder));
  std::unique_ptr<SessionStore> store(new SessionStore(std::move(*journal), std::move(lock), clock));
  CACHALOT_ASSIGN_OR_RETURN(store->transfers_, make_transfers(store->listener_.notify()));
  return store;
}

Result<std::unique_ptr<SessionStore>> SessionStore::Open(FileSystem& files, Clock& clock,
                                                         const SessionStoreOptions& options) {
  return Open(files, clock, options, [&clock](std::function<void()> notify) {
    return MakeTransferEngine({}, {.limits = {.in_flight_bytes = {1, 1}}, .threads = 1, .notify = std::move(notify)},
                              clock);
  });
}

void SessionStore::NotePut(const SessionKey& key) { dirty_[key].whole = true; }

void SessionStore::NoteExtended(const SessionKey& key, uint64_t from_position) {
  Dirty& dirty = dirty_[key];
  dirty.from_position = std::min(dirty.from_position.value_or(from_position), from_position);
}

// One that the journal never saw leaves no trace.
void SessionStore::NoteDeleted(const SessionKey& key) {
  if (written_.contains(key)) {
    dirty_[key].whole = true;
  } else {
    dirty_.erase(key);
  }
}

SessionStore::SyncId SessionStore::Sync() {
  syncs_.push_back(SyncId(++last_sync_));
  return syncs_.back();
}

std::vector<SessionStore::Ended> SessionStore::Poll(const Lookup& find) {
  std::vector<Ended> ended;
  for (TransferCompletion& completion : transfers_->Poll()) End(completion, &ended);
  if (!under_way_ && busy() && clock_.Now() >= begins_at()) Begin(find);
  return ended;
}

void SessionStore::Begin(const Lookup& find) {
  auto batch = std::make_unique<Batch>(*journal_, TakeChanges(find));
  Result<TransferId> id = transfers_->Submit({.priority = TransferPriority::kWriteBack,
                                              .link = TierId::kDisk,
                                              .direction = Direction::kDown,
                                              .job = std::move(batch)});
  CACHALOT_CHECK(id.ok());  // it is the only one
  under_way_ = *id;
  unsynced_ = false;
  syncs_in_batch_ = std::exchange(syncs_, {});
}

std::vector<SessionChange> SessionStore::TakeChanges(const Lookup& find) {
  std::vector<SessionChange> changes;
  for (const auto& [key, dirty] : std::exchange(dirty_, {})) {
    const StoredSession* session = find(key);
    if (session == nullptr) {
      if (written_.erase(key) > 0) changes.push_back({.kind = SessionChangeKind::kDelete, .session = {.key = key}});
    } else if (dirty.whole || written_.insert(key).second) {
      changes.push_back({.kind = SessionChangeKind::kPut, .session = *session});
      written_.insert(key);
    } else {
      AddChanges(*session, dirty, &changes);
    }
  }
  // What makes room comes first: a batch that a crash cuts short leaves no more than was there before, or is after it.
  std::stable_partition(changes.begin(), changes.end(), [this](const SessionChange& change) {
    return change.from_position + change.session.tokens.size() <= journal_->TokensOf(change.session.key);
  });
  return changes;
}

// To one that the journal has.
void SessionStore::AddChanges(const StoredSession& session, const Dirty& dirty, std::vector<SessionChange>* changes) {
  StoredSession part{
      .key = session.key, .last_used = session.last_used, .pinned = session.pinned, .suspended = session.suspended};
  if (dirty.held) changes->push_back({.kind = SessionChangeKind::kHold, .session = part});
  if (dirty.from_position) {
    part.tokens.assign(session.tokens.begin() + static_cast<ptrdiff_t>(*dirty.from_position), session.tokens.end());
    changes->push_back({.kind = SessionChangeKind::kExtend, .from_position = *dirty.from_position, .session = part});
  } else if (dirty.used) {
    changes->push_back({.kind = SessionChangeKind::kTouch, .session = part});
  }
}

void SessionStore::End(TransferCompletion& completion, std::vector<Ended>* ended) {
  under_way_.reset();
  const auto& batch = static_cast<const Batch&>(*completion.job);
  journal_stats_ = batch.stats();
  for (const SessionKey& key : batch.Refused()) {
    dirty_[key].whole = true;
    written_.insert(key);  // so that a deletion among them is written again
  }
  unsynced_ = !completion.status.ok();
  if (unsynced_) retry_at_ = clock_.Now() + kRetry;
  (void)health_.Note(completion.status, clock_.Now());
  for (const SyncId id : std::exchange(syncs_in_batch_, {})) ended->push_back({id, completion.status});
}

void SessionStore::OnEnd(std::function<void()> call) { listener_.Set(std::move(call)); }

std::optional<Nanos> SessionStore::WakeAt() const {
  const std::optional<Nanos> transfer = transfers_->WakeAt();
  if (under_way_ || !busy()) return transfer;
  return transfer ? std::min(*transfer, begins_at()) : begins_at();
}

SessionStoreStats SessionStore::stats() const { return {journal_stats_, dirty_.size(), health_.health()}; }

}  // namespace cachalot::tier
