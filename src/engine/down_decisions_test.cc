// What is told of decisions on the way down: inputs, estimates, and what came of them.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "engine/testing/told_decisions.h"

namespace cachalot::engine {
namespace {

// Over a link that takes hundreds of steps to bring a block down, and no disk.
TieredRig::Options OverALink(const StepCurve& curve) {
  TieredRig::Options options = With(curve);
  options.device = Device::kSimLink;
  options.disk_bytes = 0;
  options.host_bytes = 4 << 20;
  return options;
}

Json::Array DecisionsOf(TieredRig& tiered) { return *DecisionsTold(tiered).decisions_down.AsArray(); }

GenerateRequest Of(const char* session, uint64_t id, std::vector<TokenId> prompt) {
  GenerateRequest request = Request(id, std::move(prompt), 4);
  request.session = SessionName{"alice", session};
  return request;
}

void Command(TieredRig& tiered, uint64_t id, SessionVerb verb, const std::string& session) {
  tiered.rig().Command({.id = SessionCommandId(id), .verb = verb, .name = {"alice", session}});
}
void Settle(TieredRig& tiered) {
  for (int i = 0; i < 200; ++i) {
    tiered.rig().Advance(std::chrono::milliseconds(5));
    tiered.rig().Step();
  }
}

// E.g. "disk: hand down (least cost)".
std::string What(const Json& json) {
  return Text(json, {"tier"}) + ": " + Text(json, {"way"}) + " (" + Text(json, {"reason"}) + ")";
}
// E.g. "3 written, 0 failed, 1 skipped"; "" while it is not known.
std::string OutcomeOf(const Json& json) {
  if (In(json, {"outcome"}).is_null()) return "";
  const auto blocks = [&](std::string_view which) { return std::to_string(Int(json, {"outcome", which})); };
  return blocks("written_blocks") + " written, " + blocks("failed_blocks") + " failed, " + blocks("skipped_blocks") +
         " skipped";
}

TEST(DownDecisions, AHistoryThatIsWorthItGoesToDisk) {
  TieredRig tiered(With(kSlow));
  Ask(tiered, Of("talk", 2, Tokens(200, 1)));
  Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(What(all[0]), "disk: hand down (least cost)");
  EXPECT_EQ(Int(all[0], {"request"}), 2);
  EXPECT_EQ(Text(all[0], {"owner"}) + "/" + Text(all[0], {"session"}), "alice/talk");
  EXPECT_GT(Number(all[0], {"seconds_ago"}), 0);
  EXPECT_EQ(Int(all[0], {"inputs", "tokens"}), 203);
  EXPECT_EQ(Int(all[0], {"inputs", "blocks"}), 13);
  EXPECT_EQ(Int(all[0], {"inputs", "bytes"}), static_cast<int64_t>(13 * exec::FakeExecutor::LayoutFor({}).slot_bytes));
  const double lost =
      Number(all[0], {"inputs", "return_probability"}) * Number(all[0], {"inputs", "recompute_seconds"});
  EXPECT_GT(lost, 0);
  EXPECT_EQ(Number(all[0], {"estimates", "drop"}), lost);
  EXPECT_LT(Number(all[0], {"estimates", "hand_down"}), lost);
  EXPECT_EQ(OutcomeOf(all[0]), "");
  tiered.rig().WriteAll();
  all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(OutcomeOf(all[0]), "13 written, 0 failed, 0 skipped");
}

TEST(DownDecisions, AHistoryThatIsNotStaysWhereItIs) {
  TieredRig tiered(With(kQuick));
  Ask(tiered, Of("talk", 1, Tokens(200, 1)));
  Ask(tiered, Request(2, Tokens(100, 2), 40));
  tiered.rig().WriteAll();
  const Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 3u);
  for (const Json& one : all) {
    EXPECT_EQ(What(one), "disk: keep (least cost)");
    EXPECT_GT(Number(one, {"estimates", "hand_down"}), Number(one, {"estimates", "keep"}));
    EXPECT_EQ(OutcomeOf(one), "");
  }
  EXPECT_EQ(Int(all[1], {"inputs", "tokens"}), 139) << "the whole history of one that is no session";
  EXPECT_EQ(Int(all[2], {"inputs", "tokens"}), 100) << "then its prompt";
}

TEST(DownDecisions, OfASessionThatIsSuspendedWhatIsMissingGoesToDiskWhateverItCosts) {
  TieredRig tiered(With(kQuick));
  Ask(tiered, Of("talk", 1, Tokens(100, 1)));
  Command(tiered, 1, SessionVerb::kSuspend, "talk");
  tiered.rig().WriteAll();
  Ask(tiered, Of("talk", 2, Tokens(190, 1)));
  Command(tiered, 2, SessionVerb::kSuspend, "talk");
  tiered.rig().WriteAll();
  const Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 4u);  // each history was not worth it when its request ended
  EXPECT_EQ(What(all[1]), "disk: hand down (asked for)");
  EXPECT_EQ(OutcomeOf(all[1]), "7 written, 0 failed, 0 skipped");
  EXPECT_TRUE(In(all[1], {"request"}).is_null());
  EXPECT_EQ(Text(all[1], {"owner"}) + "/" + Text(all[1], {"session"}), "alice/talk");
  EXPECT_EQ(OutcomeOf(all[3]), "7 written, 0 failed, 6 skipped");
}

