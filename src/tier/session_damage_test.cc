// The session journal's files damaged: each byte flipped, each length cut to.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/testing/fault_file_system.h"
#include "tier/session_file_reader.h"
#include "tier/session_journal.h"
#include "tier/testing/session_model.h"

namespace cachalot::tier {
namespace {

// A record of a file: where it ends, and whose it is; all are their own when it deletes an owner's.
struct Place {
  uint64_t end = 0;
  SessionKey key;
  bool deletes = false;
};

class SessionDamage : public testing::TestWithParam<bool> {
 protected:
  // A small journal, with a snapshot or without. Every session was written more than once, half of them are deleted.
  SessionDamage() {
    EXPECT_TRUE(disk_.MakeFolder("j").ok());
    SplitMix64 random(3);
    auto journal = SessionJournal::Open(disk_, "j", options_).value().journal;
    Change(*journal, random);
    if (GetParam()) {
      journal = SessionJournal::Open(disk_, "j", options_).value().journal;
      Change(*journal, random);
    }
    final_ = model_.moments().back();
    for (const SessionTable& table : model_.moments()) {
      for (const auto& [key, session] : table) versions_[key].push_back(session);
    }
    names_ = disk_.List("j").value();
  }

  void Change(SessionJournal& journal, SplitMix64& random) {
    for (int i = 0; i < 25; ++i) {
      model_.ChangeBoth(journal, random);
      EXPECT_TRUE(journal.Sync().ok());
    }
    for (const char* id : {"0", "1"}) {
      ASSERT_TRUE(journal.Put({{"gone", id}, {}, {}, {1, 2, 3}, 0, 0, 0, false}).ok());
      ASSERT_TRUE(journal.Sync().ok());
      ASSERT_TRUE(journal.Delete({"gone", id}).ok());
    }
    ASSERT_TRUE(journal.Sync().ok());
  }

  std::vector<Place> PlacesIn(const std::string& path) {
    SessionFileReader reader = SessionFileReader::Open(disk_, path).value();
    std::vector<Place> places;
    uint64_t end = kSessionFileHeaderBytes;
    while (const std::optional<SessionChange> change = reader.Next().value()) {
      end += SessionRecordBytes(change->session);
      places.push_back({end, change->session.key, IsDeletion(change->kind)});
    }
    return places;
  }

  // Opens the damaged disk: only sessions of `touched` may be missing or as they once were, and none is one that was
  // deleted.
  void Check(FaultFileSystem& damaged, const std::set<SessionKey>& touched) {
    const auto opened = SessionJournal::Open(damaged, "j", options_);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    const SessionTable table = TableOf(opened.value().sessions);
    for (const auto& [key, session] : table) {
      ASSERT_TRUE(final_.contains(key)) << "deleted: " << key.owner << key.id;
      ASSERT_TRUE(std::ranges::find(versions_[key], session) != versions_[key].end());
    }
    for (const auto& [key, session] : final_) {
      if (touched.contains(key)) continue;
      const auto found = table.find(key);
      ASSERT_TRUE(found != table.end() && found->second == session) << key.owner << key.id;
    }
  }

  const SessionJournalOptions options_;
  FaultFileSystem disk_;
  SessionModel model_;
  SessionTable final_;
  std::map<SessionKey, std::vector<StoredSession>> versions_;
  std::vector<std::string> names_;
};

TEST_P(SessionDamage, AFlippedByteTouchesTheOneSessionThatItLiesInAndBringsNoneBack) {
  SplitMix64 random(4);
  for (const std::string& name : names_) {
    const std::vector<Place> places = PlacesIn("j/" + name);
    const uint64_t bytes = disk_.Contents("j/" + name).size();
    ASSERT_EQ(places.back().end, bytes);
    for (uint64_t byte = 0; byte < bytes; ++byte) {
      SCOPED_TRACE(name + " byte " + std::to_string(byte));
      std::set<SessionKey> touched;
      if (byte >= kSessionFileHeaderBytes) {
        const auto place = std::ranges::upper_bound(places, byte, {}, &Place::end);
        if (!place->deletes) touched.insert(place->key);
      }
      const auto damaged = disk_.AfterCrash(Unsynced::kKept);
      damaged->FlipBit("j/" + name, 8 * byte + random.Below(8));
      Check(*damaged, touched);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(SessionDamage, AFileCutAnywhereKeepsWhatComesBeforeAndBringsNoneBack) {
  for (const std::string& name : names_) {
    const std::vector<Place> places = PlacesIn("j/" + name);
    for (uint64_t bytes = 0; bytes < places.back().end; ++bytes) {
      SCOPED_TRACE(name + " cut to " + std::to_string(bytes));
      std::set<SessionKey> touched;
      for (const Place& place : places) {
        // Without even one copy of the header nothing can be read.
        if (place.end > bytes && !place.deletes) touched.insert(place.key);
      }
      const auto damaged = disk_.AfterCrash(Unsynced::kKept);
      damaged->Cut("j/" + name, bytes);
      Check(*damaged, touched);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(SessionDamage, AMissingFileBringsNoneBack) {
  for (const std::string& name : names_) {
    std::set<SessionKey> touched;
    for (const Place& place : PlacesIn("j/" + name)) {
      if (!place.deletes) touched.insert(place.key);
    }
    const auto damaged = disk_.AfterCrash(Unsynced::kKept);
    ASSERT_TRUE(damaged->Remove("j/" + name).ok());
    Check(*damaged, touched);
  }
}

TEST_P(SessionDamage, WhatIsLostInTheMiddleIsCounted) {
  const std::string path = "j/" + *std::ranges::find_if(names_, [](const auto& n) { return n.starts_with("s"); });
  const std::vector<Place> places = PlacesIn(path);
  const auto place = std::ranges::find_if(places, [](const Place& p) { return !p.deletes; });
  ASSERT_TRUE(place != places.end() && place + 1 != places.end());
  const auto damaged = disk_.AfterCrash(Unsynced::kKept);
  damaged->FlipBit(path, 8 * (place->end - 1));
  const auto opened = SessionJournal::Open(*damaged, "j", options_).value();
  EXPECT_EQ(opened.recovery.lost_records, 1u);
  EXPECT_GT(opened.recovery.bad_bytes, 0u);
}

INSTANTIATE_TEST_SUITE_P(WithoutAndWithSnapshot, SessionDamage, testing::Bool());

}  // namespace
}  // namespace cachalot::tier
