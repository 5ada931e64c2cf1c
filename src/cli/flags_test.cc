#include "cli/flags.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/file.h"

namespace cachalot::cli {
namespace {

class OutputFiles : public testing::Test {
 protected:
  OutputFiles() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    EXPECT_TRUE(WriteFileAtomically(Path("trace"), "text").ok());
  }
  ~OutputFiles() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string ErrorOf(const std::vector<std::string>& arguments) const {
    std::string trace, series, log, profile;
    FlagSet flags("test", "");
    flags.Positional("TRACE", &trace, "", false);
    flags.Add("series", series, "");
    flags.Add("log", log, "");
    flags.Add("profile", profile, "");
    flags.Output("series");
    flags.Output("log");
    return flags.Parse(arguments).status().message();
  }

  const std::string folder_ = testing::TempDir() + "cachalot_output_files";
};

TEST_F(OutputFiles, MayBeNoFileOfAnotherSetting) {
  const std::string trace = Path("trace"), link = Path("link");
  std::filesystem::create_symlink(trace, link);
  EXPECT_EQ(ErrorOf({trace, "--series=" + trace}),
            "--series would write over " + trace + ", which is of TRACE: expected another one");
  EXPECT_EQ(ErrorOf({"--profile", trace, "--log", link}),
            "--log would write over " + link + ", which is of --profile: expected another one");
  EXPECT_NE(ErrorOf({"--config", trace, "--log", Path("../cachalot_output_files/trace")}), "");
  EXPECT_NE(ErrorOf({"--series", Path("new"), "--log", Path("./new")}), "");
  EXPECT_NE(ErrorOf({folder_, "--log", trace}), "");  // a file in the folder that is read
  EXPECT_EQ(ReadFile(trace, 100).value(), "text");
}

TEST_F(OutputFiles, MayBeOthersAndOneDevice) {
  EXPECT_EQ(ErrorOf({folder_, "--log", Path("new")}), "");
  EXPECT_EQ(ErrorOf({Path("trace"), "--series", Path("new"), "--log", Path("other")}), "");
  EXPECT_EQ(ErrorOf({Path("trace"), "--profile", Path("trace"), "--log", Path("new")}), "");
  EXPECT_EQ(ErrorOf({"/dev/null", "--series", "/dev/null", "--log", "/dev/null"}), "");
}

}  // namespace
}  // namespace cachalot::cli
