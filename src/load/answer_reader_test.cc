#include "load/answer_reader.h"

#include <gtest/gtest.h>

#include "load/record.h"

namespace cachalot::load {
namespace {

using std::chrono::milliseconds;

constexpr char kStream[] = "text/event-stream; charset=utf-8";

TEST(AnswerReader, NotesWhenPiecesArrive) {
  ManualClock clock;
  AnswerReader reader(clock);
  reader.OnHead({200, kStream});
  const auto feed = [&](std::string_view event) {
    clock.Advance(milliseconds(10));
    ASSERT_TRUE(reader.OnBody("data: " + std::string(event) + "\n\n").ok());
  };
  feed(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})");
  feed(R"({"choices":[{"delta":{"content":"a"}}]})");
  feed(R"({"choices":[{"delta":{"reasoning_content":"b"},"finish_reason":null}],"usage":null})");
  clock.Advance(milliseconds(5));
  feed(R"({"choices":[{"text":"c"}]})");
  feed(R"({"choices":[{"delta":{},"finish_reason":"stop"}]})");
  feed(
      R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}})");
  feed("[DONE]");
  const Answer answer = reader.Take();
  EXPECT_EQ(answer.first_piece, milliseconds(20));
  EXPECT_EQ(answer.gaps, (std::vector<Nanos>{milliseconds(10), milliseconds(15)}));
  EXPECT_EQ(answer.text, "abc");
  EXPECT_TRUE(answer.finished);
  ASSERT_TRUE(answer.usage.has_value());
  EXPECT_EQ(answer.usage->prompt_tokens, 7u);
  EXPECT_EQ(answer.usage->output_tokens, 3u);
  EXPECT_EQ(answer.usage->cached_tokens, 4u);
}

TEST(AnswerReader, AnAnswerWithoutTextHasItsFirstTokenAtTheEnd) {
  ManualClock clock;
  clock.Advance(milliseconds(3));
  AnswerReader reader(clock);
  reader.OnHead({200, kStream});
  ASSERT_TRUE(reader.OnBody("data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n").ok());
  EXPECT_EQ(reader.answer().first_piece, milliseconds(3));
  EXPECT_EQ(reader.answer().pieces, 0u);
}

TEST(AnswerReader, SaysWhatTheServerSaidWasWrong) {
  const ManualClock clock;
  AnswerReader status(clock);
  status.OnHead({429, "application/json"});
  ASSERT_TRUE(status.OnBody(R"({"error":{"message":"queue )").ok());
  ASSERT_TRUE(status.OnBody(R"(full"}})").ok());
  status.OnEnd();
  EXPECT_TRUE(status.answer().failed);
  EXPECT_EQ(status.answer().error_message, "queue full");

  AnswerReader inside(clock);
  inside.OnHead({200, kStream});
  ASSERT_TRUE(inside.OnBody("data: {\"error\":{\"message\":\"lost\"}}\n\n").ok());
  EXPECT_TRUE(inside.answer().failed);
  EXPECT_EQ(inside.answer().error_message, "lost");
}

TEST(AnswerReader, ALongErrorPageIsCut) {
  const ManualClock clock;
  AnswerReader reader(clock);
  reader.OnHead({502, "text/html"});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(reader.OnBody(std::string(1000, 'x')).ok());
  reader.OnEnd();
  EXPECT_LE(reader.answer().error_message.size(), 300u);
  EXPECT_GT(reader.answer().error_message.size(), 0u);
}

TEST(AnswerReader, WhatIsNoStreamOfJsonIsRefused) {
  const ManualClock clock;
  for (const char* body : {"data: {\n\n", "data: 7\n\n", "data: []\n\n", "data: {\"a\":\"\xff\"}\n\n"}) {
    AnswerReader reader(clock);
    reader.OnHead({200, kStream});
    EXPECT_EQ(reader.OnBody(body).code(), Code::kInvalid) << body;
  }
  AnswerReader reader(clock);
  reader.OnHead({200, "application/json"});
  EXPECT_EQ(reader.OnBody("{}").code(), Code::kInvalid);
}

TEST(AnswerReader, OddShapesOfEventsAreNoText) {
  const ManualClock clock;
  AnswerReader reader(clock);
  reader.OnHead({200, kStream});
  for (const char* body :
       {"{}", R"({"choices":7})", R"({"choices":[]})", R"({"choices":[7]})", R"({"choices":[{"delta":7}]})",
        R"({"choices":[{"delta":{"content":[1]}}]})", R"({"usage":{"prompt_tokens":-5,"completion_tokens":"x"}})",
        R"({"usage":{"prompt_tokens_details":null}})"}) {
    EXPECT_TRUE(reader.OnBody("data: " + std::string(body) + "\n\n").ok()) << body;
  }
  EXPECT_EQ(reader.answer().pieces, 0u);
  EXPECT_FALSE(reader.answer().finished);
  EXPECT_EQ(reader.answer().usage->prompt_tokens, 0u);
}

TEST(Classify, ByConnectionThenStatusThenStream) {
  const auto outcome = [](HttpEnd end, Answer answer) {
    RequestRecord record;
    record.answer = std::move(answer);
    Classify(end, "", &record);
    return record.outcome;
  };
  Answer whole;
  whole.status = 200;
  whole.finished = true;
  Answer cut;
  cut.status = 200;
  Answer refused;
  refused.status = 503;
  refused.failed = true;
  Answer broken = cut;
  broken.failed = true;
  EXPECT_EQ(outcome(HttpEnd::kComplete, whole), Outcome::kOk);
  EXPECT_EQ(outcome(HttpEnd::kClosed, whole), Outcome::kOk);
  EXPECT_EQ(outcome(HttpEnd::kTimeout, whole), Outcome::kTimeout);
  EXPECT_EQ(outcome(HttpEnd::kComplete, cut), Outcome::kIncomplete);
  EXPECT_EQ(outcome(HttpEnd::kClosed, Answer()), Outcome::kIncomplete);
  EXPECT_EQ(outcome(HttpEnd::kComplete, refused), Outcome::kStatus);
  EXPECT_EQ(outcome(HttpEnd::kComplete, broken), Outcome::kServerError);
  EXPECT_EQ(outcome(HttpEnd::kConnect, Answer()), Outcome::kConnect);
  EXPECT_EQ(outcome(HttpEnd::kMalformed, cut), Outcome::kMalformed);
  EXPECT_EQ(outcome(HttpEnd::kAborted, cut), Outcome::kAborted);
}

}  // namespace
}  // namespace cachalot::load
