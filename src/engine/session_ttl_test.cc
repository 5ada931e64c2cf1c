// How long sessions and their KV last: over restarts, restores, and wall clocks that jump; and who is never forgotten.
#include <set>

#include <gtest/gtest.h>

#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr int64_t kHour = 3600;

class SessionTtl : public testing::Test {
 protected:
  static TieredRig::Options With(SessionOptions sessions = {}) {
    TieredRig::Options options{.engine = {.sessions = sessions}, .curve = StepCurve{1e-2, 1e-3}};
    options.session_store = true;
    return options;
  }
  // A turn of a session that is to last for two hours after its use.
  void Turn(TieredRig& tiered, const std::string& name, uint64_t text) {
    GenerateRequest request = Request(++last_, Tokens(100, text), 4);
    request.session = SessionName{"", name};
    request.session_ttl_seconds = 2 * kHour;
    Ask(tiered, request);
  }
  SessionAnswer Do(TieredRig& tiered, SessionCommand command) {
    command.id = SessionCommandId(++last_);
    if (command.name.id.empty()) command.name.id = "a";
    tiered.rig().Command(command);
    for (int i = 0; i < 20'000 && !tiered.rig().session_answers.contains(command.id); ++i) tiered.rig().Step();
    return tiered.rig().session_answers[command.id];
  }
  bool Is(TieredRig& tiered, const std::string& name) {
    return Do(tiered, {.verb = SessionVerb::kShow, .name = {"", name}}).found;
  }
  // Suspends it, so that it is durable, and time passes while no process runs.
  void RestartAfter(TieredRig& tiered, Nanos time) {
    ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kSuspend}).durable);
    tiered.clock().Advance(time);
    tiered.Crash(Unsynced::kLost);
  }

  uint64_t last_ = 0;
};

TEST_F(SessionTtl, ARestartLeavesItWhatIsLeft) {
  TieredRig tiered(With());
  Turn(tiered, "a", 1);
  RestartAfter(tiered, hours(1));
  EXPECT_TRUE(Is(tiered, "a"));
  tiered.rig().Advance(minutes(59));
  EXPECT_TRUE(Is(tiered, "a"));
  ASSERT_TRUE(tiered.rig().engine().next_due().has_value());
  EXPECT_LE(*tiered.rig().engine().next_due() - tiered.clock().Now(), Nanos(minutes(2)));
  tiered.rig().Advance(minutes(2));
  EXPECT_FALSE(Is(tiered, "a"));
  tiered.Restart();
  EXPECT_FALSE(Is(tiered, "a"));
}

TEST_F(SessionTtl, OneThatHadItsTimeMeanwhileIsGone) {
  TieredRig tiered(With());
  Turn(tiered, "a", 1);
  RestartAfter(tiered, hours(3));
  EXPECT_EQ(tiered.rig().engine().next_due(), Nanos(0)) << "what was found is looked at without being asked";
  tiered.rig().Step();
  EXPECT_FALSE(Is(tiered, "a"));
  EXPECT_EQ(tiered.rig().Step().stats.sessions.ended, 1u);
}

TEST_F(SessionTtl, AWallClockThatJumpsMeanwhileEndsAndProlongsNothing) {
  TieredRig tiered(With());
  for (const int64_t jump : {-20 * kHour, 20 * kHour}) {
    Turn(tiered, "a", 1);
    tiered.clock().JumpWallClock(jump);
    tiered.rig().Advance(minutes(119));
    EXPECT_TRUE(Is(tiered, "a")) << jump;
    tiered.rig().Advance(minutes(2));
    EXPECT_FALSE(Is(tiered, "a")) << jump;
  }
}

TEST_F(SessionTtl, OneThatWentBackOverARestartGivesNoMoreThanItHad) {
  TieredRig tiered(With());
  Turn(tiered, "a", 1);
  RestartAfter(tiered, Nanos(0));
  tiered.clock().JumpWallClock(-20 * kHour);
  tiered.Crash(Unsynced::kLost);
  EXPECT_TRUE(Is(tiered, "a"));
  tiered.rig().Advance(minutes(121));
  EXPECT_FALSE(Is(tiered, "a"));
}

TEST_F(SessionTtl, OneThatWentForwardOverARestartIsTimeThatPassed) {
  TieredRig tiered(With());
  Turn(tiered, "a", 1);
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kSuspend}).durable);
  tiered.clock().JumpWallClock(kHour);
  tiered.Crash(Unsynced::kLost);
  EXPECT_TRUE(Is(tiered, "a"));
  tiered.rig().Advance(minutes(61));
  EXPECT_FALSE(Is(tiered, "a"));
}