TEST(DownDecisions, WhatCouldNotBeWrittenFailed) {
  TieredRig::Options options = With(kSlow);
  options.faults.fail_share = 1;
  TieredRig tiered(options);
  Ask(tiered, Request(1, Tokens(100, 1), 4));
  tiered.rig().WriteAll();
  const Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(OutcomeOf(all[0]), "0 written, 6 failed, 0 skipped");
}

TEST(DownDecisions, WhatIsTooLargeToBeWrittenIsSkipped) {
  TieredRig::Options options = With(kSlow);
  options.staging_bytes = 4096;
  TieredRig tiered(options);
  ASSERT_GT(100 * exec::FakeExecutor::LayoutFor({}).slot_bytes, options.staging_bytes);
  Ask(tiered, Request(1, Tokens(1600, 1), 1));
  tiered.rig().WriteAll();
  const Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(OutcomeOf(all[0]), "0 written, 0 failed, 100 skipped");
}

TEST(DownDecisions, BlocksOfASuspendedSessionGoToHostMemory) {
  TieredRig tiered(OverALink(kSlow));
  Ask(tiered, Of("talk", 1, Tokens(61, 1)));
  Command(tiered, 1, SessionVerb::kSuspend, "talk");
  Settle(tiered);
  const Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 4u);
  for (const Json& one : all) {
    EXPECT_EQ(What(one), "host: hand down (asked for)");
    EXPECT_TRUE(In(one, {"session"}).is_null()) << "others may have it, too";
    EXPECT_EQ(Int(one, {"inputs", "blocks"}), 1);
    EXPECT_EQ(OutcomeOf(one), "1 written, 0 failed, 0 skipped");
  }
}

TEST(DownDecisions, ACopyThatFailsIsToldAndSoIsABlockThatIsTakenBack) {
  TieredRig tiered(OverALink(kSlow));
  Ask(tiered, Of("talk", 1, Tokens(61, 1)));
  tiered.rig().memory().FailCopyOut(2);
  Command(tiered, 1, SessionVerb::kSuspend, "talk");
  Settle(tiered);
  Ask(tiered, Of("walk", 2, Tokens(61, 2)));
  Command(tiered, 2, SessionVerb::kSuspend, "walk");
  Ask(tiered, Of("walk", 3, Tokens(61, 2)));
  Settle(tiered);
  std::map<std::string, int> outcomes;
  for (const Json& one : DecisionsOf(tiered)) ++outcomes[OutcomeOf(one)];
  EXPECT_EQ(outcomes["0 written, 1 failed, 0 skipped"], 1);
  EXPECT_EQ(outcomes["0 written, 0 failed, 1 skipped"], 3) << "its whole blocks";
  EXPECT_EQ(outcomes[""], 0);
}

