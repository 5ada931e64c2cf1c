#include "tier/session_journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "base/testing/fault_file_system.h"
#include "tier/testing/session_model.h"

namespace cachalot::tier {
namespace {

using Tokens = std::vector<TokenId>;

class Journal : public testing::Test {
 protected:
  Journal() {
    EXPECT_TRUE(disk_->MakeFolder("j").ok());
    EXPECT_TRUE(disk_->SyncFolder(".").ok());
  }

  static StoredSession Session(const std::string& owner, const std::string& id, Tokens tokens) {
    StoredSession session;
    session.key = {owner, id};
    session.identity.fill(7);
    session.tokens = std::move(tokens);
    session.created = 100;
    session.last_used = 200;
    session.ttl_seconds = 300;
    return session;
  }

  std::vector<StoredSession> Open() {
    options_.uuid[0] = static_cast<uint8_t>(options_.uuid[0] + 1);
    SessionJournal::Opened opened = SessionJournal::Open(*disk_, "j", options_).value();
    journal_ = std::move(opened.journal);
    recovery_ = opened.recovery;
    return opened.sessions;
  }
  std::vector<StoredSession> Reopen(Unsynced unsynced = Unsynced::kLost, uint64_t seed = 0) {
    auto after = disk_->AfterCrash(unsynced, seed);
    journal_.reset();
    disk_ = std::move(after);
    return Open();
  }
  std::vector<std::string> Names() { return disk_->List("j").value(); }
  std::string OnlyName(const std::string& prefix) {
    std::vector<std::string> names = Names();
    std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
    EXPECT_EQ(names.size(), 1u);
    return "j/" + names.at(0);
  }

