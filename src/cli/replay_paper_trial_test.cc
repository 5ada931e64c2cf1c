// Every `cachalot replay paper NAME` that needs no trace: the command, with all that its figures claim. The one that
// needs a trace is a test by itself (cmake/end_to_end.cmake).
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "sim/papers/papers.h"

namespace cachalot::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReplayPaper, AllClaimsOfEveryFigureHold) {
  std::vector<std::string_view> with_trace;
  for (const sim::Paper& paper : sim::Papers()) {
    if (!paper.trace.empty()) {
      with_trace.push_back(paper.name);
      continue;
    }
    testing::internal::CaptureStdout();
    const Status status = ReplayCommand({"paper", std::string(paper.name)});
    const std::string printed = testing::internal::GetCapturedStdout();
    EXPECT_TRUE(status.ok()) << paper.name << ": " << status.message() << "\n" << printed;
    EXPECT_THAT(printed, HasSubstr("holds: ")) << paper.name;
    EXPECT_THAT(printed, Not(HasSubstr("FAILS"))) << paper.name;
  }
  EXPECT_THAT(with_trace, ElementsAre("mooncake"));
}

}  // namespace
}  // namespace cachalot::cli
