#include "base/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cachalot {
namespace {

using ::testing::ElementsAre;

Result<SubprocessResult> Shell(const std::string& script) { return RunSubprocess({.argv = {"sh", "-c", script}}); }

TEST(Subprocess, CapturesBothStreamsAndTheExitStatus) {
  const Result<SubprocessResult> run = Shell("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->out, "out\n");
  EXPECT_EQ(run->err, "err\n");
  EXPECT_EQ(run->exit_status, 3);
  EXPECT_FALSE(run->ok());
  EXPECT_TRUE(Shell("true")->ok());
}

TEST(Subprocess, PassesArgumentsAsTheyAre) {
  const Result<SubprocessResult> run = RunSubprocess({.argv = {"printf", "%s", "a b\n$HOME '\""}});
  EXPECT_EQ(run->out, "a b\n$HOME '\"");
}

TEST(Subprocess, DeliversLinesAsTheyCome) {
  std::vector<std::string> lines;
  SubprocessOptions options;
  options.argv = {"printf", "one\\n\\ntwo\\nlast"};
  options.on_line = [&](std::string_view line) { lines.emplace_back(line); };
  const Result<SubprocessResult> run = RunSubprocess(options);
  ASSERT_TRUE(run.ok());
  EXPECT_THAT(lines, ElementsAre("one", "", "two", "last"));
  EXPECT_EQ(run->out, "");
}

TEST(Subprocess, TellsTheSignalThatEndedIt) {
  const Result<SubprocessResult> run = Shell("kill -9 $$");
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->signal, 9);
  EXPECT_FALSE(run->ok());
}

TEST(Subprocess, AProgramThatCannotStartIsAnError) {
  const Result<SubprocessResult> missing = RunSubprocess({.argv = {"no-such-program-here"}});
  EXPECT_EQ(missing.status().code(), Code::kUnavailable);
  EXPECT_EQ(missing.status().message(), "cannot run no-such-program-here: No such file or directory");
  EXPECT_EQ(RunSubprocess({.argv = {"/dev/null"}}).status().message(), "cannot run /dev/null: Permission denied");
}

TEST(Subprocess, StandardInputIsEmpty) { EXPECT_EQ(Shell("cat")->out, ""); }

TEST(Subprocess, WhatIsCapturedIsBounded) {
  SubprocessOptions options;
  options.capture_bytes = 10;
  options.argv = {"sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo 12345678; echo abcdefgh >&2; i=$((i+1)); done"};
  const Result<SubprocessResult> run = RunSubprocess(options);
  EXPECT_EQ(run->out, "12345678\n1");
  EXPECT_EQ(run->err, "\nabcdefgh\n");
}

TEST(Subprocess, AnEndlessLineArrivesInPieces) {
  size_t pieces = 0, total = 0;
  SubprocessOptions options;
  options.argv = {"head", "-c", "1000000", "/dev/zero"};
  options.on_line = [&](std::string_view line) {
    ++pieces;
    total += line.size();
    EXPECT_LE(line.size(), 100000u);
  };
  ASSERT_TRUE(RunSubprocess(options).ok());
  EXPECT_GT(pieces, 5u);
  EXPECT_EQ(total, 1000000u);
}

}  // namespace
}  // namespace cachalot