  std::unique_ptr<FaultFileSystem> disk_ = std::make_unique<FaultFileSystem>();
  SessionJournalOptions options_;
  std::unique_ptr<SessionJournal> journal_;
  SessionRecovery recovery_;
};

TEST_F(Journal, AnEmptyFolderIsAnEmptyJournalAndNothingIsWritten) {
  EXPECT_TRUE(Open().empty());
  EXPECT_TRUE(journal_->Sync().ok());
  EXPECT_TRUE(Names().empty());
  EXPECT_EQ(SessionJournal::Open(*disk_, "none", options_).status().code(), Code::kUnavailable);
}

TEST_F(Journal, WhatWasSyncedIsThereAfterACrashAndNoMore) {
  Open();
  const StoredSession first = Session("a", "1", {1, 2, 3});
  ASSERT_TRUE(journal_->Put(first).ok());
  ASSERT_TRUE(journal_->Sync().ok());
  ASSERT_TRUE(journal_->Put(Session("a", "2", {4})).ok());
  EXPECT_EQ(Reopen(), std::vector<StoredSession>{first});
  EXPECT_EQ(recovery_.lost_records, 0u);
}

TEST_F(Journal, EveryChangeIsReplayed) {
  Open();
  for (const char* id : {"1", "2", "3"}) ASSERT_TRUE(journal_->Put(Session("a", id, {1, 2, 3})).ok());
  ASSERT_TRUE(journal_->Put(Session("b", "1", {9})).ok());
  ASSERT_TRUE(journal_->Put(Session("c", "1", {9})).ok());
  ASSERT_TRUE(journal_->Extend({"a", "1"}, 2, Tokens{7, 8}, 201).ok());
  ASSERT_TRUE(journal_->Extend({"a", "1"}, 4, Tokens{9}, 202).ok());
  ASSERT_TRUE(journal_->Touch({"a", "2"}, 999).ok());
  ASSERT_TRUE(journal_->SetHeld({"a", "2"}, true, true).ok());
  ASSERT_TRUE(journal_->Delete({"a", "3"}).ok());
  ASSERT_TRUE(journal_->ClearOwner("b").ok());
  ASSERT_TRUE(journal_->Sync().ok());
  StoredSession extended = Session("a", "1", {1, 2, 7, 8, 9});
  extended.last_used = 202;
  StoredSession touched = Session("a", "2", {1, 2, 3});
  touched.last_used = 999;
  touched.pinned = touched.suspended = true;
  const std::vector<StoredSession> all = {extended, touched, Session("c", "1", {9})};
  EXPECT_EQ(Reopen(), all);
  EXPECT_EQ(Reopen(), all);
  ASSERT_TRUE(journal_->Extend({"a", "1"}, 5, Tokens{10}, 203).ok());
  ASSERT_TRUE(journal_->Sync().ok());
  EXPECT_EQ(Reopen()[0].tokens, (Tokens{1, 2, 7, 8, 9, 10}));
  ASSERT_TRUE(journal_->ClearAll().ok());
  ASSERT_TRUE(journal_->Sync().ok());
  EXPECT_TRUE(Reopen().empty());
}

TEST_F(Journal, WrongInputIsRefusedAndChangesNothing) {
  Open();
  const std::string long_name(129, 'x');
  EXPECT_EQ(journal_->Put(Session("a", "", {})).code(), Code::kInvalid);
  EXPECT_EQ(journal_->Put(Session("a", long_name, {})).code(), Code::kInvalid);
  EXPECT_EQ(journal_->Put(Session(long_name, "1", {})).code(), Code::kInvalid);
  EXPECT_EQ(journal_->Put(Session("a", "1", Tokens(kSessionTokens + 1))).code(), Code::kInvalid);
  EXPECT_EQ(journal_->Delete({"a", long_name}).code(), Code::kInvalid);
  EXPECT_EQ(journal_->ClearOwner(long_name).code(), Code::kInvalid);
  EXPECT_EQ(journal_->Extend({"a", "1"}, 0, {}, 0).code(), Code::kInvalid);
  EXPECT_EQ(journal_->Touch({"a", "1"}, 0).code(), Code::kInvalid);
  EXPECT_EQ(journal_->SetHeld({"a", "1"}, true, false).code(), Code::kInvalid);
  EXPECT_EQ(journal_->stats().pending_bytes, 0u);
  ASSERT_TRUE(journal_->Put(Session("", std::string("\0\n/", 3) + std::string(125, 'y'), {1, 2})).ok());
  EXPECT_EQ(journal_->Extend({"", std::string("\0\n/", 3) + std::string(125, 'y')}, 3, Tokens{1}, 0).code(),
            Code::kInvalid);
  ASSERT_TRUE(journal_->Sync().ok());
  EXPECT_EQ(Reopen().at(0).tokens, (Tokens{1, 2}));
}

TEST_F(Journal, TheLongestSessionFits) {
  Open();
  StoredSession session = Session("a", "1", Tokens(kSessionTokens));
  std::iota(session.tokens.begin(), session.tokens.end(), 0);
  ASSERT_TRUE(journal_->Put(session).ok());
  EXPECT_EQ(journal_->Extend(session.key, kSessionTokens, Tokens{1}, 0).code(), Code::kInvalid);
  ASSERT_TRUE(journal_->Sync().ok());
  EXPECT_TRUE(Reopen() == std::vector<StoredSession>{session});
}

TEST_F(Journal, AFullBufferRefusesMore) {
  options_.pending_bytes_limit = 1000;
  Open();
  ASSERT_TRUE(journal_->Put(Session("a", "1", Tokens(100))).ok());
  EXPECT_EQ(journal_->Put(Session("a", "2", Tokens(200))).code(), Code::kUnavailable);
  EXPECT_EQ(journal_->Extend({"a", "1"}, 100, Tokens(200), 0).code(), Code::kUnavailable);
  EXPECT_EQ(journal_->stats().sessions, 1u);
  ASSERT_TRUE(journal_->Sync().ok());
  EXPECT_TRUE(journal_->Extend({"a", "1"}, 100, Tokens(200), 0).ok());
}

TEST_F(Journal, DeadBytesStayInProportionToLiveOnes) {
  options_.dead_bytes = 4000;
  Open();
  ASSERT_TRUE(journal_->Put(Session("a", "1", Tokens(1000))).ok());
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(journal_->Extend({"a", "1"}, 0, Tokens(1000, static_cast<TokenId>(i)), 5).ok());
    ASSERT_TRUE(journal_->Put(Session("a", "2", Tokens(10))).ok());
    ASSERT_TRUE(journal_->Delete({"a", "2"}).ok());
    ASSERT_TRUE(journal_->Sync().ok());
    uint64_t bytes = 0;
    for (const std::string& name : Names()) bytes += disk_->Contents("j/" + name).size();
    ASSERT_EQ(bytes, journal_->stats().file_bytes);
    ASSERT_LE(bytes, 2 * journal_->stats().live_bytes + options_.dead_bytes);
  }
  EXPECT_GT(journal_->stats().snapshots, 20u);
  EXPECT_EQ(Reopen(), std::vector<StoredSession>{[] {
              StoredSession session = Session("a", "1", Tokens(1000, 299));
              session.last_used = 5;
              return session;
            }()});
}

TEST_F(Journal, AFullDiskIsUnavailableFillsNoFurtherAndHeals) {
  Open();
  ASSERT_TRUE(journal_->Put(Session("a", "1", {1})).ok());
  ASSERT_TRUE(journal_->Sync().ok());
  disk_->SetTotalBytes(2 * 4096);
  ASSERT_TRUE(journal_->Put(Session("a", "2", Tokens(4000))).ok());
  for (uint64_t i = 1; i < 20; ++i) {
    EXPECT_EQ(journal_->Sync().code(), Code::kUnavailable);
    EXPECT_EQ(journal_->stats().failures_in_row, i);
    EXPECT_LE(Names().size(), 2u);
  }
  EXPECT_EQ(TableOf(SessionJournal::Open(*disk_->AfterCrash(Unsynced::kLost), "j", options_).value().sessions).size(),
            1u);
  disk_->SetTotalBytes(1 << 20);
  ASSERT_TRUE(journal_->Sync().ok());
  EXPECT_EQ(journal_->stats().failures_in_row, 0u);
  EXPECT_EQ(Reopen().size(), 2u);
}

TEST_F(Journal, AnUnreadableFileStopsOpeningBecauseItsDeletionsAreUnknown) {
  Open();
  ASSERT_TRUE(journal_->Put(Session("a", "1", {1})).ok());
  ASSERT_TRUE(journal_->Delete({"a", "1"}).ok());
  ASSERT_TRUE(journal_->Sync().ok());
  for (const FileOp op : {FileOp::kOpen, FileOp::kRead, FileOp::kList, FileOp::kSize}) {
    const auto copy = disk_->AfterCrash(Unsynced::kLost);
    copy->Fail({.op = op, .nth = 1, .onwards = false, .code = Code::kUnavailable});
    EXPECT_EQ(SessionJournal::Open(*copy, "j", options_).status().code(), Code::kUnavailable);
    EXPECT_TRUE(SessionJournal::Open(*copy, "j", options_).value().sessions.empty());
  }
}

TEST_F(Journal, OpensWhereNothingCanBeWrittenAndSaysSo) {
  Open();
  ASSERT_TRUE(journal_->Put(Session("a", "1", {1})).ok());
  ASSERT_TRUE(journal_->Sync().ok());
  auto after = disk_->AfterCrash(Unsynced::kKept);
  journal_.reset();
  disk_ = std::move(after);
  disk_->Fail({.op = FileOp::kWrite, .nth = 1, .onwards = true, .code = Code::kOverloaded});
  EXPECT_EQ(Open().size(), 1u);
  EXPECT_EQ(journal_->stats().failures_in_row, 1u);
  ASSERT_TRUE(journal_->Extend({"a", "1"}, 1, Tokens{2}, 3).ok());
  EXPECT_EQ(journal_->Sync().code(), Code::kUnavailable);
  disk_->Heal();
  ASSERT_TRUE(journal_->Sync().ok());
  EXPECT_EQ(Reopen().at(0).tokens, (Tokens{1, 2}));
}

// What a killed process wrote may be readable and yet not be on disk.
TEST_F(Journal, WhatOneProcessReadsIsOnDiskBeforeItBuildsOnIt) {
  Open();
  ASSERT_TRUE(journal_->Put(Session("a", "1", {1})).ok());
  disk_->Fail({.op = FileOp::kSync, .nth = 1, .onwards = true, .code = Code::kUnavailable});
  disk_->Fail({.op = FileOp::kRemove, .nth = 1, .onwards = true, .code = Code::kUnavailable});
  EXPECT_FALSE(journal_->Sync().ok());
  disk_->Heal();
  EXPECT_EQ(Open().size(), 1u);
  ASSERT_TRUE(journal_->Extend({"a", "1"}, 1, Tokens{2}, 3).ok());
  ASSERT_TRUE(journal_->Sync().ok());
  EXPECT_EQ(Reopen(Unsynced::kLost).at(0).tokens, (Tokens{1, 2}));
}

TEST_F(Journal, FilesOfOthersAreLeftAloneAndVoidOnesRemoved) {
  Open();
  ASSERT_TRUE(journal_->Put(Session("a", "1", {1})).ok());
  ASSERT_TRUE(journal_->Sync().ok());
  const std::vector<std::byte> log = disk_->Contents(OnlyName("sessions-"));
  disk_->SetContents("j/sessions-00000000000000ff.log", log);  // a copy under another name
  disk_->SetContents("j/notes.txt", log);
  disk_->SetContents("j/sessions-0000000000000002.tmp", log);
  disk_->SetContents("j/sessions-ffffffffffffffff.log", log);
  EXPECT_EQ(Reopen().size(), 1u);
  EXPECT_EQ(recovery_.foreign_files, 1u);
  EXPECT_EQ(Names(), (std::vector<std::string>{"notes.txt", "sessions-00000000000000ff.log",
                                               "sessions-0000000000000100.log", "sessions-ffffffffffffffff.log"}));
}

TEST_F(Journal, AnotherVersionIsRefusedNotLost) {
  Open();
  ASSERT_TRUE(journal_->Put(Session("a", "1", {1})).ok());
  ASSERT_TRUE(journal_->Sync().ok());
  const std::string path = OnlyName("sessions-");
  std::vector<std::byte> bytes = EncodeSessionFileHeader({SessionFileKind::kLog, 1, 1, 0, {}});
  bytes[8] = std::byte{3};
  const uint32_t crc = Crc32c(std::span(bytes).first(60));
  for (size_t i = 0; i < 4; ++i) bytes[60 + i] = static_cast<std::byte>(crc >> (8 * i));
  disk_->SetContents(path, bytes);
  const Status status = SessionJournal::Open(*disk_, "j", options_).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("version 3"), std::string::npos);
}

