// Sessions of one process, without any tier below the pool.
#include <gtest/gtest.h>

#include "engine/testing/engine_rig.h"

namespace cachalot::engine {
namespace {

GenerateRequest Of(uint64_t id, const std::string& session, std::vector<TokenId> prompt, uint32_t max_tokens) {
  GenerateRequest request = Request(id, std::move(prompt), max_tokens);
  request.session = SessionName{"me", session};
  return request;
}

class SessionCommands : public testing::Test {
 protected:
  // Runs it to its end; what the session is then.
  std::vector<TokenId> Ask(const GenerateRequest& request) {
    rig_.Arrive(request);
    rig_.RunToEnd();
    std::vector<TokenId> history = request.prompt;
    const std::vector<TokenId>& output = rig_.outputs[{request.id, 0u}];
    history.insert(history.end(), output.begin(), output.end());
    return history;
  }
  SessionAnswer Do(SessionCommand command) {
    command.id = SessionCommandId(++last_command_);
    if (command.name.id.empty() && !command.every_owner) command.name = {"me", "a"};
    rig_.Command(command);
    for (int i = 0; i < 50 && !rig_.session_answers.contains(command.id); ++i) rig_.Step();
    return rig_.session_answers.at(command.id);
  }
  SessionAnswer Do(SessionVerb verb) { return Do(SessionCommand{.verb = verb}); }

