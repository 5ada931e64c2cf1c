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

TEST_F(OutputFiles, HaveAFolderBeforeAnythingIsDone) {
  const std::string nowhere = Path("nowhere/new");
  EXPECT_EQ(ErrorOf({"--log", nowhere}), "--log cannot be " + nowhere + ": there is no such folder");
  EXPECT_EQ(ErrorOf({"--log", "cachalot_new_file_here"}), "");
  EXPECT_EQ(ErrorOf({"--profile", nowhere}), "");  // is read, by whom it is for
}

TEST_F(OutputFiles, MayBeOthersAndOneDevice) {
  EXPECT_EQ(ErrorOf({folder_, "--log", Path("new")}), "");
  EXPECT_EQ(ErrorOf({Path("trace"), "--series", Path("new"), "--log", Path("other")}), "");
  EXPECT_EQ(ErrorOf({Path("trace"), "--profile", Path("trace"), "--log", Path("new")}), "");
  EXPECT_EQ(ErrorOf({"/dev/null", "--series", "/dev/null", "--log", "/dev/null"}), "");
}

TEST(Config, IsNamedWithWhatIsWrongInIt) {
  const std::string path = testing::TempDir() + "cachalot_flags_config.json";
  const auto error_of = [&](const std::string& text, std::vector<std::string> arguments = {}) {
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    uint64_t users = 0;
    ByteSize size;
    FlagSet flags("test", "");
    flags.Add("users", users, "");
    flags.Add("size", size, "");
    arguments.push_back("--config=" + path);
    return flags.Parse(arguments).status().message();
  };
  EXPECT_EQ(error_of(R"({"users": 3, "size": "1KiB"})"), "");
  EXPECT_TRUE(error_of(R"({"users": -3})").starts_with(path + ": --users: ")) << error_of(R"({"users": -3})");
  EXPECT_TRUE(error_of(R"({"size": "much"})").starts_with(path + ": --size: ")) << error_of(R"({"size": "much"})");
  EXPECT_TRUE(error_of(R"({"users": 3})", {"--users=-3"}).starts_with("--users: "));
}

TEST(Given, IsWhatTheCommandLineOrTheConfigSaysAndIsNotEmpty) {
  const std::string path = testing::TempDir() + "cachalot_flags_given.json";
  ASSERT_TRUE(WriteFileAtomically(path, R"({"rate": 2})").ok());
  std::string trace, log, html;
  bool on = true, off = false;
  double rate = 1;
  std::optional<double> latency;
  FlagSet flags("test", "");
  flags.Positional("TRACE", &trace, "", false);
  flags.Add("log", log, "");
  flags.Add("html", html, "");
  flags.Add("on", on, "");
  flags.Add("off", off, "");
  flags.Add("rate", rate, "");
  flags.Add("latency", latency, "");
  ASSERT_TRUE(flags.Parse({"t", "--log", "", "--no-on", "--latency=0.5", "--config=" + path}).ok());
  EXPECT_EQ(flags.Given(), (std::set<std::string, std::less<>>{"TRACE", "config", "latency", "on", "rate"}));
  EXPECT_EQ(latency, 0.5);
  EXPECT_FALSE(on);
}

}  // namespace
}  // namespace cachalot::cli