TEST_F(Journal, AFileBegunAgainVoidsWhatTheFailedOneHoldsOfIt) {
  Open();
  ASSERT_TRUE(journal_->Put(Session("a", "1", {1})).ok());
  ASSERT_TRUE(journal_->Sync().ok());
  ASSERT_TRUE(journal_->Put(Session("a", "1", {2})).ok());
  ASSERT_TRUE(journal_->Put(Session("a", "1", {3})).ok());
  // Written whole, not truncated away.
  disk_->Fail({.op = FileOp::kSync, .nth = 1, .onwards = false, .code = Code::kUnavailable});
  disk_->Fail({.op = FileOp::kTruncate, .nth = 1, .onwards = false, .code = Code::kUnavailable});
  EXPECT_EQ(journal_->Sync().code(), Code::kUnavailable);
  ASSERT_TRUE(journal_->Sync().ok());
  for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept}) {
    const auto after = disk_->AfterCrash(unsynced);
    const auto opened = SessionJournal::Open(*after, "j", options_).value();
    EXPECT_EQ(opened.sessions.at(0).tokens, Tokens{3});
    EXPECT_EQ(opened.recovery.lost_records, 0u);
    EXPECT_EQ(opened.recovery.unconnected_records, 0u);
  }
}

TEST_F(Journal, WorksOnARealDisk) {
  const std::string folder = testing::TempDir() + "cachalot_session_journal";
  std::filesystem::remove_all(folder);
  const auto files = DiskFileSystem();
  ASSERT_TRUE(files->MakeFolder(folder).ok());
  options_.dead_bytes = 1000;
  for (TokenId life = 0; life < 5; ++life) {
    SessionJournal::Opened opened = SessionJournal::Open(*files, folder, options_).value();
    ASSERT_EQ(opened.sessions.size(), life == 0 ? 0u : 2u);
    for (TokenId i = 0; i < 20; ++i) {
      ASSERT_TRUE(opened.journal->Put(Session("a", "1", {life, i})).ok());
      ASSERT_TRUE(opened.journal->Put(Session("a", "2", Tokens(100, i))).ok());
      ASSERT_TRUE(opened.journal->Put(Session("a", "3", {i})).ok());
      ASSERT_TRUE(opened.journal->Delete({"a", "3"}).ok());
      ASSERT_TRUE(opened.journal->Sync().ok());
    }
    EXPECT_GT(opened.journal->stats().snapshots, 0u);
  }
  const auto opened = SessionJournal::Open(*files, folder, options_).value();
  EXPECT_EQ(opened.sessions,
            (std::vector<StoredSession>{Session("a", "1", {4, 19}), Session("a", "2", Tokens(100, 19))}));
  EXPECT_EQ(files->List(folder).value().size(), 1u);
  std::filesystem::remove_all(folder);
}

