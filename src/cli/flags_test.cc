#include "cli/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cachalot::cli {
namespace {

using testing::HasSubstr;

TEST(Flags, WholeNumbersSayWhatTheyMayBe) {
  uint32_t port = 7;
  std::vector<uint32_t> depths;
  const auto parse = [&](const std::string& argument) {
    FlagSet flags("test", "Tests.");
    flags.Add("port", port, "A port.");
    flags.Add("depths", depths, "Depths.");
    return flags.Parse({argument}).status().message();
  };
  for (const char* wrong : {"abc", "-3", "4294967296", "1.5", "7 "}) {
    const std::string expected = std::string("expected a whole number from 0 to 4294967295, got \"") + wrong + '"';
    EXPECT_THAT(parse(std::string("--port=") + wrong), HasSubstr(expected));
    EXPECT_THAT(parse(std::string("--depths=1,") + wrong), HasSubstr(expected));
  }
  EXPECT_EQ(port, 7u);
  EXPECT_EQ(parse("--port=4294967295"), "");
  EXPECT_EQ(port, 4294967295u);
  EXPECT_EQ(parse("--depths=1,2"), "");
  EXPECT_THAT(depths, testing::ElementsAre(1, 2));
}

}  // namespace
}  // namespace cachalot::cli
