#include "sim/read_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/file.h"
#include "sim/testing/trace_file.h"
#include "sim/trace_text.h"

namespace cachalot::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::Read;

std::string PathOf(const std::string& name) { return std::string(CACHALOT_SOURCE_DIR) + "/tests/data/traces/" + name; }

TraceFile ReadSample(const std::string& name, const ReadTraceOptions& options = {}) {
  Result<TraceFile> file = ReadTraceFile(PathOf(name), options);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? std::move(file).value() : TraceFile{};
}

std::vector<uint32_t> PromptOf(const Trace& trace, size_t index) {
  std::vector<uint32_t> words = WordsOf(trace, trace.requests.at(index));
  words.resize(trace.requests[index].input_tokens);
  return words;
}

// How many words two requests have in common at their beginning, their answers too.
size_t Common(const Trace& trace, size_t a, size_t b) {
  const std::vector<uint32_t> x = WordsOf(trace, trace.requests.at(a)), y = WordsOf(trace, trace.requests.at(b));
  return static_cast<size_t>(std::ranges::mismatch(x, y).in1 - x.begin());
}

TEST(ReadTrace, KnowsFormatsByTheirFirstLine) {
  const ReadTraceOptions with_reuse{.reuse = "none"};
  EXPECT_EQ(ReadSample("mooncake.jsonl").facts.format, "mooncake");
  EXPECT_EQ(ReadSample("record.jsonl").facts.format, "record");
  EXPECT_EQ(ReadSample("requests_vllm.jsonl").facts.format, "requests");
  EXPECT_EQ(ReadSample("azure.csv", {.longest_gap = 1e9, .reuse = "none"}).facts.format, "azure");
  EXPECT_EQ(ReadSample("burstgpt.csv", with_reuse).facts.format, "burstgpt");
  EXPECT_THAT(ErrorOf("hello\n", {}), HasSubstr("expected one of the formats record, mooncake, azure"));
  EXPECT_THAT(ErrorOf("{}", {.format = "csv"}), HasSubstr("unknown format \"csv\": expected one of record, mooncake"));
  EXPECT_THAT(ErrorOf("{}", {.format = "record"}), HasSubstr("line 1: expected the heading of a record"));
}

TEST(ReadTrace, RefusesWhatHasNoRequests) {
  EXPECT_EQ(ErrorOf("", {}), "the trace has no requests");
  EXPECT_EQ(ErrorOf("\n \n", {.format = "mooncake"}), "the trace has no requests");
  EXPECT_EQ(ErrorOf("TIMESTAMP,ContextTokens,GeneratedTokens\n", {.reuse = "none"}), "the trace has no requests");
  EXPECT_THAT(ErrorOf("{\"a\": 1}\n{\"b\": 2}\n", {.format = "mooncake", .skip_bad = true}),
              HasSubstr("no requests: 2 lines were skipped, the first because of: line 1: \"timestamp\" is missing"));
  const Result<TraceFile> missing = ReadTraceFile(PathOf("nothing.jsonl"), {});
  EXPECT_THAT(missing.status().message(), HasSubstr("nothing.jsonl"));
}

TEST(ReadTrace, ErrorsOfAFileNameIt) {
  const Result<TraceFile> file = ReadTraceFile(PathOf("azure.csv"), {.reuse = "none"});
  EXPECT_THAT(file.status().message(), HasSubstr("azure.csv: line 5: its time is"));
  EXPECT_THAT(file.status().message(), HasSubstr("as if the clock had jumped: expected at most 604800 s"));
}

TEST(ReadTrace, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_THAT(ErrorOf("{}", {.longest_gap = 0}), HasSubstr("--longest-gap is 0"));
  EXPECT_THAT(ErrorOf("{}", {.time_unit = "hours"}), HasSubstr("--time-unit is \"hours\": expected s, ms, us or ns"));
  EXPECT_THAT(ErrorOf("{}", {.reuse = "much"}), HasSubstr("--reuse: \"much\": expected none, system:TOKENS"));
  EXPECT_THAT(ErrorOf("{\"hash_ids\": 1}", {.reuse = "none"}), HasSubstr("--reuse has no place"));
  EXPECT_THAT(ErrorOf("TIMESTAMP,ContextTokens,GeneratedTokens\n", {}), HasSubstr("expected --reuse none"));
}

