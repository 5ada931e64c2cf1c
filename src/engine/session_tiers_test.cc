// Sessions over tiers and restarts: what comes back of them, and that nothing they do changes an answer.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {
namespace {

struct Case {
  const char* name;
  Device device;
  std::vector<uint32_t> windows;
  bool host = false;
};

class SessionTiers : public testing::TestWithParam<Case> {
 protected:
  TieredRig::Options With() const {
    TieredRig::Options options;
    options.device = GetParam().device;
    if (!GetParam().windows.empty()) options.model.windows = GetParam().windows;
    if (GetParam().host) options.host_bytes = 4 << 20;
    options.session_store = true;
    return options;
  }

  static GenerateRequest Of(uint64_t id, const std::string& session, std::vector<TokenId> prompt, uint32_t max_tokens) {
    GenerateRequest request = Request(id, std::move(prompt), max_tokens);
    request.session = SessionName{"", session};
    return request;
  }

  // Runs it to its end and compares the answer; what the session is then.
  std::vector<TokenId> Ask(TieredRig& tiered, const GenerateRequest& request) {
    tiered.rig().finishes.erase({request.id, 0u});
    tiered.rig().outputs.erase({request.id, 0u});
    tiered.rig().Arrive(request);
    tiered.rig().RunToEnd();
    const std::vector<TokenId>& output = tiered.rig().outputs[{request.id, 0u}];
    EXPECT_EQ(output, Expected(tiered.rig().executor(), request, 0));
    std::vector<TokenId> history = request.prompt;
    history.insert(history.end(), output.begin(), output.end());
    return history;
  }

  SessionAnswer Do(TieredRig& tiered, SessionCommand command) {
    command.id = SessionCommandId(++last_command_);
    if (command.name.id.empty()) command.name.id = "a";
    tiered.rig().Command(command);
    for (int i = 0; i < 20'000 && !tiered.rig().session_answers.contains(command.id); ++i) tiered.rig().Step();
    EXPECT_TRUE(tiered.rig().session_answers.contains(command.id));
    return tiered.rig().session_answers[command.id];
  }
  SessionAnswer Do(TieredRig& tiered, SessionVerb verb) { return Do(tiered, SessionCommand{.verb = verb}); }

  static std::vector<TokenId> And(std::vector<TokenId> tokens, TokenId next) {
    tokens.push_back(next);
    return tokens;
  }

  uint64_t last_command_ = 0;
};

TEST_P(SessionTiers, ASuspendedSessionLeavesThePoolAndComesBackWhole) {
  TieredRig tiered(With());
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(203, 1), 6));
  const SessionAnswer suspended = Do(tiered, SessionVerb::kSuspend);
  ASSERT_TRUE(suspended.status.ok()) << suspended.status.message();
  EXPECT_TRUE(suspended.durable);
  EXPECT_EQ(suspended.moved_tokens, history.size() - 1);
  EXPECT_EQ(suspended.sessions.front().hot.tokens, 0u);
  EXPECT_EQ(suspended.sessions.front().state, SessionState::kWarm);
  EXPECT_EQ(tiered.rig().Step().stats.idle_slots, 0u);
  const std::vector<TokenId> next = Ask(tiered, Of(2, "a", And(history, 7), 6));
  EXPECT_EQ(tiered.rig().finishes.at({RequestId(2), 0u}).session->extended_tokens, history.size());
  EXPECT_GE(tiered.rig().finishes.at({RequestId(2), 0u}).cached_tokens, history.size() - 17);
  EXPECT_EQ(Do(tiered, SessionVerb::kShow).sessions.front().tokens, next.size());
}

TEST_P(SessionTiers, WhenASuspendIsAnsweredHostMemoryHasItAll) {
  if (!GetParam().host) return;
  TieredRig::Options options = With();
  options.disk_bytes = 0;
  options.session_store = false;
  options.link = {.bytes_per_second = 1e9, .latency = Nanos(200)};
  TieredRig tiered(options);
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(203, 1), 6));
  const SessionAnswer suspended = Do(tiered, SessionVerb::kSuspend);
  ASSERT_TRUE(suspended.status.ok()) << suspended.status.message();
  EXPECT_GE(suspended.moved_tokens, history.size() - 17);
  EXPECT_EQ(suspended.sessions.front().host.bytes, Do(tiered, SessionVerb::kShow).sessions.front().host.bytes);
}

