#include "sched/down_decision.h"

#include <limits>

#include <gtest/gtest.h>

namespace cachalot::sched {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

const DownKv kKv{.tier = TierId::kDisk, .first_token = 32, .tokens = 40, .blocks = 3, .bytes = 3000};
const ReuseView kReuse{.probability = 0.5, .recompute_seconds = 2, .load_seconds = 0.25, .write_seconds = 1};

std::string Text(const Json& json, std::string_view name) { return *json.Find(name)->AsString(); }

TEST(DownDecision, TheCheapestWayIsTakenUnlessItIsAskedFor) {
  const DownView dear{.reuse = kReuse, .keep = kNever, .write_price = 10};
  EXPECT_EQ(DecideDown(kKv, dear, DownReason::kLeastCost).way, WayDown::kDrop);
  EXPECT_EQ(DecideDown(kKv, dear, DownReason::kAskedFor).way, WayDown::kHandDown);
  const DownView cheap{.reuse = kReuse, .keep = kNever, .write_price = 0.1};
  EXPECT_EQ(DecideDown(kKv, cheap, DownReason::kLeastCost).way, WayDown::kHandDown);
}

TEST(DownDecision, OneTellsWhatWasKnownThoughtAndThenTrue) {
  DownDecision decision =
      DecideDown(kKv, {.reuse = kReuse, .keep = kNever, .write_price = 0.5}, DownReason::kLeastCost);
  const Json json = DecisionAsJson(decision);
  EXPECT_EQ(Text(json, "tier") + ", " + Text(json, "way") + ", " + Text(json, "reason"), "disk, hand down, least cost");
  std::string text;
  JsonWriter(&text).Value(*json.Find("inputs"));
  EXPECT_EQ(text,
            R"({"first_token":32,"tokens":40,"blocks":3,"bytes":3000,"return_probability":0.5,"recompute_seconds":2.0,)"
            R"("load_seconds":0.25,"write_seconds":1.0,"write_price":0.5})");
  text.clear();
  JsonWriter(&text).Value(*json.Find("estimates"));
  EXPECT_EQ(text, R"({"keep":null,"hand_down":0.625,"drop":1.0})");
  EXPECT_TRUE(json.Find("outcome")->is_null());

  decision.outcome = {.written_blocks = 1, .failed_blocks = 1};
  EXPECT_TRUE(DecisionAsJson(decision).Find("outcome")->is_null()) << "of one it is not known";
  decision.outcome.skipped_blocks = 1;
  text.clear();
  JsonWriter(&text).Value(*DecisionAsJson(decision).Find("outcome"));
  EXPECT_EQ(text, R"({"written_blocks":1,"failed_blocks":1,"skipped_blocks":1})");
}

TEST(DownDecision, OfWhatDoesNotGoDownThereIsNoOutcome) {
  const DownDecision decision =
      DecideDown({.blocks = 0}, {.reuse = kReuse, .keep = kNever, .lower_exists = false}, DownReason::kNeededAtOnce);
  EXPECT_EQ(decision.way, WayDown::kDrop);
  EXPECT_TRUE(DecisionAsJson(decision).Find("outcome")->is_null());
  EXPECT_TRUE(DecisionAsJson(decision).Find("estimates")->Find("hand_down")->is_null());
}

TEST(DownDecision, TheLineSaysWhatWasChosenAndWhatTheOthersCost) {
  const DownDecision decision =
      DecideDown(kKv, {.reuse = kReuse, .keep = 1, .write_price = 0.5}, DownReason::kLeastCost);
  EXPECT_EQ(DecisionLine(decision),
            "disk: hand down (least cost): 40 tokens from 32, 3 blocks of 3000 bytes; used again with 0.5; keep 1 s, "
            "hand down 0.625 s, drop 1 s");
}

}  // namespace
}  // namespace cachalot::sched