  Rig rig_{{.pin_budget = 0.5, .sessions = {.most = 8}}};
  uint64_t last_command_ = 0;
};

TEST_F(SessionCommands, ASessionIsTheLastRequestAndItsAnswer) {
  EXPECT_FALSE(Do(SessionVerb::kShow).found);
  const std::vector<TokenId> history = Ask(Of(1, "a", Tokens(40, 1), 5));
  const SessionAnswer shown = Do(SessionVerb::kShow);
  ASSERT_TRUE(shown.found);
  ASSERT_EQ(shown.sessions.size(), 1u);
  const SessionView& view = shown.sessions.front();
  EXPECT_EQ(view.tokens, history.size());
  EXPECT_EQ(view.state, SessionState::kHot);
  EXPECT_EQ(view.hot.tokens, history.size() - 1);
  EXPECT_GT(view.hot.bytes, 0u);
  EXPECT_FALSE(view.in_use);
}

TEST_F(SessionCommands, ARequestIsToldHowMuchOfTheHistoryItGoesOnWith) {
  const std::vector<TokenId> history = Ask(Of(1, "a", Tokens(40, 1), 5));
  EXPECT_EQ(rig_.finishes.at({RequestId(1), 0u}).session->history_tokens, 0u);
  std::vector<TokenId> next = history;
  next.push_back(7);
  Ask(Of(2, "a", next, 5));
  const SessionReport whole = *rig_.finishes.at({RequestId(2), 0u}).session;
  EXPECT_EQ(whole.history_tokens, history.size());
  EXPECT_EQ(whole.extended_tokens, history.size());
  EXPECT_TRUE(whole.kept);
  next.resize(20);
  next.push_back(8);
  Ask(Of(3, "a", next, 5));
  EXPECT_EQ(rig_.finishes.at({RequestId(3), 0u}).session->extended_tokens, 20u);
  EXPECT_EQ(Do(SessionVerb::kShow).sessions.front().tokens, 26u);
  EXPECT_FALSE(rig_.finishes.contains({RequestId(4), 0u}));
}

TEST_F(SessionCommands, OfSeveralAtOnceTheLastToEndWins) {
  rig_.Arrive(Of(1, "a", Tokens(40, 1), 30));
  rig_.Arrive(Of(2, "a", Tokens(20, 2), 3));
  rig_.RunToEnd();
  EXPECT_EQ(Do(SessionVerb::kShow).sessions.front().tokens, 70u);
}

TEST_F(SessionCommands, WhatWasNotAnsweredToItsEndIsNoHistory) {
  Ask(Of(1, "a", Tokens(40, 1), 5));
  rig_.Arrive(Of(2, "a", Tokens(60, 2), 50));
  rig_.Step();
  EXPECT_TRUE(Do(SessionVerb::kShow).sessions.front().in_use);
  rig_.Cancel(RequestId(2));
  EXPECT_EQ(Do(SessionVerb::kShow).sessions.front().tokens, 45u);
}

TEST_F(SessionCommands, OnlyTheFirstChoiceIsTheHistory) {
  GenerateRequest request = Of(1, "a", Tokens(40, 1), 5);
  request.n = 3;
  request.sampling.temperature = 1;
  EXPECT_EQ(Ask(request).size(), 45u);
  EXPECT_EQ(Do(SessionVerb::kShow).sessions.front().tokens, 45u);
}

TEST_F(SessionCommands, NamesAreCheckedBeforeAnythingRuns) {
  GenerateRequest request = Of(1, std::string(kMostSessionNameBytes + 1, 'x'), Tokens(40, 1), 5);
  EXPECT_EQ(rig_.Arrive(request).rejections.front().reason, RejectReason::kInvalid);
  request.session->id.clear();
  EXPECT_EQ(rig_.Arrive(request).rejections.front().reason, RejectReason::kInvalid);
}

TEST_F(SessionCommands, ListsGoByOwnerAndPage) {
  for (uint64_t i = 0; i < 5; ++i) Ask(Of(i + 1, std::string(1, static_cast<char>('a' + i)), Tokens(20, i), 2));
  GenerateRequest foreign = Of(9, "z", Tokens(20, 9), 2);
  foreign.session->owner = "other";
  Ask(foreign);
  const SessionName me{"me", "x"};
  EXPECT_EQ(Do({.verb = SessionVerb::kList, .name = me}).sessions.size(), 5u);
  EXPECT_EQ(Do({.verb = SessionVerb::kList, .every_owner = true}).sessions.size(), 6u);
  const SessionAnswer first = Do({.verb = SessionVerb::kList, .name = me, .limit = 2});
  EXPECT_TRUE(first.more);
  ASSERT_EQ(first.sessions.size(), 2u);
  const SessionAnswer rest =
      Do({.verb = SessionVerb::kList, .name = me, .after = first.sessions.back().name, .limit = 3});
  EXPECT_FALSE(rest.more);
  ASSERT_EQ(rest.sessions.size(), 3u);
  EXPECT_EQ(rest.sessions.front().name.id, "c");
}

TEST_F(SessionCommands, AForkIsAnotherSessionThatSharesAll) {
  Ask(Of(1, "a", Tokens(40, 1), 5));
  const SessionAnswer forked = Do({.verb = SessionVerb::kFork, .other = "b"});
  ASSERT_TRUE(forked.status.ok());
  EXPECT_EQ(forked.sessions.front().name.id, "b");
  EXPECT_EQ(forked.sessions.front().tokens, 45u);
  EXPECT_EQ(Do({.verb = SessionVerb::kFork, .other = "b"}).status.code(), Code::kInvalid);
  EXPECT_EQ(Do({.verb = SessionVerb::kFork, .other = ""}).status.code(), Code::kInvalid);
  EXPECT_TRUE(Do(SessionVerb::kDelete).found);
  EXPECT_EQ(Do({.verb = SessionVerb::kShow, .name = {"me", "b"}}).sessions.front().hot.tokens, 44u)
      << "what another has as well stays";
}

TEST_F(SessionCommands, ADeletedSessionIsGoneWithItsKvAndStaysSoWhateverRuns) {
  const std::vector<TokenId> history = Ask(Of(1, "a", Tokens(40, 1), 5));
  rig_.Arrive(Of(2, "a", history, 20));
  rig_.Step();
  EXPECT_TRUE(Do(SessionVerb::kDelete).status.ok());
  rig_.RunToEnd();
  EXPECT_EQ(rig_.finishes.at({RequestId(2), 0u}).reason, FinishReason::kLength);
  EXPECT_FALSE(Do(SessionVerb::kShow).found);
  EXPECT_FALSE(Do(SessionVerb::kDelete).found);
  Ask(Of(3, "b", Tokens(50, 5), 2));
  Do({.verb = SessionVerb::kDelete, .name = {"me", "b"}});
  Ask(Request(4, Tokens(50, 5), 2));
  EXPECT_EQ(rig_.finishes.at({RequestId(4), 0u}).cached_tokens, 0u);
}

TEST_F(SessionCommands, TheLeastRecentlyUsedAreForgotten) {
  for (uint64_t i = 0; i < 8; ++i) Ask(Of(i + 1, std::string(1, static_cast<char>('a' + i)), Tokens(20, i), 2));
  Ask(Of(20, "a", Tokens(20, 0), 2));
  Ask(Of(21, "new", Tokens(20, 30), 2));
  EXPECT_TRUE(Do(SessionVerb::kShow).found);
  EXPECT_FALSE(Do({.verb = SessionVerb::kShow, .name = {"me", "b"}}).found);
  const SessionStats stats = rig_.Step().stats.sessions;
  EXPECT_EQ(stats.sessions, 8u);
  EXPECT_EQ(stats.forgotten, 1u);
  EXPECT_EQ(stats.begun, 9u);
}

TEST_F(SessionCommands, WhoeverIsSuspendedIsNotForgottenAndOneTooManyIsRefused) {
  const auto name = [](uint64_t i) { return std::string(1, static_cast<char>('a' + i)); };
  for (uint64_t i = 0; i < 8; ++i) Ask(Of(i + 1, name(i), Tokens(20, i), 2));
  for (uint64_t i = 0; i < 6; ++i) {
    EXPECT_TRUE(Do({.verb = SessionVerb::kSuspend, .name = {"me", name(i)}}).status.ok());
  }
  const SessionAnswer refused = Do({.verb = SessionVerb::kSuspend, .name = {"me", "g"}});
  EXPECT_EQ(refused.status.code(), Code::kOverloaded);
  EXPECT_GT(refused.sessions.front().hot.tokens, 0u) << "nothing was done";
  EXPECT_EQ(Do({.verb = SessionVerb::kPin, .name = {"me", "g"}, .pinned = true}).status.code(), Code::kOverloaded);
  for (uint64_t i = 8; i < 20; ++i) Ask(Of(i + 1, name(i), Tokens(20, i), 2));
  for (uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(Do({.verb = SessionVerb::kShow, .name = {"me", name(i)}}).found, i < 6) << name(i);
  }
  Ask(Of(100, "a", Tokens(30, 0), 2));
  EXPECT_TRUE(Do({.verb = SessionVerb::kSuspend, .name = {"me", name(19)}}).status.ok()) << "a was used";
  EXPECT_EQ(Do({.verb = SessionVerb::kSuspend}).status.code(), Code::kOverloaded);
}

TEST_F(SessionCommands, AfterItsTimeASessionIsGoneWithItsKv) {
  GenerateRequest request = Of(1, "a", Tokens(40, 1), 5);
  request.session_ttl_seconds = 60;
  Ask(request);
  rig_.Advance(std::chrono::seconds(59));
  EXPECT_TRUE(Do(SessionVerb::kShow).found);
  ASSERT_TRUE(rig_.engine().next_due().has_value());
  rig_.Advance(std::chrono::seconds(2));
  EXPECT_FALSE(Do(SessionVerb::kShow).found);
  EXPECT_EQ(rig_.Step().stats.idle_slots, 0u);
  EXPECT_FALSE(rig_.engine().next_due().has_value());
}

TEST_F(SessionCommands, APinnedSessionStaysHotWhateverComes) {
  Ask(Of(1, "a", Tokens(400, 1), 5));
  const SessionAnswer pinned = Do({.verb = SessionVerb::kPin, .pinned = true});
  EXPECT_TRUE(pinned.status.ok());
  EXPECT_EQ(pinned.moved_tokens, 400u);
  for (uint64_t i = 2; i < 30; ++i) Ask(Request(i, Tokens(800, i), 4));
  EXPECT_EQ(Do(SessionVerb::kShow).sessions.front().hot.tokens, 400u);
  EXPECT_EQ(Do(SessionVerb::kSuspend).status.code(), Code::kInvalid);
  EXPECT_TRUE(Do({.verb = SessionVerb::kPin, .pinned = false}).status.ok());
  EXPECT_EQ(rig_.Step().stats.pinned_slots, 0u);
  for (uint64_t i = 30; i < 50; ++i) Ask(Request(i, Tokens(800, i), 4));
  EXPECT_EQ(Do(SessionVerb::kShow).sessions.front().hot.tokens, 0u);
}

}  // namespace
}  // namespace cachalot::engine