TEST(ReadTrace, LinesAreTheSameInAFileOfManyPartsAndMayEndAsTheyLike) {
  std::string text = "\xEF\xBB\xBFTIMESTAMP,ContextTokens,GeneratedTokens\r\n";
  constexpr int kLines = 60'000;  // more than two mebibytes
  for (int i = 0; i < kLines; ++i) text += "2024-05-10 00:00:00+00:00," + std::to_string(i % 7) + ",3\r\n";
  text.resize(text.size() - 2);
  const std::string path = ::testing::TempDir() + "/read_trace_test.csv";
  ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  const Result<TraceFile> file = ReadTraceFile(path, {.reuse = "none"});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Trace trace = Read(text, {.reuse = "none"}).trace;
  ASSERT_EQ(file->trace.requests.size(), size_t{kLines});
  EXPECT_EQ(FormatTrace(file->trace), FormatTrace(trace));
  EXPECT_EQ(trace.requests.back().input_tokens, uint64_t{(kLines - 1) % 7});
}

TEST(RecordFormat, TellsWhatPromptsAndAnswersHaveInCommonToTheToken) {
  const Trace trace = ReadSample("record.jsonl").trace;
  EXPECT_TRUE(trace.chained);
  EXPECT_EQ(trace.block_tokens, 16u);    // as its heading says
  ASSERT_EQ(trace.requests.size(), 4u);  // what the server called invalid is none
  EXPECT_EQ(trace.requests[0].arrival, Nanos(0));
  EXPECT_EQ(trace.requests[1].arrival, milliseconds(500));  // written first, as it ended first
  EXPECT_EQ(trace.requests[3].arrival, seconds(3));
  EXPECT_EQ(trace.requests[1].output_tokens, 9u);  // of the longer choice
  EXPECT_EQ(trace.requests[0].session, 8u);
  EXPECT_EQ(trace.requests[1].session, 9u);
  EXPECT_EQ(trace.requests[0].tenant, 77u);
  EXPECT_EQ(Common(trace, 0, 1), 40u);   // the system prompt
  EXPECT_EQ(Common(trace, 0, 3), 100u);  // prompt and answer
  EXPECT_EQ(WordsOf(trace, trace.requests[0]).size(), 100u);
  const std::vector<uint64_t>&first = trace.requests[0].blocks, &last = trace.requests[3].blocks;
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 5, last.begin()));
  EXPECT_EQ(trace.requests[1].blocks[1], first[1]);
  EXPECT_NE(trace.requests[1].blocks[2], first[2]);
}

TEST(RecordFormat, SaysWhatIsWrong) {
  const std::string heading = "{\"cachalot_record\":1,\"block_tokens\":16,\"tag_bits\":32}\n";
  const std::string line =
      R"({"timestamp":1,"input_length":1,"output_length":1,"tags":"AAAAAA==","output_tags":["AQAAAA=="]})";
  EXPECT_EQ(Read(heading + line, {}).trace.requests.size(), 1u);
  const auto error = [&](std::string from, const std::string& to) {
    std::string broken = line;
    broken.replace(broken.find(from), from.size(), to);
    return ErrorOf(heading + broken, {});
  };
  EXPECT_EQ(error("AAAAAA==", "AAAAAA"), "line 2: \"tags\": expected base64 of 4 bytes per token");
  EXPECT_EQ(error("AAAAAA==", "AAAA"), "line 2: \"tags\": expected base64 of 4 bytes per token");
  EXPECT_EQ(error("AAAAAA==", ""), "line 2: \"tags\": 0 tags for 1 tokens of \"input_length\"");
  EXPECT_EQ(error("\"output_length\":1", "\"output_length\":3"),
            "line 2: \"output_tags\": 1 tags for 3 tokens of \"output_length\"");
  EXPECT_THAT(error("[\"AQAAAA==\"]", "7"), HasSubstr("\"output_tags\": expected an array with one text per choice"));
  EXPECT_THAT(ErrorOf(heading + heading, {}), HasSubstr("line 2: another record begins here"));
  EXPECT_THAT(ErrorOf("{\"cachalot_record\":1,\"tag_bits\":32}", {}),
              HasSubstr("\"block_tokens\": expected a multiple of 16"));
  EXPECT_THAT(ErrorOf("{\"cachalot_record\":1,\"tag_bits\":32,\"block_tokens\":7}", {}), HasSubstr("got 7"));
  EXPECT_THAT(ErrorOf("{\"cachalot_record\":2,\"tag_bits\":32}", {}), HasSubstr("expected version 1, got 2"));
}