// Records as a journal would write them, one after the other.
std::vector<std::byte> LogOf(const SessionFileHeader& header, const std::vector<SessionChange>& changes) {
  std::vector<std::byte> bytes = EncodeSessionFileHeader(header);
  for (const SessionChange& change : changes) AppendSessionRecord(change, SessionRecordSeed(header.uuid), bytes);
  return bytes;
}

SessionChange Put(uint64_t sequence, const std::string& id, Tokens tokens) {
  SessionChange change;
  change.sequence = sequence;
  change.session.key = {"a", id};
  change.session.tokens = std::move(tokens);
  return change;
}

TEST_F(Journal, AFileBegunAgainAndTornLeavesAMomentNotAMixture) {
  disk_->SetContents("j/sessions-0000000000000001.log",
                     LogOf({SessionFileKind::kLog, 1, 1, 0, {}},
                           {Put(1, "s", {1}), Put(2, "s", {2}), Put(3, "s", {3}), Put(4, "t", {4})}));
  disk_->SetContents("j/sessions-0000000000000002.log",
                     LogOf({SessionFileKind::kLog, 2, 2, 0, {}}, {Put(2, "s", {2})}));
  const std::vector<StoredSession> sessions = Open();
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].tokens, Tokens{2});
}

TEST_F(Journal, AnOldRecordFurtherOnIsPassedOver) {
  disk_->SetContents("j/sessions-0000000000000001.log",
                     LogOf({SessionFileKind::kLog, 1, 1, 0, {}},
                           {Put(1, "s", {1}), Put(2, "s", {2}), Put(1, "s", {1}), Put(3, "t", {3})}));
  const std::vector<StoredSession> sessions = Open();
  ASSERT_EQ(sessions.size(), 2u);
  EXPECT_EQ(sessions[0].tokens, Tokens{2});
  EXPECT_EQ(recovery_.lost_records, 0u);
}

