#include "tier/archive_file.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/testing/fault_file_system.h"

namespace cachalot::tier {
namespace {

constexpr const char* kFolder = "/saved";
constexpr const char* kPath = "/saved/talk";
constexpr uint64_t kSlotBytes = 256;

class ArchiveFile : public testing::Test {
 protected:
  ArchiveFile() {
    EXPECT_TRUE(disk_->MakeFolder(kFolder).ok());
    EXPECT_TRUE(disk_->SyncFolder("/").ok());
    key_.fill(7);
    header_.session.key = {"", "talk"};
    header_.session.identity.fill(3);
    header_.session.tokens.resize(50, 9);
    header_.session.ttl_seconds = 60;
    header_.slot_bytes = kSlotBytes;
    header_.block_tokens = 16;
    header_.kv_tokens = 47;
    header_.parts = 2;
    parts_ = {Part({0b11, 0b11}), Part({0b10})};
  }

  ArchivedKv Part(std::vector<uint32_t> groups) {
    ArchivedKv part;
    for (const uint32_t mask : groups) part.bytes.resize(part.bytes.size() + std::popcount(mask) * kSlotBytes);
    for (std::byte& byte : part.bytes) byte = static_cast<std::byte>(random_());
    part.groups = std::move(groups);
    return part;
  }
  Status Save() {
    ArchiveWriter writer(*disk_, kFolder, key_, min_free_bytes_);
    if (Status status = writer.Begin("talk", header_); !status.ok()) return status;
    for (const ArchivedKv& part : parts_) {
      if (Status status = writer.Append(part); !status.ok()) return status;
    }
    return writer.Finish();
  }
  // All of it, or why not.
  Status Read(const MacKey& key, const std::string& owner = "") {
    Result<ArchiveReader> reader = ArchiveReader::Open(*disk_, kFolder, owner, "talk", key);
    if (!reader.ok()) return reader.status();
    if (Status status = reader->CheckAll(); !status.ok()) return status;
    EXPECT_EQ(reader->header(), header_);
    for (const ArchivedKv& part : parts_) EXPECT_EQ(reader->Next().value(), part);
    return OkStatus();
  }
  Status Read() { return Read(key_); }
  std::vector<std::string> Names() { return disk_->List(kFolder).value(); }

  SplitMix64 random_{1};
  std::unique_ptr<FaultFileSystem> disk_ = std::make_unique<FaultFileSystem>();
  MacKey key_;
  ArchiveHeader header_;
  std::vector<ArchivedKv> parts_;
  uint64_t min_free_bytes_ = 0;
};

TEST_F(ArchiveFile, WhatWasSavedIsReadAgainAlsoAfterACrash) {
  ASSERT_TRUE(Save().ok());
  EXPECT_TRUE(Read().ok());
  disk_ = disk_->AfterCrash(Unsynced::kLost);
  EXPECT_TRUE(Read().ok());
  EXPECT_EQ(Names(), std::vector<std::string>{"talk"});
}

TEST_F(ArchiveFile, AnyBitThatChangedIsFound) {
  ASSERT_TRUE(Save().ok());
  const uint64_t bits = 8 * disk_->Contents(kPath).size();
  for (uint64_t bit = 0; bit < bits; bit += bit < 8 * 800 ? 1 : 37) {  // lengths, header, MACs and groups; then KV
    disk_->FlipBit(kPath, bit);
    ASSERT_EQ(Read().code(), Code::kCorrupt) << bit;
    disk_->FlipBit(kPath, bit);
  }
  EXPECT_TRUE(Read().ok());
}

TEST_F(ArchiveFile, CutAtAnyByteItIsRefused) {
  ASSERT_TRUE(Save().ok());
  const std::vector<std::byte> whole = disk_->Contents(kPath);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    disk_->SetContents(kPath, std::span(whole).first(bytes));
    ASSERT_EQ(Read().code(), Code::kCorrupt) << bytes;
  }
}

TEST_F(ArchiveFile, PartsThatWereAddedLeftOutOrPutInAnotherOrderAreFound) {
  parts_ = {Part({1}), Part({1}), Part({1})};
  header_.parts = 3;
  ASSERT_TRUE(Save().ok());
  const std::vector<std::byte> whole = disk_->Contents(kPath);
  const size_t part_bytes = 8 + 4 + 4 + kSlotBytes + 32, begin = whole.size() - 3 * part_bytes;
  const auto with = [&](std::vector<size_t> order) {
    std::vector<std::byte> bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(begin));
    for (const size_t part : order) {
      const auto first = whole.begin() + static_cast<ptrdiff_t>(begin + part * part_bytes);
      bytes.insert(bytes.end(), first, first + static_cast<ptrdiff_t>(part_bytes));
    }
    disk_->SetContents(kPath, bytes);
    return Read().code();
  };
  EXPECT_EQ(with({0, 1, 2}), Code::kOk);
  EXPECT_EQ(with({0, 2, 1}), Code::kCorrupt);
  EXPECT_EQ(with({0, 1}), Code::kCorrupt);
  EXPECT_EQ(with({0, 0, 1, 2}), Code::kCorrupt);
  EXPECT_EQ(with({0, 1, 2, 2}), Code::kCorrupt);
}

