#include "engine/sessions.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::engine {
namespace {

Session Of(const SessionName& name, uint64_t tokens, uint64_t ttl = 0) {
  Session session;
  session.record.key = KeyOf(name);
  session.record.tokens.resize(tokens);
  session.record.ttl_seconds = ttl;
  return session;
}

constexpr auto kNone = [](const SessionName&) { return false; };

TEST(Sessions, RoomIsMadeByTheLeastRecentlyUsed) {
  Sessions sessions({.most = 3});
  for (const char* id : {"a", "b", "c"}) sessions.Put(Of({"", id}, 10), Nanos(1));
  sessions.Use({"", "a"}, 5, Nanos(2));
  const auto going = sessions.RoomFor({"", "d"}, 100, kNone);
  ASSERT_TRUE(going.has_value());
  EXPECT_EQ(*going, std::vector<SessionName>({{"", "b"}}));
  EXPECT_TRUE(sessions.RoomFor({"", "c"}, 100, kNone)->empty()) << "it takes its own place";
}

TEST(Sessions, PinnedOnesAndThoseInUseStay) {
  Sessions sessions({.most = 3});
  for (const char* id : {"a", "b", "c"}) sessions.Put(Of({"", id}, 10), Nanos(1));
  sessions.SetPinned({"", "a"}, true);
  const auto keep_b = [](const SessionName& name) { return name.id == "b"; };
  EXPECT_EQ(*sessions.RoomFor({"", "d"}, 100, keep_b), std::vector<SessionName>({{"", "c"}}));
  sessions.SetPinned({"", "c"}, true);
  EXPECT_FALSE(sessions.RoomFor({"", "d"}, 100, keep_b).has_value());
}

TEST(Sessions, AnOwnerBeyondItsCapLosesItsOwn) {
  Sessions sessions({.most = 10, .most_of_owner = 2});
  sessions.Put(Of({"x", "old"}, 10), Nanos(1));
  sessions.Put(Of({"y", "1"}, 10), Nanos(1));
  sessions.Put(Of({"y", "2"}, 10), Nanos(1));
  EXPECT_EQ(*sessions.RoomFor({"y", "3"}, 100, kNone), std::vector<SessionName>({{"y", "1"}}));
}

TEST(Sessions, ManyGoForALongOne) {
  Sessions sessions({.memory = {BytesOf(Of({"", "a"}, 1000)) * 3}});
  for (const char* id : {"a", "b", "c"}) sessions.Put(Of({"", id}, 1000), Nanos(1));
  EXPECT_EQ(sessions.RoomFor({"", "d"}, BytesOf(Of({"", "d"}, 1500)), kNone)->size(), 2u);
  EXPECT_FALSE(sessions.RoomFor({"", "d"}, BytesOf(Of({"", "d"}, 5000)), kNone).has_value());
}

TEST(Sessions, EachInTurnIsSeen) {
  Sessions sessions({});
  EXPECT_EQ(sessions.NextToSee(Nanos(0)), std::nullopt);
  for (const char* id : {"a", "b", "c"}) sessions.Put(Of({"", id}, 10), Nanos(0));
  std::string seen;
  for (int64_t ms = 0; ms < 60; ++ms) {
    const std::optional<SessionName> next = sessions.NextToSee(std::chrono::milliseconds(ms));
    if (next) seen += next->id;
    if (ms == 25) sessions.Erase({"", "c"});
  }
  EXPECT_EQ(seen, "abcaba");
}

// Against what a walk over the whole table says.
TEST(Sessions, EveryListIsWhatTheTableSays) {
  Sessions sessions({.most = 30, .most_of_owner = 12});
  SplitMix64 random(1);
  for (uint64_t step = 1; step < 5000; ++step) {
    const SessionName name{std::string(1, static_cast<char>('x' + random.Below(3))), std::to_string(random.Below(20))};
    const Session* const found = sessions.Find(name);
    if (found == nullptr || random.Below(4) == 0) {
      Session session = Of(name, random.Below(50), random.Below(3) * 100);
      session.handed_down = random.Below(2) == 0;
      session.record.last_used = step;
      const auto room = sessions.RoomFor(name, BytesOf(session), kNone);
      ASSERT_TRUE(room.has_value());
      for (const SessionName& going : *room) sessions.Erase(going);
      sessions.Put(std::move(session), Nanos(static_cast<int64_t>(step)));
    } else {
      switch (random.Below(5)) {
        case 0: sessions.Erase(name); break;
        case 1: sessions.Use(name, step, Nanos(static_cast<int64_t>(step))); break;
        case 2: sessions.SetPinned(name, !found->record.pinned && sessions.pinned() < 3); break;
        case 3: sessions.SetHandedDown(name, !found->handed_down); break;
        default: sessions.SetSeen(name, static_cast<SessionState>(random.Below(3))); break;
      }
    }
    uint64_t bytes = 0, pinned = 0, hot = 0;
    std::map<std::string, uint64_t> of_owner;
    const Session* idle = nullptr;
    std::optional<uint64_t> expiry;
    for (const auto& [key, session] : sessions.all()) {
      bytes += BytesOf(session);
      pinned += session.record.pinned;
      hot += session.seen == SessionState::kHot;
      ++of_owner[key.owner];
      if (!session.handed_down && (idle == nullptr || session.use < idle->use)) idle = &session;
      const uint64_t end = session.record.last_used + session.record.ttl_seconds;
      if (session.record.ttl_seconds > 0) expiry = std::min(end, expiry.value_or(end));
    }
    ASSERT_EQ(sessions.bytes(), bytes);
    ASSERT_EQ(sessions.pinned(), pinned);
    ASSERT_EQ(sessions.seen(SessionState::kHot), hot);
    ASSERT_LE(sessions.all().size(), 30u);
    for (const auto& [owner, count] : of_owner) ASSERT_LE(count, 12u);
    ASSERT_EQ(sessions.LongestIdle().has_value(), idle != nullptr);
    if (idle != nullptr) {
      ASSERT_EQ(*sessions.LongestIdle(), NameOf(idle->record.key));
    }
    ASSERT_EQ(sessions.NextExpiry().has_value(), expiry.has_value());
    if (expiry) {
      ASSERT_EQ(sessions.NextExpiry()->unix_seconds, *expiry);
    }
  }
}

}  // namespace
}  // namespace cachalot::engine
