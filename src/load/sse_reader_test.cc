#include "load/sse_reader.h"

#include <vector>

#include <gtest/gtest.h>

namespace cachalot::load {
namespace {

std::vector<std::string> Events(std::string_view text, size_t piece) {
  SseReader reader;
  std::vector<std::string> events;
  for (size_t at = 0; at < text.size(); at += piece) {
    const Status status = reader.Feed(text.substr(at, piece), [&](std::string_view data) {
      events.emplace_back(data);
      return OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return events;
}

TEST(SseReader, EventsDoNotDependOnHowBytesAreCut) {
  const std::string text =
      "\xEF\xBB\xBF"
      "data: a\n\n: comment\r\nevent: x\r\ndata:b\r\ndata:  c\r\n\r\nid: 7\rdata\r\rdata: last\n\n\n\ndata: cut";
  const std::vector<std::string> expected = {"a", "b\n c", "", "last"};
  for (size_t piece = 1; piece <= text.size(); ++piece) EXPECT_EQ(Events(text, piece), expected) << piece;
}

TEST(SseReader, AnEndlessLineIsRefused) {
  SseReader reader;
  const std::string block(1 << 20, 'x');
  Status status;
  for (int i = 0; i < 8 && status.ok(); ++i) status = reader.Feed(block, [](std::string_view) { return OkStatus(); });
  EXPECT_EQ(status.code(), Code::kInvalid);
}

TEST(SseReader, AnEndlessEventIsRefused) {
  SseReader reader;
  const std::string block = "data: " + std::string(1 << 20, 'x') + "\n";
  Status status;
  for (int i = 0; i < 8 && status.ok(); ++i) status = reader.Feed(block, [](std::string_view) { return OkStatus(); });
  EXPECT_EQ(status.code(), Code::kInvalid);
}

TEST(SseReader, AFailureOfTheCallerEndsIt) {
  SseReader reader;
  int calls = 0;
  const Status status = reader.Feed("data: a\n\ndata: b\n\n", [&](std::string_view) {
    ++calls;
    return Invalid("no");
  });
  EXPECT_EQ(status.message(), "no");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace cachalot::load
