#include "tier/session_store.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/testing/fault_file_system.h"
#include "tier/testing/fake_transfer_engine.h"
#include "tier/testing/session_model.h"

namespace cachalot::tier {
namespace {

// A store beside the table that it is to keep, over a disk that crashes.
class StoreWalk {
 public:
  explicit StoreWalk(uint64_t seed, double fail_share = 0) : random_(seed), fail_share_(fail_share) { Open(); }

  FaultFileSystem& disk() { return *disk_; }
  SessionStore& store() { return *store_; }
  const SessionTable& table() const { return moments_.back(); }
  uint64_t acknowledged() const { return acknowledged_; }

  void Change() {
    SessionTable table = moments_.back();
    const SessionKey key{std::to_string(random_.Below(2)), std::to_string(random_.Below(6))};
    const auto found = table.find(key);
    if (found == table.end()) {
      StoredSession session{.key = key, .created = random_(), .last_used = random_()};
      session.tokens = SomeTokens(20);
      table[key] = session;
      store_->NotePut(key);
    } else {
      ChangeOne(&table, found);
    }
    moments_.push_back(std::move(table));
  }

  SessionStore::SyncId Sync() {
    const SessionStore::SyncId id = store_->Sync();
    syncs_[id] = moments_.size() - 1;
    return id;
  }