TEST_P(SessionTiers, WhatWasSuspendedSurvivesACrash) {
  for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kMixed}) {
    TieredRig tiered(With());
    const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(203, 1), 6));
    ASSERT_TRUE(Do(tiered, SessionVerb::kSuspend).durable);
    tiered.Crash(unsynced, 5);
    const SessionAnswer shown = Do(tiered, SessionVerb::kShow);
    ASSERT_TRUE(shown.found);
    EXPECT_EQ(shown.sessions.front().tokens, history.size());
    EXPECT_EQ(shown.sessions.front().disk.tokens, history.size() - 1);
    EXPECT_EQ(shown.sessions.front().state, SessionState::kWarm);
    EXPECT_TRUE(shown.sessions.front().load_seconds.has_value());
    Ask(tiered, Of(2, "a", And(history, 7), 6));
    EXPECT_EQ(tiered.rig().finishes.at({RequestId(2), 0u}).session->extended_tokens, history.size());
  }
}

TEST_P(SessionTiers, WithoutALowerTierASuspendedSessionIsColdAndDurable) {
  TieredRig::Options options = With();
  options.disk_bytes = options.host_bytes = 0;
  TieredRig tiered(options);
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(200, 1), 6));
  const SessionAnswer suspended = Do(tiered, SessionVerb::kSuspend);
  EXPECT_TRUE(suspended.status.ok()) << suspended.status.message();
  EXPECT_TRUE(suspended.durable);
  EXPECT_EQ(suspended.sessions.front().state, SessionState::kCold);
  tiered.Crash(Unsynced::kLost);
  EXPECT_EQ(Do(tiered, SessionVerb::kShow).sessions.front().tokens, history.size());
  Ask(tiered, Of(2, "a", And(history, 7), 6));
}

TEST_P(SessionTiers, ASessionInUseIsNotSuspended) {
  TieredRig tiered(With());
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(200, 1), 6));
  tiered.rig().Arrive(Of(2, "a", And(history, 7), 50));
  EXPECT_EQ(Do(tiered, SessionVerb::kSuspend).status.code(), Code::kInvalid);
  tiered.rig().RunToEnd();
  SessionCommand suspend{.verb = SessionVerb::kSuspend, .name = {"", "a"}};
  suspend.id = SessionCommandId(1000);
  tiered.rig().Command(suspend);
  tiered.rig().Arrive(Of(3, "a", And(history, 8), 50));
  tiered.rig().RunToEnd();
  for (int i = 0; i < 20'000 && !tiered.rig().session_answers.contains(suspend.id); ++i) tiered.rig().Step();
  EXPECT_EQ(tiered.rig().session_answers[suspend.id].status.code(), Code::kInvalid);
}

TEST_P(SessionTiers, WhatAnotherHotSessionSharesStaysHot) {
  TieredRig tiered(With());
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(200, 1), 6));
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kFork, .other = "b"}).status.ok());
  ASSERT_TRUE(Do(tiered, SessionVerb::kSuspend).status.ok());
  EXPECT_GE(Do(tiered, {.verb = SessionVerb::kShow, .name = {"", "b"}}).sessions.front().hot.tokens, 192u);
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kSuspend, .name = {"", "b"}}).status.ok());
  EXPECT_EQ(tiered.rig().Step().stats.idle_slots, 0u);
  Ask(tiered, Of(2, "b", And(history, 9), 6));
}

