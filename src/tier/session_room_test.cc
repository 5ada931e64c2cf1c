// The room that a session journal keeps to, on disks that have no more.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/random.h"
#include "base/testing/fault_file_system.h"
#include "tier/session_journal.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kLimit = 600 << 10;
constexpr uint64_t kRounding = 8 * 4096;  // pages that files do not fill

class RoomWalk {
 public:
  explicit RoomWalk(uint64_t seed) : random_(seed) { disk_->SetTotalBytes(kLimit + kRounding); }

  Status Open() {
    JournalUuid uuid{};
    uuid[0] = static_cast<uint8_t>(++opened_);
    if (const Status made = disk_->MakeFolder("/j"); !made.ok()) return made;
    (void)disk_->SyncFolder("/");
    Result<SessionJournal::Opened> opened = SessionJournal::Open(*disk_, "/j", JournalWithin(kLimit, uuid));
    if (!opened.ok()) return opened.status();
    journal_ = std::move(opened->journal);
    sessions_.clear();
    for (const StoredSession& session : opened->sessions) sessions_[session.key] = session.tokens.size();
    return OkStatus();
  }

  // Puts or extends, and deletes, so that no more is live than may be. What the disk did.
  Status Change() {
    const SessionKey key{"owner", std::to_string(random_.Below(300))};
    const uint64_t tokens = random_.Below(3000);
    if (sessions_.contains(key) && random_.Below(3) == 0) {
      const Status status = Try([&] { return journal_->Extend(key, sessions_[key], std::vector<TokenId>(10), 5); });
      if (!status.ok()) return status;
      sessions_[key] += 10;
    } else {
      const Status status = Try([&] { return journal_->Put({.key = key, .tokens = std::vector<TokenId>(tokens)}); });
      if (!status.ok()) return status;
      sessions_[key] = tokens;
    }
    while (Live() > LiveBytesWithin(kLimit)) {
      auto going = sessions_.begin();
      std::advance(going, random_.Below(sessions_.size()));
      const Status status = Try([&] { return journal_->Delete(going->first); });
      if (!status.ok()) return status;
      sessions_.erase(going);
    }
    return OkStatus();
  }

  Status Sync() { return journal_->Sync(); }
  void Crash(Unsynced unsynced) {
    journal_.reset();
    disk_ = disk_->AfterCrash(unsynced, random_());
    disk_->SetTotalBytes(kLimit + kRounding);
  }
  FaultFileSystem& disk() { return *disk_; }
  SplitMix64& random() { return random_; }
  uint64_t snapshots() const { return journal_->stats().snapshots; }

 private:
  // Again once what waits is written, where too much does.
  Status Try(const std::function<Status()>& change) {
    if (change().ok()) return OkStatus();
    const Status synced = Sync();
    return synced.ok() ? change() : synced;
  }
  uint64_t Live() const {
    uint64_t bytes = 0;
    for (const auto& [key, tokens] : sessions_) bytes += 512 + 4 * tokens;
    return bytes;
  }

  SplitMix64 random_;
  std::unique_ptr<FaultFileSystem> disk_ = std::make_unique<FaultFileSystem>();
  std::unique_ptr<SessionJournal> journal_;
  std::map<SessionKey, uint64_t> sessions_;  // tokens
  uint32_t opened_ = 0;
};

TEST(SessionRoom, OnADiskOfExactlyTheLimitNothingEverFails) {
  RoomWalk walk(1);
  ASSERT_TRUE(walk.Open().ok());
  for (int i = 0; i < 2000; ++i) {
    const Status changed = walk.Change();
    ASSERT_TRUE(changed.ok()) << changed.message();
    if (walk.random().Below(4) != 0) continue;
    const Status synced = walk.Sync();
    ASSERT_TRUE(synced.ok()) << synced.message();
  }
  EXPECT_GT(walk.snapshots(), 10u);
}

TEST(SessionRoom, NorAfterCrashesAtAnyOperation) {
  RoomWalk walk(2);
  for (int life = 0; life < 60; ++life) {
    const Status opened = walk.Open();
    ASSERT_TRUE(opened.ok()) << opened.message();
    const Status first = walk.Sync();
    ASSERT_TRUE(first.ok()) << "life " << life << ": " << first.message();
    const bool crashes = life % 4 != 0;
    if (crashes) walk.disk().Fail({FileOp::kAny, 1 + walk.random().Below(300), true, Code::kUnavailable});
    for (int i = 0; i < 400; ++i) {
      Status status = walk.Change();
      if (status.ok() && walk.random().Below(3) == 0) status = walk.Sync();
      if (!status.ok() && crashes) break;
      ASSERT_TRUE(status.ok()) << status.message();
    }
    walk.Crash(static_cast<Unsynced>(life % 3));
  }
}

TEST(SessionRoom, MoreSessionsThanFitAreRefusedAtTheOpening) {
  FaultFileSystem disk;
  ASSERT_TRUE(disk.MakeFolder("/j").ok());
  auto opened = SessionJournal::Open(disk, "/j", {});
  ASSERT_TRUE(opened->journal->Put({.key = {"o", "s"}, .tokens = std::vector<TokenId>(30'000)}).ok());
  ASSERT_TRUE(opened->journal->Sync().ok());
  const Status refused = SessionJournal::Open(disk, "/j", JournalWithin(kLimit, {})).status();
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.message().find("KiB"), std::string::npos) << refused.message();
}

TEST(SessionRoom, WhatWouldPassTheLimitIsNotWritten) {
  FaultFileSystem disk;
  ASSERT_TRUE(disk.MakeFolder("/j").ok());
  auto opened = SessionJournal::Open(disk, "/j", JournalWithin(kLimit, {}));
  Status synced;
  for (int i = 0; i < 20 && synced.ok(); ++i) {
    const SessionKey key{"o", std::to_string(i)};
    ASSERT_TRUE(opened->journal->Put({.key = key, .tokens = std::vector<TokenId>(20'000)}).ok());
    synced = opened->journal->Sync();
  }
  EXPECT_EQ(synced.code(), Code::kUnavailable);
  EXPECT_LE(opened->journal->stats().file_bytes, kLimit);
}

}  // namespace
}  // namespace cachalot::tier