TEST_F(SessionTtl, ARestoredOneLastsAsLongAfterThatAsAfterAnyUse) {
  TieredRig tiered(With());
  Turn(tiered, "a", 1);
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kSave, .other = "file"}).status.ok());
  tiered.rig().Advance(hours(3));
  EXPECT_FALSE(Is(tiered, "a"));
  tiered.Restart();
  EXPECT_TRUE(Do(tiered, {.verb = SessionVerb::kRestore, .name = {"", "b"}, .other = "file"}).status.ok());
  tiered.rig().Advance(minutes(119));
  EXPECT_TRUE(Is(tiered, "b"));
  tiered.Restart();
  EXPECT_TRUE(Is(tiered, "b"));
  tiered.rig().Advance(minutes(2));
  EXPECT_FALSE(Is(tiered, "b"));
}

TEST_F(SessionTtl, KvThatIsRestoredEndsWhenItWouldHave) {
  TieredRig tiered(With());
  GenerateRequest request = Request(++last_, Tokens(100, 1), 4);
  request.session = SessionName{"", "a"};
  request.retention.ttl = hours(2);
  Ask(tiered, request);
  EXPECT_EQ(Do(tiered, {.verb = SessionVerb::kSave, .other = "file"}).moved_tokens, 103u);
  const auto restore = [&](const char* name) {
    return Do(tiered, {.verb = SessionVerb::kRestore, .name = {"", name}, .other = "file"});
  };
  tiered.rig().Advance(hours(1));
  EXPECT_TRUE(Do(tiered, {.verb = SessionVerb::kDelete}).status.ok());
  tiered.Restart();
  EXPECT_EQ(restore("b").moved_tokens, 103u);
  tiered.rig().Advance(minutes(61));
  tiered.rig().Step();
  EXPECT_EQ(tiered.rig().Step().stats.idle_slots, 0u) << "its time was over";
  const SessionAnswer cold = restore("c");
  EXPECT_TRUE(cold.status.ok()) << cold.status.message();
  EXPECT_EQ(cold.moved_tokens, 0u);
  EXPECT_GT(cold.sessions.front().tokens, 103u) << "the history has no end";
  tiered.clock().JumpWallClock(-20 * kHour);
  EXPECT_EQ(restore("d").moved_tokens, 103u);
  tiered.rig().Advance(minutes(121));
  tiered.rig().Step();
  EXPECT_EQ(tiered.rig().Step().stats.idle_slots, 0u) << "a clock that went back gives no more than it had";
}

TEST_F(SessionTtl, KvThatIsToBeNowhereElseIsInNoFile) {
  TieredRig tiered(With());
  GenerateRequest request = Request(++last_, Tokens(100, 1), 4);
  request.session = SessionName{"", "a"};
  request.retention.scrub = true;
  Ask(tiered, request);
  const SessionAnswer saved = Do(tiered, {.verb = SessionVerb::kSave, .other = "file"});
  EXPECT_TRUE(saved.status.ok());
  EXPECT_EQ(saved.moved_tokens, 0u);
}

// A table that is too small for all, over lives and crashes.
TEST_F(SessionTtl, WhateverIsForgottenASuspendedOneIsNot) {
  SplitMix64 random(5);
  TieredRig tiered(With({.most = 8}));
  std::set<std::string> held;
  uint64_t refused = 0;
  for (int step = 0; step < 300; ++step) {
    const std::string name(1, static_cast<char>('a' + random.Below(16)));
    if (random.Below(2) == 0) {
      held.erase(name);
      Turn(tiered, name, random.Below(5));
    } else {
      const SessionAnswer answer = Do(tiered, {.verb = SessionVerb::kSuspend, .name = {"", name}});
      if (answer.found && answer.status.ok()) held.insert(name);
      EXPECT_TRUE(answer.status.ok() || answer.status.code() == Code::kOverloaded) << answer.status.message();
      refused += !answer.status.ok();
    }
    if (random.Below(20) == 0) tiered.Crash(random.Below(2) == 0 ? Unsynced::kLost : Unsynced::kMixed, random());
    if (random.Below(3) > 0) continue;
    for (const std::string& kept : held) ASSERT_TRUE(Is(tiered, kept)) << kept << " after step " << step;
  }
  EXPECT_GT(refused, 0u);
}

TEST_F(SessionTtl, FewerThanBeforeMayBeFoundAndThoseThatAreHeldStay) {
  TieredRig::Options options = With();
  TieredRig tiered(options);
  for (char name = 'a'; name < 'm'; ++name) {
    Turn(tiered, std::string(1, name), static_cast<uint64_t>(name));
    if (name >= 'g') continue;
    EXPECT_TRUE(Do(tiered, {.verb = SessionVerb::kSuspend, .name = {"", std::string(1, name)}}).durable);
  }
  tiered.Limit({.most = 4});
  tiered.Restart();
  for (char name = 'a'; name < 'm'; ++name) EXPECT_EQ(Is(tiered, std::string(1, name)), name < 'g') << name;
  Turn(tiered, "new", 50);
  EXPECT_FALSE(Is(tiered, "new")) << "no room before some of them go";
  for (const char* name : {"a", "b", "c"}) Do(tiered, {.verb = SessionVerb::kDelete, .name = {"", name}});
  Turn(tiered, "new", 50);
  EXPECT_TRUE(Is(tiered, "new"));
}

}  // namespace
}  // namespace cachalot::engine
