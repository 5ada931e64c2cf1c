// Requests one after the other, as against whole traces.
#include <string>
#include <unordered_map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "sim/block_replay.h"
#include "sim/read_trace.h"
#include "sim/testing/trace_file.h"
#include "sim/workload.h"

namespace cachalot::sim {
namespace {

using ::testing::HasSubstr;

struct Streamed {
  std::vector<TraceRequest> requests;
  uint32_t block_tokens = 0;

  RequestSink Sink() {
    return [this](TraceRequest request, uint32_t tokens) {
      block_tokens = tokens;
      requests.push_back(std::move(request));
      return OkStatus();
    };
  }
};

// The same requests, whose blocks are the same by whatever numbers.
void ExpectEqual(const Streamed& streamed, const Trace& whole) {
  EXPECT_EQ(streamed.block_tokens, whole.block_tokens);
  ASSERT_EQ(streamed.requests.size(), whole.requests.size());
  std::unordered_map<uint64_t, uint64_t> there, back;
  for (size_t i = 0; i < whole.requests.size(); ++i) {
    const TraceRequest &one = streamed.requests[i], &other = whole.requests[i];
    ASSERT_EQ(one.arrival, other.arrival) << i;
    ASSERT_EQ(one.input_tokens, other.input_tokens) << i;
    ASSERT_EQ(one.output_tokens, other.output_tokens) << i;
    ASSERT_EQ(one.session, other.session) << i;
    ASSERT_EQ(one.blocks.size(), other.blocks.size()) << i;
    for (size_t b = 0; b < one.blocks.size(); ++b) {
      ASSERT_EQ(there.emplace(one.blocks[b], other.blocks[b]).first->second, other.blocks[b]) << i;
      ASSERT_EQ(back.emplace(other.blocks[b], one.blocks[b]).first->second, one.blocks[b]) << i;
    }
  }
}

TEST(StreamTrace, GivesTheRequestsOfEveryFormatInTheirOrder) {
  const struct {
    const char* file;
    const char* reuse;
  } samples[] = {{"mooncake.jsonl", ""},       {"record.jsonl", ""},
                 {"requests_vllm.jsonl", ""},  {"requests_sglang.jsonl", ""},
                 {"requests_chat.jsonl", ""},  {"azure.csv", "system:1000"},
                 {"burstgpt.csv", "chat:0.7"}, {"burstgpt_sessions.csv", "session"}};
  for (const auto& sample : samples) {
    const std::string path = std::string(CACHALOT_SOURCE_DIR) + "/tests/data/traces/" + sample.file;
    const ReadTraceOptions options{.longest_gap = 1e9, .reuse = sample.reuse};
    const Result<TraceFile> whole = ReadTraceFile(path, options);
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    Streamed streamed;
    const Result<TraceFacts> facts = StreamTraceFile(path, options, streamed.Sink());
    ASSERT_TRUE(facts.ok()) << facts.status().message();
    SCOPED_TRACE(sample.file);
    ExpectEqual(streamed, whole->trace);
    EXPECT_EQ(facts->requests, whole->trace.requests.size());
    EXPECT_EQ(facts->format, whole->facts.format);
  }
}

TEST(StreamTrace, KeepsNothingThatWasGiven) {
  const std::string lines = R"({"timestamp": 0, "input_length": 4, "output_length": 1, "hash_ids": [0]}
{"timestamp": 1, "input_length": 4, "output_length": 1, "hash_ids": [0]}
no request
)";
  Streamed before_the_error;
  const ReadTraceOptions options{.format = "mooncake", .block_tokens = 4};
  EXPECT_THAT(StreamTrace(lines, options, before_the_error.Sink()).status().message(), HasSubstr("line 3: "));
  EXPECT_EQ(before_the_error.requests.size(), 2u);
  // More than a machine could hold.
  uint64_t given = 0;
  const Status status =
      StreamWorkload("chat", {.requests = 10'000'000, .block_tokens = 1},
                     [&](const TraceRequest&, uint32_t) { return ++given == 100 ? Invalid("enough") : OkStatus(); });
  EXPECT_EQ(status.message(), "enough");
}

TEST(StreamTrace, WhatTheSinkRefusesIsWrongWithItsLine) {
  const std::string lines = R"({"timestamp": 0, "input_length": 8, "output_length": 1, "hash_ids": [0, 1]}
{"timestamp": 1, "input_length": 8, "output_length": 1, "hash_ids": [2, 1]}
{"timestamp": 2, "input_length": 8, "output_length": 1, "hash_ids": [2, 3]}
{"timestamp": 3, "input_length": 8, "output_length": 1, "hash_ids": [2, 3]}
)";
  ReadTraceOptions options{.format = "mooncake", .block_tokens = 4};
  const auto replayed = [&](BlockReplay* replay) {
    return StreamTrace(lines, options, [replay](const TraceRequest& request, uint32_t block_tokens) {
      return replay->Take(request, block_tokens);
    });
  };
  for (const bool leaves_only : {true, false}) {
    options.skip_bad = false;
    BlockReplay first = BlockReplay::Make({.capacity_blocks = 9, .leaves_only = leaves_only}).value();
    EXPECT_EQ(replayed(&first).status().message(),
              "line 2: hash id 1 stands in another place than in an earlier request");
    options.skip_bad = true;
    BlockReplay second = BlockReplay::Make({.capacity_blocks = 9, .leaves_only = leaves_only}).value();
    const Result<TraceFacts> facts = replayed(&second);
    ASSERT_TRUE(facts.ok()) << facts.status().message();
    EXPECT_EQ(facts->requests, 3u);
    EXPECT_EQ(facts->skipped_lines, 1u);
    EXPECT_EQ(second.Finish()->hit_blocks, 2u);
    EXPECT_EQ(second.Finish()->inserted_blocks, 4u);  // nothing of what was refused
  }
}

