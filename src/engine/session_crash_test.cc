// The power fails at every operation of the disk in turn, while sessions are suspended, gone on with and deleted, and
// KV is cleared.
#include <gtest/gtest.h>

#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {
namespace {

// What a life did, and what was acknowledged of it.
class Life {
 public:
  explicit Life(TieredRig& tiered) : tiered_(tiered) {}

  // Until something is not acknowledged.
  bool Live() {
    return Turn("a", Tokens(100, 1)) && Suspend("a") && Turn("b", Tokens(70, 2)) && Suspend("b") && Delete("a") &&
           Turn("b", And(histories_["b"], 7)) && Suspend("b") && Turn("c", Tokens(40, 3)) && Delete("c") &&
           Turn("a", Tokens(60, 4)) && Suspend("a") && Delete("b") && Turn("d", Tokens(90, 5)) && Suspend("d") &&
           Clear();
  }

  // After the crash.
  void Check() {
    for (const auto& [name, tokens] : suspended_) {
      const SessionAnswer shown = Do({.verb = SessionVerb::kShow, .name = {"", name}});
      if (deleting_ == name) continue;  // it may be gone, or not yet
      EXPECT_TRUE(shown.found) << name << " was suspended";
      if (!shown.found) continue;
      EXPECT_GE(shown.sessions.front().tokens, tokens) << name;
    }
    for (const std::string& name : deleted_) {
      if (histories_.contains(name)) continue;  // begun anew
      EXPECT_FALSE(Do({.verb = SessionVerb::kShow, .name = {"", name}}).found) << name << " was deleted";
    }
    for (const std::vector<TokenId>& prompt : forgotten_) {
      EXPECT_EQ(Ask(tiered_, Request(++last_, prompt, 4)), 0u) << "deleted or cleared KV";
    }
    for (const auto& [name, history] : histories_) Ask(tiered_, Request(++last_, And(history, 9), 4));
  }

 private:
  static std::vector<TokenId> And(std::vector<TokenId> tokens, TokenId next) {
    tokens.push_back(next);
    return tokens;
  }
  SessionAnswer Do(SessionCommand command) {
    command.id = SessionCommandId(++last_);
    tiered_.rig().Command(command);
    for (int i = 0; i < 20'000 && !tiered_.rig().session_answers.contains(command.id); ++i) tiered_.rig().Step();
    EXPECT_TRUE(tiered_.rig().session_answers.contains(command.id));
    return tiered_.rig().session_answers[command.id];
  }
  bool Turn(const std::string& name, const std::vector<TokenId>& prompt) {
    GenerateRequest request = Request(++last_, prompt, 4);
    request.session = SessionName{"", name};
    Ask(tiered_, request);
    histories_[name] = prompt;
    const std::vector<TokenId>& answer = tiered_.rig().outputs[{request.id, 0u}];
    histories_[name].insert(histories_[name].end(), answer.begin(), answer.end());
    return true;
  }
  bool Suspend(const std::string& name) {
    const SessionAnswer answer = Do({.verb = SessionVerb::kSuspend, .name = {"", name}});
    const bool acknowledged = answer.status.ok() && answer.durable;
    if (acknowledged) suspended_[name] = histories_[name].size();
    return acknowledged;
  }
  bool Delete(const std::string& name) {
    deleting_ = name;
    const SessionAnswer answer = Do({.verb = SessionVerb::kDelete, .name = {"", name}});
    const bool acknowledged = answer.status.ok() && answer.durable;
    if (acknowledged) {
      deleting_.clear();
      deleted_.push_back(name);
      suspended_.erase(name);
      forgotten_.push_back(histories_[name]);
      histories_.erase(name);
    }
    return acknowledged;
  }
  // All KV, and no session.
  bool Clear() {
    StepInput input;
    input.inquiries.push_back({InquiryId(++last_), InquiryKind::kClear, {}});
    const bool acknowledged = tiered_.rig().Step(std::move(input)).answers.front().cleared.ok();
    if (acknowledged) {
      for (const auto& [name, history] : histories_) forgotten_.push_back(history);
    }
    return acknowledged;
  }

  TieredRig& tiered_;
  uint64_t last_ = 0;
  std::map<std::string, std::vector<TokenId>> histories_;
  std::map<std::string, uint64_t> suspended_;  // tokens
  std::vector<std::string> deleted_;
  std::vector<std::vector<TokenId>> forgotten_;
  std::string deleting_;  // and not acknowledged
};

TEST(SessionCrash, AtEveryOperationWhatWasAcknowledgedHolds) {
  for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept, Unsynced::kMixed}) {
    uint64_t nth = 1;
    for (bool whole = false; !whole; ++nth) {
      SCOPED_TRACE(testing::Message() << "operation " << nth << ", crash " << static_cast<int>(unsynced));
      TieredRig::Options options{.engine = {.max_sequences = 4, .step_rows = 64, .prefill_chunk = 64}};
      options.disk_bytes = 2 << 20;
      options.session_store = true;
      TieredRig tiered(options);
      Life life(tiered);
      tiered.files().Fail({FileOp::kAny, nth, true});
      whole = life.Live();
      tiered.Crash(unsynced, nth);
      life.Check();
      if (testing::Test::HasFailure()) return;
      ASSERT_LT(nth, 3000u);
    }
    EXPECT_GT(nth, 40u);
  }
}

}  // namespace
}  // namespace cachalot::engine