TEST_P(SessionTiers, ADeletedSessionIsFoundNowhereAndNeverComesBack) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    TieredRig tiered(With());
    const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(200, 1), 6));
    ASSERT_TRUE(Do(tiered, SessionVerb::kSuspend).status.ok());
    const SessionAnswer deleted = Do(tiered, SessionVerb::kDelete);
    ASSERT_TRUE(deleted.status.ok()) << deleted.status.message();
    EXPECT_TRUE(deleted.durable);
    tiered.Crash(seed % 2 == 0 ? Unsynced::kLost : Unsynced::kMixed, seed);
    EXPECT_FALSE(Do(tiered, SessionVerb::kShow).found);
    Ask(tiered, Request(2, And(history, 7), 6));
    EXPECT_EQ(tiered.rig().finishes.at({RequestId(2), 0u}).cached_tokens, 0u);
  }
}

TEST_P(SessionTiers, AfterAClearSessionsAreCold) {
  TieredRig tiered(With());
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(200, 1), 6));
  ASSERT_TRUE(Do(tiered, SessionVerb::kSuspend).status.ok());
  StepInput input;
  input.inquiries.push_back({InquiryId(1), InquiryKind::kClear, {}});
  EXPECT_TRUE(tiered.rig().Step(std::move(input)).answers.front().cleared.ok());
  tiered.rig().Advance(std::chrono::seconds(1));
  EXPECT_EQ(tiered.rig().Step().stats.sessions.cold, 1u) << "nobody asked, and yet it was seen";
  EXPECT_EQ(Do(tiered, SessionVerb::kShow).sessions.front().state, SessionState::kCold);
  EXPECT_EQ(Do(tiered, SessionVerb::kShow).sessions.front().tokens, history.size());
}

TEST_P(SessionTiers, AnIdleSessionIsHandedDownByItself) {
  TieredRig::Options options = With();
  options.engine.sessions.idle_seconds = 60;
  TieredRig tiered(options);
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(200, 1), 6));
  tiered.rig().Advance(std::chrono::seconds(50));
  for (int i = 0; i < 300; ++i) tiered.rig().Step();
  EXPECT_EQ(Do(tiered, SessionVerb::kShow).sessions.front().state, SessionState::kHot);
  ASSERT_TRUE(tiered.rig().engine().next_due().has_value());
  tiered.rig().Advance(std::chrono::seconds(11));
  for (int i = 0; i < 300; ++i) tiered.rig().Step();
  EXPECT_EQ(Do(tiered, SessionVerb::kShow).sessions.front().state, SessionState::kWarm);
  EXPECT_EQ(tiered.rig().Step().stats.idle_slots, 0u);
  Ask(tiered, Of(2, "a", And(history, 7), 6));
}

TEST_P(SessionTiers, AnIdleSessionThatCouldNotBeHandedDownIsTriedAgain) {
  TieredRig::Options options = With();
  options.engine.sessions.idle_seconds = 60;
  TieredRig tiered(options);
  const auto wait = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      tiered.rig().Advance(std::chrono::seconds(1));
      for (int step = 0; step < 30; ++step) tiered.rig().Step();
    }
  };
  const auto state = [&](const char* id) {
    return Do(tiered, {.verb = SessionVerb::kShow, .name = {"", id}}).sessions.front().state;
  };
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(200, 1), 6));
  tiered.files().Fail({.op = FileOp::kWrite, .onwards = true});
  wait(65);
  EXPECT_EQ(state("a"), SessionState::kHot);
  ASSERT_TRUE(tiered.rig().engine().next_due().has_value());
  EXPECT_GT(*tiered.rig().engine().next_due(), tiered.clock().Now()) << "not at once";
  tiered.files().Heal();
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kFork, .other = "b"}).status.ok());
  EXPECT_TRUE(Do(tiered, {.verb = SessionVerb::kSuspend, .name = {"", "b"}}).status.ok());
  EXPECT_EQ(state("a"), SessionState::kHot) << "what it shares with one that is handed down stays";
  wait(60);
  EXPECT_EQ(state("a"), SessionState::kWarm);
  EXPECT_EQ(tiered.rig().Step().stats.idle_slots, 0u);
  Ask(tiered, Of(2, "a", And(history, 7), 6));
}