TEST(AzureFormat, ReadsMomentsAndLengths) {
  const Trace trace = ReadSample("azure.csv", {.longest_gap = 1e9, .reuse = "none", .block_tokens = 100}).trace;
  ASSERT_EQ(trace.requests.size(), 4u);
  EXPECT_EQ(trace.requests[0].arrival, Nanos(0));
  EXPECT_EQ(trace.requests[1].arrival, milliseconds(52));
  EXPECT_EQ(trace.requests[2].arrival, Nanos(1'020'040'000));
  EXPECT_EQ(trace.requests[3].arrival, std::chrono::hours(24 * 175 + 5) + Nanos(2'576'020'040'000));
  EXPECT_EQ(trace.requests[0].input_tokens, 4808u);
  EXPECT_EQ(trace.requests[0].output_tokens, 10u);
  EXPECT_EQ(Common(trace, 0, 1), 0u);
}

TEST(AzureFormat, SaysWhatIsWrong) {
  const std::string heading = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  const auto error = [&](const std::string& line) { return ErrorOf(heading + line, {.reuse = "none"}); };
  EXPECT_EQ(
      error("2023-13-16 18:17:03,1,2"),
      "line 2: \"TIMESTAMP\": expected a date and time such as 2023-11-16 18:17:03.979, got \"2023-13-16 18:17:03\"");
  EXPECT_EQ(error("2023-11-16 18:17:03,1"), "line 2: expected 3 columns, as in the heading, got 2");
  EXPECT_EQ(error("2023-11-16 18:17:03,-1,2"),
            "line 2: \"ContextTokens\": expected a number of tokens from 0 to 16777216, got \"-1\"");
  EXPECT_EQ(error("2023-11-16 18:17:03,1000000000000000000,2"),
            "line 2: \"ContextTokens\": expected a number of tokens from 0 to 16777216, got \"1000000000000000000\"");
  EXPECT_THAT(error("2023-11-16 18:17:03,99999999999999999999999,2"), HasSubstr("from 0 to 16777216"));
  EXPECT_EQ(error("2023-11-16 18:17:03,1.5,2"), "line 2: \"ContextTokens\": expected a number of tokens, got \"1.5\"");
  EXPECT_EQ(error("2023-11-16 18:17:03,1,"), "line 2: \"GeneratedTokens\": expected a number of tokens, got \"\"");
  EXPECT_THAT(ErrorOf("TIMESTAMP,ContextTokens\n", {.reuse = "none"}),
              HasSubstr("line 1: the heading has no column \"GeneratedTokens\": expected TIMESTAMP,ContextTokens,Gen"));
}

TEST(BurstGptFormat, ReadsBothReleases) {
  const Trace first = ReadSample("burstgpt.csv", {.reuse = "none"}).trace;
  ASSERT_EQ(first.requests.size(), 3u);
  EXPECT_EQ(first.requests[0].arrival, Nanos(0));
  EXPECT_EQ(first.requests[1].arrival, seconds(40));
  EXPECT_EQ(first.requests[1].input_tokens, 1087u);
  EXPECT_EQ(first.requests[1].output_tokens, 230u);
  const Trace second = ReadSample("burstgpt_sessions.csv", {.reuse = "session"}).trace;
  ASSERT_EQ(second.requests.size(), 4u);
  EXPECT_EQ(second.requests[0].session, second.requests[2].session);
  EXPECT_NE(second.requests[0].session, second.requests[1].session);
  EXPECT_EQ(second.requests[3].session, 0u);
  EXPECT_EQ(Common(second, 0, 2), 906u + 446u);
  EXPECT_EQ(Common(second, 0, 1), 0u);
  EXPECT_THAT(ErrorOf("Timestamp,Request tokens,Response tokens\nsoon,1,2\n", {.reuse = "none"}),
              HasSubstr("line 2: \"Timestamp\": expected seconds from 0 to 1e+09, got \"soon\""));
}

TEST(ReuseModel, IsWhatWasDeclared) {
  std::string text = "Timestamp,Request tokens,Response tokens\n";
  for (int i = 0; i < 2000; ++i) text += std::to_string(i) + "," + std::to_string(100 + 37 * i % 5000) + ",20\n";
  const Trace system = Read(text, {.reuse = "system:250", .block_tokens = 50}).trace;
  for (size_t i = 1; i < system.requests.size(); ++i) {
    EXPECT_EQ(Common(system, 0, i), std::min<uint64_t>(system.requests[i].input_tokens, 100));  // the first has no more
  }
  const auto going_on = [&](const Trace& trace) {
    size_t count = 0;
    for (size_t i = 0; i < trace.requests.size(); ++i) count += trace.requests[i].text.front().source != i;
    return count;
  };
  const Trace half = Read(text, {.reuse = "chat:0.5"}).trace;
  EXPECT_NEAR(static_cast<double>(going_on(half)), 1000, 150);
  EXPECT_EQ(going_on(Read(text, {.reuse = "chat:0"}).trace), 0u);
  EXPECT_EQ(FormatTrace(half), FormatTrace(Read(text, {.reuse = "chat:0.5"}).trace));
  ReadTraceOptions other{.reuse = "chat:0.5"};
  other.seed = 2;
  EXPECT_NE(FormatTrace(half), FormatTrace(Read(text, other).trace));
  EXPECT_THAT(ErrorOf(text, {.reuse = "session"}), HasSubstr("has no sessions"));
  for (const char* bad : {"system:1000000000000000000", "system:16777217", "chat:1.5", "chat:nan", "chat:", "system:-1",
                          "system:x", "system", "chat"}) {
    EXPECT_THAT(ErrorOf(text, {.reuse = bad}), HasSubstr("expected none, system:TOKENS")) << bad;
  }
}

TEST(RequestsFormat, ReadsTokenIdsInOrderOfTime) {
  const Trace trace = ReadSample("requests_vllm.jsonl").trace;
  ASSERT_EQ(trace.requests.size(), 3u);
  EXPECT_EQ(trace.requests[1].arrival, milliseconds(500));
  EXPECT_EQ(trace.requests[2].arrival, milliseconds(1500));
  EXPECT_EQ(trace.requests[0].output_tokens, 2u);
  EXPECT_EQ(trace.requests[1].output_tokens, 9u);  // as many as it may have
  EXPECT_EQ(trace.requests[2].output_tokens, 7u);
  EXPECT_EQ(Common(trace, 0, 1), 100u);
  EXPECT_EQ(Common(trace, 0, 2), 103u);  // the answer came back
  EXPECT_NE(trace.requests[0].tenant, 0u);
}

TEST(RequestsFormat, ReadsWhatSglangLogs) {
  const Trace trace = ReadSample("requests_sglang.jsonl").trace;
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_EQ(trace.requests[1].arrival, seconds(7));
  EXPECT_EQ(Common(trace, 0, 1), WordsOf(trace, trace.requests[0]).size());
}

TEST(RequestsFormat, ReadsChatMessages) {
  const Trace trace = ReadSample("requests_chat.jsonl").trace;
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_EQ(trace.requests[1].arrival, seconds(30));
  EXPECT_EQ(trace.requests[0].session, trace.requests[1].session);
  EXPECT_EQ(Common(trace, 0, 1), WordsOf(trace, trace.requests[0]).size());
  EXPECT_GT(trace.requests[1].input_tokens, 40u);
}

TEST(RequestsFormat, DoesNotTakeAPromptForAnAnswer) {
  const Trace trace = Read(R"({"time": 1700000000, "body": {"text": "one two three", "max_new_tokens": 5}})", {}).trace;
  EXPECT_EQ(trace.requests[0].input_tokens, 3u);
  EXPECT_EQ(trace.requests[0].output_tokens, 5u);
  EXPECT_EQ(WordsOf(trace, trace.requests[0]).size(), 3u);
}

TEST(RequestsFormat, SaysWhatIsWrong) {
  const auto error = [](const std::string& members) { return ErrorOf("{" + members + "}", {.format = "requests"}); };
  EXPECT_THAT(error(R"("prompt": "a", "max_tokens": 1)"), HasSubstr("no time: expected one of timestamp, time"));
  EXPECT_THAT(error(R"("time": 12.5, "prompt": "a", "max_tokens": 1)"),
              HasSubstr("\"time\" is 12.5, in which unit cannot be told: expected --time-unit"));
  EXPECT_THAT(error(R"("time": "noon", "prompt": "a", "max_tokens": 1)"), HasSubstr("\"time\": expected a date"));
  const std::string time = R"("time": 1700000000, )";
  EXPECT_THAT(error(time + R"("max_tokens": 1)"), HasSubstr("no prompt: expected one of prompt_token_ids"));
  EXPECT_THAT(error(time + R"("prompt": "", "max_tokens": 1)"), HasSubstr("the prompt is empty"));
  EXPECT_THAT(error(time + R"("prompt": 7, "max_tokens": 1)"), HasSubstr("\"prompt\": expected text or token ids"));
  EXPECT_THAT(error(time + R"("prompt": "a")"), HasSubstr("neither an answer nor its length: expected one of"));
  EXPECT_THAT(error(time + R"("prompt": "a", "max_tokens": -1)"), HasSubstr("\"max_tokens\": expected a number"));
  EXPECT_THAT(error(time + R"("input_ids": [1, "..."], "max_tokens": 1)"),
              HasSubstr("\"input_ids\"[1]: expected a token id, got string; logs that are cut short do not do"));
  EXPECT_THAT(error(time + R"("prompt": "a b ... c", "max_tokens": 1, "usage": {"prompt_tokens": 900})"),
              HasSubstr("\"prompt_tokens\" is 900, but the prompt has about"));
}

TEST(RequestsFormat, TokensAreThoseOfATokenizerWhereThereIsOne) {
  ReadTraceOptions options{.time_unit = "s"};
  options.words_of_text = [](std::string_view text) { return std::vector<uint32_t>(text.begin(), text.end()); };
  const Trace trace = Read(R"({"time": 3, "prompt": "abc", "max_tokens": 5})", options).trace;
  EXPECT_EQ(PromptOf(trace, 0), (std::vector<uint32_t>{'a', 'b', 'c'}));
}

TEST(RequestsFormat, WhatWasSaidIsNotInTheTrace) {
  const Trace trace = ReadSample("requests_sglang.jsonl").trace;
  const std::string written = FormatTrace(trace);
  for (const char* said : {"whale", "helpful", "animal"}) EXPECT_EQ(written.find(said), std::string::npos);
}

TEST(RequestsFormat, RefusesWhatIsNoTokenId) {
  for (const std::string id : {"-1", "1000000000000000000"}) {
    const std::string line = R"({"timestamp": 1, "prompt_token_ids": [7, )" + id + R"(], "output_tokens": 1})";
    EXPECT_THAT(ErrorOf(line, {.time_unit = "s"}),
                HasSubstr("\"prompt_token_ids\"[1]: expected a token id from 0 to 2147483647, got " + id));
  }
}

}  // namespace
}  // namespace cachalot::sim
