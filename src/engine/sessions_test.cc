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

TEST(Sessions, ASuspendedOneStaysUntilItIsUsed) {
  Sessions sessions({.most = 2});
  for (const char* id : {"a", "b"}) sessions.Put(Of({"", id}, 10), Nanos(1));
  sessions.SetSuspended({"", "a"}, true);
  EXPECT_EQ(*sessions.RoomFor({"", "c"}, 100, kNone), std::vector<SessionName>({{"", "b"}}));
  sessions.SetSuspended({"", "b"}, true);
  EXPECT_FALSE(sessions.RoomFor({"", "c"}, 100, kNone).has_value());
  sessions.Use({"", "b"}, 5, Nanos(2));
  EXPECT_EQ(*sessions.RoomFor({"", "c"}, 100, kNone), std::vector<SessionName>({{"", "b"}}));
}

TEST(Sessions, ThoseThatAreHeldLeaveAQuarterToOthers) {
  Sessions sessions({.most = 8, .most_of_owner = 4});
  for (const char* owner : {"x", "y"}) {
    for (const char* id : {"a", "b", "c", "d"}) sessions.Put(Of({owner, id}, 10), Nanos(1));
    for (const char* id : {"a", "b", "c"}) {
      EXPECT_TRUE(sessions.MayHold({owner, id}));
      sessions.SetSuspended({owner, id}, true);
    }
    EXPECT_FALSE(sessions.MayHold({owner, "d"}));
    EXPECT_TRUE(sessions.MayHold({owner, "a"})) << "it is one of them";
  }
}

TEST(Sessions, TheTimeOfOneRunsFromItsLastUse) {
  Sessions sessions({});
  sessions.Put(Of({"", "a"}, 10, 60), std::chrono::seconds(-50));
  EXPECT_EQ(sessions.NextExpiry()->at, Nanos(std::chrono::seconds(10)));
  sessions.Use({"", "a"}, 1, std::chrono::seconds(7));
  EXPECT_EQ(sessions.NextExpiry()->at, Nanos(std::chrono::seconds(67)));
  EXPECT_EQ(AgeOf({.last_used = 100}, 130), Nanos(std::chrono::seconds(30)));
  EXPECT_EQ(AgeOf({.last_used = 100}, 90), Nanos(0)) << "the wall clock went back";
  EXPECT_GT(AgeOf({.last_used = 0}, UINT64_MAX), Nanos(0));
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

// What RoomFor is to say, one session after the other.
std::optional<std::vector<SessionName>> NaiveRoomFor(const Sessions& sessions, const SessionOptions& options,
                                                     const SessionName& name, uint64_t bytes) {
  std::vector<const Session*> left;
  for (const auto& [other, session] : sessions.all()) {
    if (other != name) left.push_back(&session);
  }
  std::ranges::sort(left, {}, &Session::use);
  std::vector<SessionName> going;
  for (;;) {
    uint64_t own = 1, total = bytes;
    for (const Session* session : left) {
      own += session->record.key.owner == name.owner;
      total += BytesOf(*session);
    }
    const bool all_fit = left.size() + 1 <= options.most && total <= options.memory.bytes;
    if (all_fit && own <= options.most_of_owner) return going;
    const auto next = std::ranges::find_if(left, [&](const Session* session) {
      return !session->record.held() && (!all_fit || session->record.key.owner == name.owner);
    });
    if (next == left.end()) return std::nullopt;
    going.push_back(NameOf((*next)->record.key));
    left.erase(next);
  }
}

// Against what a walk over the whole table says.
TEST(Sessions, EveryListIsWhatTheTableSays) {
  const SessionOptions options{.most = 30, .most_of_owner = 12, .memory = {30 * 612}};
  Sessions sessions(options);
  SplitMix64 random(1);
  uint64_t refused = 0, put = 0;
  for (uint64_t step = 1; step < 10'000; ++step) {
    const SessionName name{std::string(1, static_cast<char>('x' + random.Below(3))), std::to_string(random.Below(20))};
    const Session* const found = sessions.Find(name);
    if (found == nullptr || random.Below(4) == 0) {
      const uint64_t tokens = random.Below(8) == 0 ? 4000 : random.Below(50);  // most of all room, or little
      Session session = Of(name, tokens, random.Below(3) * 100);
      session.handed_down = random.Below(2) == 0;
      session.record.last_used = step;
      const auto room = sessions.RoomFor(name, BytesOf(session), kNone);
      ASSERT_EQ(room, NaiveRoomFor(sessions, options, name, BytesOf(session)));
      ++(room ? put : refused);
      if (!room) continue;
      for (const SessionName& going : *room) sessions.Erase(going);
      sessions.Put(std::move(session), Nanos(static_cast<int64_t>(step)));
    } else {
      switch (random.Below(7)) {
        case 0: sessions.Erase(name); break;
        case 1: sessions.Use(name, step, Nanos(static_cast<int64_t>(step))); break;
        case 2: sessions.SetPinned(name, !found->record.pinned && sessions.pinned() < 3); break;
        case 3: sessions.SetSuspended(name, sessions.MayHold(name) || random.Below(4) == 0); break;
        case 4: sessions.SetHandedDown(name, !found->handed_down); break;
        case 5: sessions.PutOff(name, Nanos(static_cast<int64_t>(step + random.Below(200)))); break;
        default: sessions.SetSeen(name, static_cast<SessionState>(random.Below(3))); break;
      }
    }
    uint64_t bytes = 0, pinned = 0, hot = 0;
    std::map<std::string, uint64_t> of_owner;
    std::optional<Sessions::Due> idle;
    std::optional<Nanos> expiry;
    for (const auto& [key, session] : sessions.all()) {
      bytes += BytesOf(session);
      pinned += session.record.pinned;
      hot += session.seen == SessionState::kHot;
      ++of_owner[key.owner];
      const Sessions::Due due{session.hand_down_at, key};
      if (!session.handed_down) idle = std::min(due, idle.value_or(due));
      const Nanos end = session.used_at + std::chrono::seconds(session.record.ttl_seconds);
      if (session.record.ttl_seconds > 0) expiry = std::min(end, expiry.value_or(end));
    }
    ASSERT_EQ(sessions.bytes(), bytes);
    ASSERT_EQ(sessions.pinned(), pinned);
    ASSERT_EQ(sessions.seen(SessionState::kHot), hot);
    ASSERT_LE(sessions.all().size(), options.most);
    ASSERT_LE(sessions.bytes(), options.memory.bytes);
    for (const auto& [owner, count] : of_owner) ASSERT_LE(count, 12u);
    ASSERT_EQ(sessions.NextIdle(), idle);
    ASSERT_EQ(sessions.NextExpiry().has_value(), expiry.has_value());
    if (expiry) {
      ASSERT_EQ(sessions.NextExpiry()->at, *expiry);
    }
  }
  EXPECT_GT(put, 1000u);
  EXPECT_GT(refused, 50u);
}

}  // namespace
}  // namespace cachalot::engine