TEST_P(SessionTiers, AnIdleSessionThatIsTriedAgainAndAgainLeavesNothingInTheJournal) {
  TieredRig::Options options = With();
  options.engine.sessions.idle_seconds = 60;
  TieredRig tiered(options);
  Ask(tiered, Of(1, "a", Tokens(200, 1), 6));
  tiered.files().Fail({.op = FileOp::kWrite, .onwards = true});
  // Of the journal, after so many seconds more.
  const auto bytes_after = [&](int seconds) {
    for (; seconds > 0; --seconds) {
      tiered.rig().Advance(std::chrono::seconds(1));
      for (int step = 0; step < 30; ++step) tiered.rig().Step();
    }
    const tier::SessionJournalStats journal = tiered.session_store().stats().journal;
    return journal.file_bytes + journal.pending_bytes;
  };
  const uint64_t before = bytes_after(55);
  EXPECT_EQ(bytes_after(60), before);
  EXPECT_EQ(Do(tiered, SessionVerb::kShow).sessions.front().state, SessionState::kHot);
}

TEST_P(SessionTiers, AnIdleSessionIsHandedDownOnceItIsNotPinnedAnyMore) {
  TieredRig::Options options = With();
  options.engine.sessions.idle_seconds = 60;
  options.engine.pin_budget = 0.5;
  TieredRig tiered(options);
  const auto wait = [&] {
    tiered.rig().Advance(std::chrono::seconds(61));
    for (int i = 0; i < 300; ++i) tiered.rig().Step();
    return Do(tiered, SessionVerb::kShow).sessions.front().state;
  };
  Ask(tiered, Of(1, "a", Tokens(200, 1), 6));
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kPin, .pinned = true}).status.ok());
  EXPECT_EQ(wait(), SessionState::kHot);
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kPin, .pinned = false}).status.ok());
  EXPECT_EQ(wait(), SessionState::kWarm);
}

TEST_P(SessionTiers, ADiskThatTakesNothingIsToldAndTheSessionStaysHot) {
  TieredRig tiered(With());
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(200, 1), 6));
  tiered.rig().WriteAll();
  tiered.files().Fail({.op = FileOp::kWrite, .onwards = true});
  Ask(tiered, Of(2, "a", And(history, 7), 6));
  const SessionAnswer suspended = Do(tiered, SessionVerb::kSuspend);
  EXPECT_EQ(suspended.status.code(), Code::kUnavailable);
  EXPECT_FALSE(suspended.durable);
  EXPECT_EQ(suspended.sessions.front().state, SessionState::kHot);
  tiered.files().Heal();
  tiered.rig().Advance(std::chrono::seconds(30));
  EXPECT_TRUE(Do(tiered, SessionVerb::kSuspend).durable);
}

TEST_P(SessionTiers, AResumedSessionIsHotBeforeItsRequestComes) {
  TieredRig tiered(With());
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(203, 1), 6));
  ASSERT_TRUE(Do(tiered, SessionVerb::kSuspend).durable);
  tiered.Crash(Unsynced::kLost);
  const SessionAnswer resumed = Do(tiered, SessionVerb::kResume);
  ASSERT_TRUE(resumed.status.ok()) << resumed.status.message();
  EXPECT_EQ(resumed.moved_tokens, history.size() - 1);
  EXPECT_EQ(resumed.sessions.front().state, SessionState::kHot);
  EXPECT_EQ(resumed.sessions.front().hot.tokens, history.size() - 1);
  Ask(tiered, Of(2, "a", And(history, 7), 6));
  EXPECT_EQ(tiered.rig().finishes.at({RequestId(2), 0u}).cached_tokens, history.size() - 1);
}

TEST_P(SessionTiers, APromptIsBroughtUpAsASessionIs) {
  TieredRig tiered(With());
  const std::vector<TokenId> prompt = Tokens(200, 1);
  Ask(tiered, Request(1, prompt, 6));
  tiered.Restart();
  const SessionAnswer answer = Do(tiered, {.verb = SessionVerb::kPrefetch, .prompt = prompt});
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.moved_tokens, 192u);
  Ask(tiered, Request(2, prompt, 6));
}

