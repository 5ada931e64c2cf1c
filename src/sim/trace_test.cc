#include "sim/trace.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/workload.h"

namespace cachalot::sim {
namespace {

constexpr const char* kGood = R"({"timestamp": 0, "input_length": 9, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 1500.5, "input_length": 4, "output_length": 0, "hash_ids": [0], "other": true}

{"timestamp": 1500.5, "input_length": 0, "output_length": 1, "hash_ids": []}
)";

TEST(Trace, ReadsRequestsAndSkipsEmptyLines) {
  const auto trace = ParseTrace(kGood, 4);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ASSERT_EQ(trace->requests.size(), 3u);
  EXPECT_EQ(trace->requests[1].arrival, Nanos(1'500'500'000));
  EXPECT_EQ(trace->requests[0].blocks, (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_EQ(trace->requests[0].input_tokens, 9u);
  EXPECT_EQ(trace->requests[0].output_tokens, 5u);
}

struct BadLine {
  const char* text;
  const char* message;
};

TEST(Trace, SaysWhatIsWrongInWhichLine) {
  const BadLine lines[] = {
      {"{\"timestamp\": 1", "line 2: "},
      {"[1]", "line 2: expected an object, got array"},
      {R"({"input_length": 4, "output_length": 1, "hash_ids": [0]})", "line 2: \"timestamp\" is missing"},
      {R"({"timestamp": -1, "input_length": 4, "output_length": 1, "hash_ids": [0]})", "got -1"},
      {R"({"timestamp": "a", "input_length": 4, "output_length": 1, "hash_ids": [0]})", "got string"},
      {R"({"timestamp": 1, "input_length": 4.5, "output_length": 1, "hash_ids": [0]})",
       "line 2: \"input_length\": expected a number of tokens, got number"},
      {R"({"timestamp": 1, "input_length": 4, "output_length": -3, "hash_ids": [0]})", "got -3"},
      {R"({"timestamp": 1, "input_length": 4, "output_length": 1, "hash_ids": 7})",
       "line 2: \"hash_ids\": expected an array of integers, got integer"},
      {R"({"timestamp": 1, "input_length": 8, "output_length": 1, "hash_ids": [0, "x"]})",
       "line 2: \"hash_ids\"[1]: expected an integer of at least 0, got \"x\""},
      {R"({"timestamp": 1, "input_length": 9, "output_length": 1, "hash_ids": [0, 1]})",
       "line 2: 2 hash_ids for 9 input tokens: expected 3, one per block of 4"},
      {R"({"timestamp": 1, "input_length": 8, "output_length": 1, "hash_ids": [1, 0]})",
       "line 2: hash id 0 stands in another place than in an earlier request"},
      {R"({"timestamp": 0, "input_length": 8, "output_length": 1, "hash_ids": [5, 5]})", "line 2: "},
      {R"({"timestamp": 0, "input_length": 4, "output_length": 1, "hash_ids": [0]})",
       "line 2: \"timestamp\" is before that of the request above it"},
  };
  const std::string first = R"({"timestamp": 1, "input_length": 4, "output_length": 1, "hash_ids": [0]})";
  for (const BadLine& line : lines) {
    const auto trace = ParseTrace(first + "\n" + line.text, 4);
    ASSERT_FALSE(trace.ok()) << line.text;
    EXPECT_EQ(trace.status().code(), Code::kInvalid);
    EXPECT_NE(trace.status().message().find(line.message), std::string::npos) << trace.status().message();
    EXPECT_EQ(trace.status().message().find("line 2: "), 0u) << trace.status().message();
  }
  EXPECT_FALSE(ParseTrace(first, 0).ok());
}

TEST(Trace, WorkloadsAreTracesAndDependOnTheirSeedAlone) {
  for (const std::string_view name : WorkloadNames()) {
    const auto made = MakeWorkload(name, {.seed = 3, .requests = 400, .block_tokens = 256});
    ASSERT_TRUE(made.ok());
    const std::string text = FormatTrace(*made);
    const auto read = ParseTrace(text, 256);
    ASSERT_TRUE(read.ok()) << name << ": " << read.status().message();
    EXPECT_EQ(read->requests.size(), 400u);
    EXPECT_EQ(FormatTrace(*read), text);
    EXPECT_EQ(FormatTrace(*MakeWorkload(name, {.seed = 3, .requests = 400, .block_tokens = 256})), text);
    EXPECT_NE(FormatTrace(*MakeWorkload(name, {.seed = 4, .requests = 400, .block_tokens = 256})), text);
  }
}

TEST(Workload, RefusesWhatItCannotMake) {
  EXPECT_EQ(MakeWorkload("chats", {}).status().message(),
            "unknown workload \"chats\": expected one of chat, agent, rag, scan");
  EXPECT_FALSE(MakeWorkload("chat", {.block_tokens = 0}).ok());
  EXPECT_FALSE(MakeWorkload("chat", {.requests = 10'000'001}).ok());
  EXPECT_TRUE(MakeWorkload("chat", {.requests = 0}).ok());
}

}  // namespace
}  // namespace cachalot::sim