// The file is read by 1 MiB: what follows the damage begins across the end of the first such part, or at it.
TEST_F(Journal, DamageIsPassedOverAcrossThePartsThatAreReadAtOnce) {
  constexpr uint64_t kPartBytes = 1 << 20;
  for (uint64_t before_end = 0; before_end < 6; ++before_end) {
    SessionChange first = Put(1, "", {});
    while ((kPartBytes - before_end - SessionRecordBytes(first.session)) % sizeof(TokenId) != 0) {
      first.session.key.id += 'x';
    }
    first.session.tokens.resize((kPartBytes - before_end - SessionRecordBytes(first.session)) / sizeof(TokenId));
    disk_->SetContents("j/sessions-0000000000000001.log",
                       LogOf({SessionFileKind::kLog, 1, 1, 0, {}}, {first, Put(2, "s", {2})}));
    disk_->FlipBit("j/sessions-0000000000000001.log", 8 * kSessionFileHeaderBytes);
    const auto replay = ReplaySessions(*disk_, "j").value();
    EXPECT_EQ(replay.sessions.size(), 1u) << before_end;
    EXPECT_EQ(replay.recovery.bad_bytes, kPartBytes - before_end);
  }
}

TEST_F(Journal, DamageFoundWhileWritingAnewIsCountedAndPuttingHeals) {
  options_.dead_bytes = 2000;
  Open();
  for (const char* id : {"1", "2", "3"}) ASSERT_TRUE(journal_->Put(Session("a", id, Tokens(50))).ok());
  ASSERT_TRUE(journal_->Sync().ok());
  disk_->FlipBit(OnlyName("sessions-"), 8 * (kSessionFileHeaderBytes + 100));
  while (journal_->stats().snapshots == 0) {
    ASSERT_TRUE(journal_->Extend({"a", "3"}, 0, Tokens(50), 5).ok());
    ASSERT_TRUE(journal_->Sync().ok());
  }
  EXPECT_EQ(journal_->stats().lost_records, 1u);
  EXPECT_EQ(journal_->Extend({"a", "1"}, 50, Tokens{1}, 5).code(), Code::kInvalid);
  ASSERT_TRUE(journal_->Put(Session("a", "1", {1, 2})).ok());
  ASSERT_TRUE(journal_->Sync().ok());
  EXPECT_EQ(Reopen().size(), 3u);
  EXPECT_EQ(recovery_.lost_records, 0u);
}

}  // namespace
}  // namespace cachalot::tier