TEST_P(SessionTiers, ASavedSessionIsRestoredUnderAnotherName) {
  TieredRig tiered(With());
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(300, 1), 6));
  const SessionAnswer saved = Do(tiered, {.verb = SessionVerb::kSave, .other = "file"});
  ASSERT_TRUE(saved.status.ok()) << saved.status.message();
  EXPECT_TRUE(saved.durable);
  EXPECT_EQ(saved.moved_tokens, history.size() - 1);
  ASSERT_TRUE(Do(tiered, SessionVerb::kDelete).status.ok());
  tiered.Crash(Unsynced::kLost);
  const SessionAnswer restored = Do(tiered, {.verb = SessionVerb::kRestore, .name = {"", "b"}, .other = "file"});
  ASSERT_TRUE(restored.status.ok()) << restored.status.message();
  EXPECT_EQ(restored.moved_tokens, history.size() - 1);
  EXPECT_EQ(restored.moved_bytes, saved.moved_bytes);
  EXPECT_EQ(restored.sessions.front().tokens, history.size());
  EXPECT_EQ(tiered.rig().Step().stats.in_use_slots(), 0u);
  Ask(tiered, Of(2, "b", And(history, 7), 6));
  EXPECT_EQ(tiered.rig().finishes.at({RequestId(2), 0u}).cached_tokens, history.size() - 1);
  EXPECT_EQ(Do(tiered, {.verb = SessionVerb::kRestore, .name = {"", "b"}, .other = "file"}).status.code(),
            Code::kInvalid);
  const SessionAnswer none = Do(tiered, {.verb = SessionVerb::kRestore, .name = {"", "c"}, .other = "none"});
  EXPECT_FALSE(none.found);
  EXPECT_NE(none.status.message().find("'none'"), std::string::npos);
  for (const char* name : {"", ".file", "../file", "a/b"}) {
    EXPECT_EQ(Do(tiered, {.verb = SessionVerb::kSave, .name = {"", "b"}, .other = name}).status.code(), Code::kInvalid);
  }
}

TEST_P(SessionTiers, ASavedSessionIsThereForItsOwnerAlone) {
  TieredRig tiered(With());
  std::map<std::string, std::vector<TokenId>> histories;
  uint64_t request = 0;
  for (const char* owner : {"alice", "bob", ""}) {
    ++request;
    GenerateRequest first = Of(request, "a", Tokens(200 + 20 * request, request), 6);
    first.session->owner = owner;
    first.scope.salt = {request, request};
    histories[owner] = Ask(tiered, first);
  }
  const auto save = [&](const char* owner) {
    return Do(tiered, {.verb = SessionVerb::kSave, .name = {owner, "a"}, .other = "file"});
  };
  const auto restored = [&](const char* owner, const char* id) {
    const CacheSalt salt{100, 100};
    return Do(tiered, {.verb = SessionVerb::kRestore, .name = {owner, id}, .other = "file", .scope = {salt, 0}});
  };
  ASSERT_TRUE(save("alice").status.ok());
  for (const char* owner : {"bob", "", "carol"}) EXPECT_FALSE(restored(owner, "b").found) << "'" << owner << "'";
  for (const char* owner : {"bob", ""}) ASSERT_TRUE(save(owner).status.ok());
  tiered.Crash(Unsynced::kLost);
  for (const char* owner : {"alice", "bob", ""}) {
    const SessionAnswer answer = restored(owner, "b");
    ASSERT_TRUE(answer.found && answer.status.ok()) << answer.status.message();
    EXPECT_EQ(answer.sessions.front().tokens, histories[owner].size()) << "'" << owner << "'";
    EXPECT_GT(answer.moved_tokens, 0u);
  }
}

