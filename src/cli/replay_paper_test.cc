#include "cli/replay_paper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cachalot::cli {
namespace {

using sim::FigureUnit;
using testing::HasSubstr;

const sim::Paper kPaper{.name = "n", .title = "Title", .source = "S", .differs = "D", .trace = {}, .run = nullptr};

sim::PaperResult Result() {
  return {.setting = "as it was",
          .rows = {sim::EqualRow("tokens", FigureUnit::kCount, 1065, 1065),
                   sim::NearRow("share", FigureUnit::kPercent, 0.5, 0.2, 0.1),
                   sim::ShownRow("time", FigureUnit::kSeconds, 1.5)}};
}

TEST(ReplayPaper, TextHasAColumnOfVerdicts) {
  EXPECT_EQ(PaperAsText(kPaper, Result()),
            "Title\nsource   S\nsetting  as it was\ndiffers  D\n\n"
            "figure      ours   paper  verdict\n"
            "tokens     1,065   1,065  holds: equal\n"
            "share     50.0 %  20.0 %  FAILS: within 10.0 points\n"
            "time    1.5000 s       -  -\n"
            "\n1 of 2 claims hold\n");
}

TEST(ReplayPaper, JsonHasTheSame) {
  const auto json = nlohmann::json::parse(PaperAsJson(kPaper, Result()));
  EXPECT_EQ(json["paper"], "n");
  EXPECT_EQ(json["rows"][0]["ours"], 1065);
  EXPECT_EQ(json["rows"][1]["unit"], "share");
  EXPECT_EQ(json["rows"][1]["holds"], false);
  EXPECT_TRUE(json["rows"][2]["claim"].is_null());
  EXPECT_TRUE(json["rows"][2]["paper"].is_null());
  EXPECT_EQ(json["claims"], 2);
  EXPECT_EQ(json["holding"], 1);
}

TEST(ReplayPaper, BadArgumentsSayWhatIsExpected) {
  EXPECT_THAT(ReplayPaperCommand({"nobody"}).message(), HasSubstr("expected one of"));
  EXPECT_THAT(ReplayPaperCommand({"mooncake"}).message(), HasSubstr("needs --trace"));
  EXPECT_THAT(ReplayPaperCommand({"mooncake", "--trace", "/nowhere"}).message(), HasSubstr("/nowhere"));
  EXPECT_TRUE(ReplayPaperCommand({"lightllm"}).ok());
  EXPECT_TRUE(ReplayPaperCommand({}).ok());
}

}  // namespace
}  // namespace cachalot::cli
