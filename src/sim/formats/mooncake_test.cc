#include <gtest/gtest.h>

#include <string>

#include "sim/read_trace.h"
#include "sim/testing/trace_file.h"

namespace cachalot::sim {
namespace {

using testing::ErrorOf;
using testing::Read;

constexpr const char* kGood = R"({"timestamp": 0, "input_length": 9, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 1500.5, "input_length": 4, "output_length": 0, "hash_ids": [0], "other": true}

{"timestamp": 1500.5, "input_length": 0, "output_length": 1, "hash_ids": []}
)";

ReadTraceOptions Mooncake() { return {.format = "mooncake", .block_tokens = 4}; }

TEST(MooncakeFormat, ReadsRequestsAndSkipsEmptyLines) {
  const Trace trace = Read(kGood, Mooncake()).trace;
  ASSERT_EQ(trace.requests.size(), 3u);
  EXPECT_EQ(trace.requests[1].arrival, Nanos(1'500'500'000));
  EXPECT_EQ(trace.requests[0].blocks, (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_EQ(trace.requests[0].input_tokens, 9u);
  EXPECT_EQ(trace.requests[0].output_tokens, 5u);
  EXPECT_TRUE(trace.requests[0].text.empty());
}

struct BadLine {
  const char* text;
  const char* message;
};

constexpr BadLine kBadLines[] = {
    {"{\"timestamp\": 1", "line 2: "},
    {"[1]", "line 2: expected an object, got array"},
    {R"({"input_length": 4, "output_length": 1, "hash_ids": [0]})", "line 2: \"timestamp\" is missing"},
    {R"({"timestamp": -1, "input_length": 4, "output_length": 1, "hash_ids": [0]})", "got -1"},
    {R"({"timestamp": 1e300, "input_length": 4, "output_length": 1, "hash_ids": [0]})", "got 1e+300"},
    {R"({"timestamp": "a", "input_length": 4, "output_length": 1, "hash_ids": [0]})", "got string"},
    {R"({"timestamp": 1, "input_length": 4.5, "output_length": 1, "hash_ids": [0]})",
     "line 2: \"input_length\": expected a whole number of tokens from 0 to 16777216, got 4.5"},
    {R"({"timestamp": 1, "input_length": 4, "output_length": 1e18, "hash_ids": [0]})",
     "line 2: \"output_length\": expected a whole number of tokens from 0 to 16777216, got 1e+18"},
    {R"({"timestamp": 1, "input_length": 4, "output_length": "a", "hash_ids": [0]})",
     "line 2: \"output_length\": expected a whole number of tokens from 0 to 16777216, got string"},
    {R"({"timestamp": 1, "input_length": 4, "output_length": -3, "hash_ids": [0]})", "got -3"},
    {R"({"timestamp": 1, "input_length": 1000000000000000000, "output_length": 1, "hash_ids": [0]})",
     "line 2: \"input_length\": expected a number of tokens from 0 to 16777216, got 1000000000000000000"},
    {R"({"timestamp": 1, "input_length": 4, "output_length": 1, "hash_ids": 7})",
     "line 2: \"hash_ids\": expected an array of integers, got integer"},
    {R"({"timestamp": 1, "input_length": 8, "output_length": 1, "hash_ids": [0, "x"]})",
     "line 2: \"hash_ids\"[1]: expected an integer of at least 0, got string"},
    {R"({"timestamp": 1, "input_length": 9, "output_length": 1, "hash_ids": [0, 1]})",
     "line 2: 2 hash_ids for 9 input tokens: expected 3, one per block of 4"},
    {R"({"timestamp": 1, "input_length": 8, "output_length": 1, "hash_ids": [1, 0]})",
     "line 2: hash id 0 stands in another place than in an earlier request"},
    {R"({"timestamp": 1, "input_length": 8, "output_length": 1, "hash_ids": [5, 5]})",
     "line 2: hash id 5 stands in several places: expected it in one"},
    {R"({"timestamp": 0, "input_length": 4, "output_length": 1, "hash_ids": [0]})",
     "line 2: its time is 0.001 s before that of line 1: expected them in order, or --sort"},
    {R"({"timestamp": 700000000, "input_length": 4, "output_length": 1, "hash_ids": [0]})",
     "line 2: its time is 700000 s after that of line 1, as if the clock had jumped"},
};

constexpr const char* kFirst = R"({"timestamp": 1, "input_length": 4, "output_length": 1, "hash_ids": [0]})";
constexpr const char* kLast = R"({"timestamp": 9, "input_length": 8, "output_length": 1, "hash_ids": [0, 1]})";

TEST(MooncakeFormat, SaysWhatIsWrongInWhichLine) {
  for (const BadLine& line : kBadLines) {
    const std::string error = ErrorOf(std::string(kFirst) + "\n" + line.text, Mooncake());
    EXPECT_NE(error.find(line.message), std::string::npos) << line.text << ": " << error;
    EXPECT_EQ(error.find("line 2: "), 0u) << error;
  }
  EXPECT_EQ(ErrorOf(kFirst, {.block_tokens = 2'000'000}), "blocks of 2000000 tokens: expected at most 1048576");
}

TEST(MooncakeFormat, BadLinesAreSkippedWhenAskedForAndLeaveNothingBehind) {
  ReadTraceOptions options = Mooncake();
  options.skip_bad = true;
  for (const BadLine& line : kBadLines) {
    const TraceFile file = Read(std::string(kFirst) + "\n" + line.text + "\n" + kLast, options);
    EXPECT_EQ(file.trace.requests.size(), 2u) << line.text;
    EXPECT_EQ(file.facts.skipped_lines, 1u);
    EXPECT_NE(file.facts.first_skipped.find(line.message), std::string::npos) << file.facts.first_skipped;
  }
}

TEST(MooncakeFormat, WhatIsWrittenIsReadBackTheSame) {
  const std::string text = FormatTrace(Read(kGood, Mooncake()).trace);
  EXPECT_EQ(FormatTrace(Read(text, Mooncake()).trace), text);
}

}  // namespace
}  // namespace cachalot::sim