TEST_P(SessionTiers, ASaveThatWouldFillTheDiskIsRefusedAndLeavesNothing) {
  TieredRig::Options options = With();
  options.saved_min_free = 1 << 20;
  options.disk_bytes = 0;
  TieredRig tiered(options);
  const auto leave_two_pages = [&] {
    const DiskRoom room = tiered.files().Room("/").value();
    tiered.files().SetTotalBytes(room.total_bytes - room.free_bytes + options.saved_min_free + 8192);
  };
  Ask(tiered, Of(1, "a", Tokens(1000, 1), 6));
  leave_two_pages();
  const SessionAnswer refused = Do(tiered, {.verb = SessionVerb::kSave, .other = "file"});
  EXPECT_EQ(refused.status.code(), Code::kOverloaded);
  EXPECT_NE(refused.status.message().find("for others"), std::string::npos) << refused.status.message();
  EXPECT_TRUE(tiered.files().List("/saved").value().empty());
  EXPECT_EQ(tiered.rig().Step().stats.in_use_slots(), 0u);
  Ask(tiered, Of(2, "b", Tokens(20, 2), 6));
  leave_two_pages();
  EXPECT_TRUE(Do(tiered, {.verb = SessionVerb::kSave, .name = {"", "b"}, .other = "file"}).status.ok());
}

TEST_P(SessionTiers, ASessionThatCameWhileItsNameWasBeingRestoredStays) {
  TieredRig tiered(With());
  Ask(tiered, Of(1, "a", Tokens(300, 1), 6));
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kSave, .other = "file"}).status.ok());
  const SessionCommandId id(1000);
  tiered.rig().Command({.id = id, .verb = SessionVerb::kRestore, .name = {"", "b"}, .other = "file"});
  tiered.rig().Arrive(Of(2, "b", Tokens(20, 2), 1));  // ends in this step
  for (int i = 0; i < 1000 && !tiered.rig().session_answers.contains(id); ++i) tiered.rig().Step();
  EXPECT_EQ(tiered.rig().session_answers.at(id).status.code(), Code::kInvalid);
  EXPECT_EQ(Do(tiered, {.verb = SessionVerb::kShow, .name = {"", "b"}}).sessions.front().tokens, 21u);
  EXPECT_EQ(tiered.rig().Step().stats.in_use_slots(), 0u);
}

TEST_P(SessionTiers, ASessionWhoseFirstRequestStillRunsIsNotRestored) {
  TieredRig tiered(With());
  Ask(tiered, Of(1, "a", Tokens(300, 1), 6));
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kSave, .other = "file"}).status.ok());
  const GenerateRequest running = Of(2, "b", Tokens(20, 2), 200);
  tiered.rig().Arrive(running);
  const SessionAnswer refused = Do(tiered, {.verb = SessionVerb::kRestore, .name = {"", "b"}, .other = "file"});
  EXPECT_EQ(refused.status.code(), Code::kInvalid);
  EXPECT_FALSE(tiered.rig().finishes.contains({running.id, 0u}));
  tiered.rig().RunToEnd();
  EXPECT_EQ(Do(tiered, {.verb = SessionVerb::kShow, .name = {"", "b"}}).sessions.front().tokens, 220u);
}

TEST_P(SessionTiers, ASessionThatIsDeletedWhileItIsBeingRestoredLeavesNothing) {
  TieredRig tiered(With());
  GenerateRequest request = Of(1, "a", Tokens(300, 1), 6);
  Ask(tiered, request);
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kSave, .other = "file"}).status.ok());
  ASSERT_TRUE(Do(tiered, SessionVerb::kDelete).status.ok());
  const SessionCommandId id(1000);
  tiered.rig().Command({.id = id, .verb = SessionVerb::kRestore, .name = {"", "b"}, .other = "file"});
  for (int i = 0; i < 20'000 && tiered.rig().Step().stats.sessions.sessions == 0; ++i) {
  }
  ASSERT_FALSE(tiered.rig().session_answers.contains(id));
  const SessionAnswer deleted = Do(tiered, {.verb = SessionVerb::kDelete, .name = {"", "b"}});
  EXPECT_TRUE(deleted.found && deleted.status.ok());
  for (int i = 0; i < 20'000 && !tiered.rig().session_answers.contains(id); ++i) tiered.rig().Step();
  EXPECT_FALSE(tiered.rig().session_answers.at(id).status.ok());
  request.id = RequestId(2);
  Ask(tiered, request);
  EXPECT_EQ(tiered.rig().finishes.at({request.id, 0u}).cached_tokens, 0u);
}