TEST_F(ArchiveFile, OfAnotherServersKeyItIsNotBelieved) {
  ASSERT_TRUE(Save().ok());
  MacKey other = key_;
  other[31] ^= 1;
  const Status status = Read(other);
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("not written by this server"), std::string::npos) << status.message();
}

TEST_F(ArchiveFile, WhatIsNotThereIsSaidToBeMissing) {
  EXPECT_EQ(Read().code(), Code::kInvalid);
  ASSERT_TRUE(Save().ok());
  disk_->Fail({FileOp::kRead, 1, true});
  EXPECT_EQ(Read().code(), Code::kUnavailable);
}

TEST_F(ArchiveFile, WhateverFailsTheOldFileStaysOrTheNewIsWhole) {
  ASSERT_TRUE(Save().ok());
  const ArchiveHeader before = header_;
  for (uint64_t nth = 1;; ++nth) {
    for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept, Unsynced::kMixed}) {
      header_ = before;
      ASSERT_TRUE(Save().ok());
      header_.session.created = nth;
      disk_->Fail({FileOp::kAny, nth, true});
      const bool saved = Save().ok();
      const auto after = disk_->AfterCrash(unsynced, nth);
      disk_->Heal();
      if (saved && unsynced == Unsynced::kMixed) return;
      Result<ArchiveReader> reader = ArchiveReader::Open(*after, kFolder, "", "talk", key_);
      ASSERT_TRUE(reader.ok()) << nth << ": " << reader.status().message();
      EXPECT_TRUE(reader->CheckAll().ok());
      EXPECT_TRUE(reader->header() == before || reader->header() == header_);
      if (saved) {
        EXPECT_EQ(reader->header(), header_);
      }
    }
  }
}

TEST_F(ArchiveFile, WhatWasNotFinishedLeavesNothing) {
  {
    ArchiveWriter writer(*disk_, kFolder, key_, 0);
    ASSERT_TRUE(writer.Begin("talk", header_).ok());
    ASSERT_TRUE(writer.Append(parts_[0]).ok());
  }
  EXPECT_TRUE(Names().empty());
}

TEST_F(ArchiveFile, EveryOwnerHasFilesOfTheirOwn) {
  header_.session.key.owner = "alice";
  ASSERT_TRUE(Save().ok());
  EXPECT_TRUE(Read(key_, "alice").ok());
  for (const char* other : {"bob", "alic", "alice@", ""}) EXPECT_EQ(Read(key_, other).code(), Code::kInvalid) << other;
  const ArchiveHeader hers = header_;
  header_.session.key.owner = "bob";
  header_.session.created = 5;
  ASSERT_TRUE(Save().ok());
  EXPECT_TRUE(Read(key_, "bob").ok());
  header_ = hers;
  EXPECT_TRUE(Read(key_, "alice").ok()) << "his lies elsewhere";
  EXPECT_EQ(Names().size(), 2u);
}

TEST_F(ArchiveFile, AFileThatWasGivenAnotherOwnersNameIsStillNotTheirs) {
  header_.session.key.owner = "alice";
  ASSERT_TRUE(Save().ok());
  const auto path = [](const char* owner) { return std::string(kFolder) + "/" + ArchiveFileName(owner, "talk"); };
  for (const char* other : {"bob", ""}) {
    disk_->SetContents(path(other), disk_->Contents(path("alice")));
    EXPECT_EQ(Read(key_, other).code(), Code::kInvalid) << other;
  }
}

TEST_F(ArchiveFile, WhatIsToStayFreeOnTheDiskStaysFree) {
  ASSERT_TRUE(Save().ok());
  const uint64_t free = disk_->Room(kFolder)->free_bytes, bytes = disk_->Contents(kPath).size();
  const ArchiveHeader before = header_;
  header_.session.created = 5;
  for (const uint64_t min_free : {free - bytes / 2, free, free + 1, ~uint64_t{0}}) {
    min_free_bytes_ = min_free;
    const Status status = Save();
    EXPECT_EQ(status.code(), Code::kOverloaded) << min_free;
    EXPECT_NE(status.message().find("the disk is full"), std::string::npos) << status.message();
    EXPECT_EQ(disk_->Room(kFolder)->free_bytes, free) << "nothing is left of it";
  }
  header_ = before;
  EXPECT_TRUE(Read().ok()) << "the old one stays";
}

TEST(ArchiveName, StaysInItsFolder) {
  for (const char* name : {"a", "A-b_c.9", "talk.kv"}) EXPECT_TRUE(CheckArchiveName(name).ok()) << name;
  for (const char* name : {"", ".", "..", ".hidden", "a/b", "../a", "a b", "\xc3\xa9", "a\n"}) {
    EXPECT_EQ(CheckArchiveName(name).code(), Code::kInvalid) << name;
  }
  EXPECT_TRUE(CheckArchiveName(std::string(128, 'a')).ok());
  EXPECT_FALSE(CheckArchiveName(std::string(129, 'a')).ok());
}

}  // namespace
}  // namespace cachalot::tier
