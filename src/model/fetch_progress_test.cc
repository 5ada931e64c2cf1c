#include "model/fetch_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/catalogue.h"

namespace cachalot::model {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class FetchProgressTest : public ::testing::Test {
 protected:
  FetchProgressTest() {
    entry_.name = "m";
    entry_.file_bytes = 2048;
    entry_.parts = {{"p", "1", "x", 1024}, {"q", "1", "y", 1024}};
  }
  CatalogueEntry entry_;
  std::string shown_;
  std::function<void(std::string_view)> print_ = [this](std::string_view text) { shown_ += text; };
};

TEST_F(FetchProgressTest, PrintsALineForEachTenthWithoutATerminal) {
  FetchProgress progress(entry_, false, print_);
  progress.OnLine("part 0");
  for (int bytes = 0; bytes <= 1024; bytes += 8) progress.OnLine("bytes " + std::to_string(bytes));
  progress.OnLine("part 1");
  progress.OnLine("bytes 1024");
  progress.OnLine("unpack 2048");
  progress.End();
  EXPECT_EQ(shown_,
            "m: downloading   0%  0 B of 2 KiB\n"
            "m: downloading  10%  208 B of 2 KiB\n"
            "m: downloading  20%  416 B of 2 KiB\n"
            "m: downloading  30%  616 B of 2 KiB\n"
            "m: downloading  40%  824 B of 2 KiB\n"
            "m: downloading  50%  1 KiB of 2 KiB\n"
            "m: downloading 100%  2 KiB of 2 KiB\n"
            "m: unpacking 100%  2 KiB of 2 KiB\n");
}

TEST_F(FetchProgressTest, DrawsABarInPlaceOnATerminal) {
  FetchProgress progress(entry_, true, print_);
  progress.OnLine("part 1");
  progress.OnLine("bytes 0");
  EXPECT_EQ(shown_, "\rm: downloading [###############...............]  50%  1 KiB of 2 KiB");
  progress.OnLine("bytes 1");
  EXPECT_THAT(shown_, EndsWith(" 50%  1 KiB of 2 KiB"));
  progress.OnLine("bytes 1024");
  EXPECT_THAT(shown_, EndsWith("\rm: downloading [##############################] 100%  2 KiB of 2 KiB"));
  progress.OnLine("note so\tit is");
  EXPECT_THAT(shown_, EndsWith("of 2 KiB\nm: so\tit is\n"));
  progress.End();
  EXPECT_THAT(shown_, EndsWith("it is\n"));
}

TEST_F(FetchProgressTest, KeepsTheErrorAndIgnoresWhatItDoesNotKnow) {
  FetchProgress progress(entry_, false, print_);
  for (const char* line : {"", "nonsense", "bytes", "bytes x", "part 99", "error", "error no space left"}) {
    progress.OnLine(line);
  }
  EXPECT_EQ(progress.error(), "no space left");
  EXPECT_THAT(shown_, HasSubstr("downloading"));
}

}  // namespace
}  // namespace cachalot::model