TEST(StreamTrace, ALineThatIsSkippedForItsTimeLeavesNoIdsBehind) {
  const std::string lines = R"({"timestamp": 9, "input_length": 4, "output_length": 1, "hash_ids": [0]}
{"timestamp": 5, "input_length": 8, "output_length": 1, "hash_ids": [2, 3]}
{"timestamp": 9, "input_length": 8, "output_length": 1, "hash_ids": [4, 3]}
)";
  const ReadTraceOptions options{.format = "mooncake", .skip_bad = true, .block_tokens = 4};
  const TraceFile whole = testing::Read(lines, options);
  EXPECT_EQ(whole.trace.requests.size(), 2u);
  EXPECT_EQ(whole.facts.skipped_lines, 1u);
  Streamed streamed;
  EXPECT_TRUE(StreamTrace(lines, options, streamed.Sink()).ok());
  ExpectEqual(streamed, whole.trace);
}

TEST(StreamTrace, WhatIsWrongOnceLinesAreSortedIsSkippedToo) {
  const std::string lines = R"({"timestamp": 9, "input_length": 8, "output_length": 1, "hash_ids": [1, 2]}
{"timestamp": 5, "input_length": 8, "output_length": 1, "hash_ids": [3, 2]}
)";
  ReadTraceOptions options{.format = "mooncake", .sort = true, .block_tokens = 4};
  EXPECT_EQ(testing::ErrorOf(lines, options), "line 1: hash id 2 stands in another place than in an earlier request");
  options.skip_bad = true;
  const TraceFile whole = testing::Read(lines, options);
  EXPECT_EQ(whole.trace.requests.size(), 1u);
  EXPECT_EQ(whole.facts.skipped_lines, 1u);
}

TEST(StreamWorkload, MakesTheSameRequestsAndReplaysOfThemAreTheSame) {
  for (const std::string_view name : WorkloadNames()) {
    const WorkloadOptions options{.seed = 7, .requests = 600, .block_tokens = 64};
    const Trace whole = MakeWorkload(name, options).value();
    Streamed streamed;
    ASSERT_TRUE(StreamWorkload(name, options, streamed.Sink()).ok());
    SCOPED_TRACE(name);
    ExpectEqual(streamed, whole);
    const BlockReplayOptions replayed{.capacity_blocks = 200, .ghosts_per_block = 2, .warm_up_requests = 50};
    BlockReplay replay = BlockReplay::Make(replayed).value();
    for (const TraceRequest& request : streamed.requests) ASSERT_TRUE(replay.Take(request, 64).ok());
    const BlockReplayResult one = replay.Finish().value(), other = ReplayBlocks(whole, replayed).value();
    EXPECT_EQ(one.hit_blocks, other.hit_blocks);
    EXPECT_EQ(one.evicted_blocks, other.evicted_blocks);
    EXPECT_EQ(one.requests, 550u);
  }
}

}  // namespace
}  // namespace cachalot::sim