TEST_P(SessionTiers, AFileOfWhichAnyBitChangedIsNotRestored) {
  TieredRig tiered(With());
  Ask(tiered, Of(1, "a", Tokens(300, 1), 6));
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kSave, .other = "file"}).status.ok());
  const uint64_t bits = 8 * tiered.files().Contents("/saved/file").size();
  for (uint64_t i = 0; i < 60; ++i) {
    const uint64_t bit = i < 20 ? i * 37 : bits / 60 * i + i;
    tiered.files().FlipBit("/saved/file", bit);
    const SessionAnswer restored = Do(tiered, {.verb = SessionVerb::kRestore, .name = {"", "b"}, .other = "file"});
    EXPECT_EQ(restored.status.code(), Code::kCorrupt) << bit;
    EXPECT_FALSE(Do(tiered, {.verb = SessionVerb::kShow, .name = {"", "b"}}).found);
    tiered.files().FlipBit("/saved/file", bit);
  }
  tiered.files().Cut("/saved/file", bits / 16);
  EXPECT_EQ(Do(tiered, {.verb = SessionVerb::kRestore, .name = {"", "b"}, .other = "file"}).status.code(),
            Code::kCorrupt);
}

TEST_P(SessionTiers, AnotherModelRestoresTheHistoryAndNotTheKv) {
  TieredRig tiered(With());
  const std::vector<TokenId> history = Ask(tiered, Of(1, "a", Tokens(300, 1), 6));
  ASSERT_TRUE(Do(tiered, {.verb = SessionVerb::kSave, .other = "file"}).status.ok());
  tiered.ChangeModel({2});
  tiered.Restart();
  const SessionAnswer restored = Do(tiered, {.verb = SessionVerb::kRestore, .name = {"", "b"}, .other = "file"});
  ASSERT_TRUE(restored.status.ok()) << restored.status.message();
  EXPECT_TRUE(restored.durable);
  EXPECT_EQ(restored.moved_tokens, 0u);
  EXPECT_TRUE(restored.sessions.front().other_model);
  EXPECT_GT(restored.sessions.front().recompute_seconds, 0);
  EXPECT_EQ(restored.sessions.front().state, SessionState::kCold);
  EXPECT_EQ(restored.sessions.front().tokens, history.size());
  Ask(tiered, Of(2, "b", And(history, 7), 6));
  EXPECT_EQ(tiered.rig().finishes.at({RequestId(2), 0u}).cached_tokens, 0u);
}

TEST_P(SessionTiers, AJournalThatCannotBeWrittenIsToldUntilItCan) {
  TieredRig tiered(With());
  Ask(tiered, Of(1, "a", Tokens(300, 1), 6));
  EXPECT_FALSE(tiered.rig().Step().stats.sessions.degraded);
  tiered.files().Fail({FileOp::kWrite, 1, true});
  Ask(tiered, Of(2, "b", Tokens(100, 2), 6));
  const auto wait = [&] {
    for (int i = 0; i < 300; ++i) {
      tiered.rig().Advance(std::chrono::milliseconds(20));
      tiered.rig().Step();
    }
  };
  wait();
  EXPECT_TRUE(tiered.rig().Step().stats.sessions.degraded);
  tiered.files().Heal();
  wait();
  EXPECT_FALSE(tiered.rig().Step().stats.sessions.degraded);
  tiered.Crash(Unsynced::kLost);
  EXPECT_TRUE(Do(tiered, {.verb = SessionVerb::kShow, .name = {"", "b"}}).found);
}

std::vector<uint32_t> Sliding() { return {0, 24, 24, 40}; }

INSTANTIATE_TEST_SUITE_P(All, SessionTiers,
                         testing::Values(Case{"Full", Device::kCpu, {}}, Case{"Sliding", Device::kCpu, Sliding()},
                                         Case{"FullOverALink", Device::kSimLink, {}},
                                         Case{"SlidingOverALink", Device::kSimLink, Sliding()},
                                         Case{"FullWithHost", Device::kSimLink, {}, true},
                                         Case{"SlidingWithHost", Device::kSimLink, Sliding(), true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cachalot::engine