TEST(DownDecisions, WhatGivesWayIsHandedDownWhereThatIsWorthItAndDroppedElse) {
  for (const StepCurve& curve : {kSlow, kQuick}) {
    TieredRig::Options options = OverALink(curve);
    options.slots = 40;
    TieredRig tiered(options);
    for (uint64_t id = 1; id <= 6; ++id) Ask(tiered, Request(id, Tokens(300, id), 2));
    Settle(tiered);
    std::map<std::string, int> what;
    for (const Json& one : DecisionsOf(tiered)) {
      ++what[What(one)];
      EXPECT_TRUE(In(one, {"estimates", "keep"}).AsNumber() > 1e300) << "its slot is needed";
      EXPECT_EQ(OutcomeOf(one), Text(one, {"way"}) == "drop" ? "" : "1 written, 0 failed, 0 skipped");
    }
    EXPECT_EQ(what["host: hand down (least cost)"] > 20, curve == kSlow);
    EXPECT_EQ(what["host: drop (least cost)"] > 20, curve == kQuick);
  }
}

TEST(DownDecisions, WhereHostMemoryHasNoRoomTheBlockIsDropped) {
  TieredRig::Options options = OverALink(kSlow);
  options.host_bytes = 8 * exec::FakeExecutor::LayoutFor({}).slot_bytes;
  TieredRig tiered(options);
  Ask(tiered, Of("talk", 1, Tokens(200, 1)));
  Command(tiered, 1, SessionVerb::kSuspend, "talk");
  Settle(tiered);
  std::map<std::string, int> what;
  for (const Json& one : DecisionsOf(tiered)) ++what[What(one)];
  EXPECT_GT(what["host: hand down (asked for)"], 0);
  EXPECT_GT(what["host: drop (no room)"], 0);
}

// Sessions that are suspended, gone on with and deleted while their KV is on its way, over tiers that fail.
TEST(DownDecisions, WhateverHappensAllOfWhatGoesDownHasItsOutcome) {
  std::map<std::string, int64_t> blocks;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    TieredRig::Options options = OverALink(kSlow);
    options.slots = 80;
    options.link = {.bytes_per_second = 1e9};
    options.disk_bytes = 16 << 20;
    options.host_bytes = 1 << 18;
    options.staging_bytes = 1 << 14;
    options.faults = {.seed = seed, .bytes_per_second = 1e8, .fail_share = 0.1, .hold_share = 0.2};
    TieredRig tiered(options);
    SplitMix64 random(seed);
    for (uint64_t id = 1; id <= 60; ++id) {
      const std::string session(1, static_cast<char>('a' + random.Below(6)));
      tiered.rig().Arrive(Of(session.c_str(), id, Tokens(static_cast<uint32_t>(20 + random.Below(300)), session[0])));
      for (uint64_t steps = random.Below(200); steps > 0; --steps) tiered.rig().Step();
      if (random.Below(3) > 0) tiered.rig().RunToEnd();
      if (random.Below(3) == 0) Command(tiered, id, SessionVerb::kSuspend, session);
      if (random.Below(6) == 0) Command(tiered, 100 + id, SessionVerb::kDelete, session);
      if (random.Below(20) == 0) {
        StepInput input;
        input.inquiries.push_back({InquiryId(id), InquiryKind::kClear, {}});
        tiered.rig().Step(std::move(input));
      }
    }
    tiered.rig().RunToEnd();
    tiered.rig().WriteAll();
    for (const Json& one : DecisionsOf(tiered)) {
      EXPECT_EQ(In(one, {"outcome"}).is_null(), Text(one, {"way"}) != "hand down") << What(one);
      if (In(one, {"outcome"}).is_null()) continue;
      int64_t all = 0;
      for (const auto& [name, count] : *In(one, {"outcome"}).AsObject()) {
        all += *count.AsInt();
        blocks[Text(one, {"tier"}) + " " + name] += *count.AsInt();
      }
      EXPECT_EQ(all, Int(one, {"inputs", "blocks"})) << What(one) << ": " << OutcomeOf(one);
    }
  }
  for (const char* tier : {"host", "disk"}) {
    for (const char* what : {" written_blocks", " skipped_blocks"}) EXPECT_GT(blocks[tier + std::string(what)], 20);
  }
  EXPECT_GT(blocks["disk failed_blocks"], 20);
}

}  // namespace
}  // namespace cachalot::engine