  void Step() {
    clock_.Advance(Nanos(50'000));
    for (const SessionStore::Ended& ended : store_->Poll(Lookup())) {
      ASSERT_TRUE(syncs_.contains(ended.id)) << "ended twice";
      if (ended.status.ok()) floor_ = std::max(floor_, syncs_[ended.id]);
      acknowledged_ += ended.status.ok();
      syncs_.erase(ended.id);
    }
  }
  void Wait(Nanos time) { clock_.Advance(time); }
  bool answered(SessionStore::SyncId id) const { return !syncs_.contains(id); }

  void Finish() {
    for (int i = 0; i < 1000 && !store_->idle(); ++i) {
      clock_.Advance(std::chrono::milliseconds(50));
      Step();
    }
    EXPECT_TRUE(store_->idle());
  }

  // What is there afterwards must have been so since the last sync that was acknowledged: each session by itself.
  void Crash(Unsynced unsynced) {
    store_.reset();
    disk_ = disk_->AfterCrash(unsynced, random_());
    Open();
    const SessionTable found = TableOf(found_);
    std::set<SessionKey> keys;
    for (const auto& [key, session] : found) keys.insert(key);
    for (const SessionTable& moment : moments_) {
      for (const auto& [key, session] : moment) keys.insert(key);
    }
    const auto state_in = [](const SessionTable& table, const SessionKey& key) {
      const auto at = table.find(key);
      return at == table.end() ? std::nullopt : std::optional(at->second);
    };
    for (const SessionKey& key : keys) {
      const auto now = state_in(found, key);
      EXPECT_TRUE(std::any_of(moments_.begin() + static_cast<ptrdiff_t>(floor_), moments_.end(),
                              [&](const SessionTable& moment) { return state_in(moment, key) == now; }))
          << key.owner << "/" << key.id << (now ? " is" : " is not") << " there";
    }
    moments_ = {found};
    floor_ = 0;
    syncs_.clear();
  }

  SessionStore::Lookup Lookup() const {
    return [this](const SessionKey& key) {
      const auto found = moments_.back().find(key);
      return found == moments_.back().end() ? nullptr : &found->second;
    };
  }

 private:
  std::vector<TokenId> SomeTokens(uint64_t most) {
    std::vector<TokenId> tokens(random_.Below(most));
    for (TokenId& token : tokens) token = static_cast<TokenId>(random_.Below(1000));
    return tokens;
  }

  void ChangeOne(SessionTable* table, SessionTable::iterator found) {
    StoredSession& session = found->second;
    const SessionKey key = session.key;
    switch (random_.Below(4)) {
      case 0: table->erase(found); return store_->NoteDeleted(key);
      case 1: {
        const uint64_t from = random_.Below(session.tokens.size() + 1);
        session.tokens.resize(from);
        const std::vector<TokenId> more = SomeTokens(10);
        session.tokens.insert(session.tokens.end(), more.begin(), more.end());
        session.last_used = random_();
        return store_->NoteExtended(key, from);
      }
      case 2:
        session.pinned = random_.Below(2) == 0;
        session.suspended = random_.Below(2) == 0;
        return store_->NoteHeld(key);
      default: session.last_used = random_(); return store_->NoteUsed(key);
    }
  }

  void Open() {
    const FakeTransferFaults faults{.seed = random_(),
                                    .least_latency = Nanos(1000),
                                    .most_latency = Nanos(300'000),
                                    .fail_share = fail_share_,
                                    .hold_share = fail_share_};
    const SessionStoreOptions options{.folder = "/sessions", .lock = false, .entropy = [this] { return random_(); }};
    auto opened = SessionStore::Open(*disk_, clock_, options, [&](auto) -> Result<std::unique_ptr<TransferEngine>> {
      const TransferOptions transfers{.limits = {.in_flight_bytes = {1, 1}}, .threads = 1};
      return std::unique_ptr<TransferEngine>(new FakeTransferEngine({}, transfers, faults, clock_));
    });
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    store_ = std::move(*opened);
    found_ = store_->TakeFound();
  }

  SplitMix64 random_;
  const double fail_share_;
  ManualClock clock_;
  std::unique_ptr<FaultFileSystem> disk_ = std::make_unique<FaultFileSystem>();
  std::unique_ptr<SessionStore> store_;
  std::vector<StoredSession> found_;
  std::vector<SessionTable> moments_{1};
  std::map<SessionStore::SyncId, size_t> syncs_;
  size_t floor_ = 0;
  uint64_t acknowledged_ = 0;
};

TEST(SessionStore, WhatWasSyncedIsThereAfterACrash) {
  StoreWalk walk(1);
  for (int i = 0; i < 20; ++i) walk.Change();
  const SessionTable table = walk.table();
  walk.Sync();
  walk.Finish();
  EXPECT_EQ(walk.acknowledged(), 1u);
  walk.Crash(Unsynced::kLost);
  EXPECT_EQ(walk.table(), table);
}

TEST(SessionStore, WithoutASyncItIsWrittenAllTheSame) {
  StoreWalk walk(2);
  for (int i = 0; i < 20; ++i) walk.Change();
  const SessionTable table = walk.table();
  walk.Finish();
  walk.Crash(Unsynced::kLost);
  EXPECT_EQ(walk.table(), table);
}

TEST(SessionStore, WhateverHappensNothingAcknowledgedIsLostAndNothingDeletedComesBack) {
  uint64_t acknowledged = 0, crashes = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SplitMix64 random(seed * 7919);
    StoreWalk walk(seed, seed % 3 == 0 ? 0.2 : 0);
    for (int step = 0; step < 300; ++step) {
      if (random.Below(2) == 0) walk.Change();
      if (random.Below(8) == 0) walk.Sync();
      if (random.Below(40) == 0) {
        const auto op = static_cast<FileOp>(random.Below(static_cast<uint64_t>(FileOp::kAny)));
        walk.disk().Fail({.op = op, .nth = 1 + random.Below(3), .onwards = random.Below(4) == 0});
      }
      if (random.Below(20) == 0) walk.disk().Heal();
      if (random.Below(30) == 0) walk.Wait(std::chrono::seconds(2));
      walk.Step();
      if (random.Below(60) != 0) continue;
      walk.disk().Heal();
      walk.Crash(random.Below(3) == 0 ? Unsynced::kKept : Unsynced::kMixed);
      ++crashes;
    }
    acknowledged += walk.acknowledged();
    walk.disk().Heal();
    walk.Wait(std::chrono::seconds(2));
    walk.Finish();
    const SessionTable table = walk.table();
    walk.Crash(Unsynced::kLost);
    EXPECT_EQ(walk.table(), table) << seed;
  }
  EXPECT_GT(acknowledged, 1000u);
  EXPECT_GT(crashes, 500u);
}

TEST(SessionStore, ADiskThatFailsIsToldAndTriedAgain) {
  StoreWalk walk(3);
  walk.disk().Fail({.op = FileOp::kWrite, .onwards = true});
  for (int i = 0; i < 20; ++i) walk.Change();
  for (int tries = 0; tries < 4; ++tries) {
    const auto sync = walk.Sync();
    walk.Wait(std::chrono::seconds(2));
    for (int i = 0; i < 50 && !walk.answered(sync); ++i) walk.Step();
    EXPECT_TRUE(walk.answered(sync));
  }
  EXPECT_EQ(walk.acknowledged(), 0u);
  EXPECT_FALSE(walk.store().stats().health.ok());
  walk.disk().Heal();
  walk.Wait(std::chrono::seconds(2));
  const SessionTable table = walk.table();
  walk.Finish();
  EXPECT_TRUE(walk.store().stats().health.ok());
  walk.Crash(Unsynced::kLost);
  EXPECT_EQ(walk.table(), table);
}

// As much goes as comes, in one batch, and the power fails while it is written: what is left is no more than fits.
TEST(SessionStore, ABatchThatIsCutShortFitsAsWell) {
  constexpr uint64_t kLimit = 600 << 10, kSessions = 20;
  const auto record = [&](const std::string& id, uint64_t tokens) {
    return StoredSession{.key = {"", id}, .tokens = std::vector<TokenId>(tokens)};
  };
  uint64_t cut_short = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    auto disk = std::make_unique<FaultFileSystem>();
    ManualClock clock;
    std::map<SessionKey, StoredSession> table;
    const auto find = [&](const SessionKey& key) {
      const auto found = table.find(key);
      return found == table.end() ? nullptr : &found->second;
    };
    const auto opened = [&] {
      const SessionStoreOptions options{.folder = "/sessions", .lock = false, .limit_bytes = kLimit};
      return SessionStore::Open(*disk, clock, options, [&](auto) -> Result<std::unique_ptr<TransferEngine>> {
        const TransferOptions transfers{.limits = {.in_flight_bytes = {1, 1}}, .threads = 1};
        return std::unique_ptr<TransferEngine>(new FakeTransferEngine({}, transfers, {.seed = seed}, clock));
      });
    };
    auto store = opened();
    ASSERT_TRUE(store.ok());
    const auto write = [&] {
      for (int i = 0; i < 20; ++i) {
        (void)(*store)->Poll(find);
        clock.Advance(std::chrono::milliseconds(1));
      }
    };
    const auto put = [&](const StoredSession& session) {
      table[session.key] = session;
      (*store)->NotePut(session.key);
    };
    for (uint64_t i = 0; i < kSessions; ++i) put(record(fmt::format("old{}", i), 1200));
    write();
    for (uint64_t i = 0; i < kSessions; ++i) {
      put(record(fmt::format("new{}", i), 600));
      put(record(fmt::format("old{}", i), i % 2 == 0 ? 1200 : 0));
      if (i % 2 == 0) continue;
      table.erase({"", fmt::format("old{}", i)});
      (*store)->NoteDeleted({"", fmt::format("old{}", i)});
    }
    disk->Fail({.op = FileOp::kAny, .nth = 1 + seed % 4, .onwards = true});
    write();
    store->reset();
    disk = disk->AfterCrash(Unsynced::kKept, seed);
    store = opened();
    ASSERT_TRUE(store.ok()) << store.status().message();
    const size_t found = (*store)->TakeFound().size();
    cut_short += found != kSessions && found != table.size();
  }
  EXPECT_GT(cut_short, 5u);
}

// A client that begins and deletes sessions while the disk fails.
TEST(SessionStore, WhatTheJournalNeverSawCostsNothingOnceItIsDeleted) {
  StoreWalk walk(4);
  walk.disk().Fail({.op = FileOp::kAny, .onwards = true});
  for (int i = 0; i < 1000; ++i) {
    const SessionKey key{"", std::to_string(i)};
    walk.store().NotePut(key);
    walk.store().NoteDeleted(key);
  }
  walk.Step();
  EXPECT_EQ(walk.store().stats().unwritten, 0u);
}

TEST(SessionStore, AFolderHasOneProcess) {
  std::string folder = std::filesystem::temp_directory_path() / "cachalot_sessions_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto files = DiskFileSystem();
  SteadyClock clock;
  const SessionStoreOptions options{.folder = folder + "/sessions"};
  {
    const auto first = SessionStore::Open(*files, clock, options);
    ASSERT_TRUE(first.ok()) << first.status().message();
    EXPECT_EQ(SessionStore::Open(*files, clock, options).status().code(), Code::kUnavailable);
  }
  // A real thread and a real disk.
  const StoredSession session{.key = {"", "a"}, .tokens = {1, 2, 3}};
  const auto find = [&](const SessionKey&) { return &session; };
  {
    const auto store = SessionStore::Open(*files, clock, options).value();
    Mutex mutex;
    CondVar changed;
    bool woken = false;
    store->OnEnd([&] {
      MutexLock lock(mutex);
      woken = true;
      changed.NotifyAll();
    });
    store->NotePut(session.key);
    const auto id = store->Sync();
    EXPECT_TRUE(store->Poll(find).empty());
    {
      MutexLock lock(mutex);
      while (!woken) changed.Wait(mutex);
    }
    const auto ended = store->Poll(find);
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_EQ(ended.front().id, id);
    EXPECT_TRUE(ended.front().status.ok());
    store->OnEnd({});
  }
  const auto store = SessionStore::Open(*files, clock, options).value();
  EXPECT_EQ(store->TakeFound(), std::vector<StoredSession>{session});
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cachalot::tier
