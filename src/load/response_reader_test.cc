#include "load/response_reader.h"

#include <gtest/gtest.h>

namespace cachalot::load {
namespace {

class Sink final : public ResponseSink {
 public:
  void OnHead(const ResponseHead& head) override { head_ = head; }
  Status OnBody(std::string_view bytes) override {
    if (refuse_) return Invalid("refused");
    body_.append(bytes);
    return OkStatus();
  }
  ResponseHead head_;
  std::string body_;
  bool refuse_ = false;
};

TEST(ResponseReader, ChunksDoNotDependOnHowBytesAreCut) {
  const std::string text =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: "
      "chunked\r\n\r\n5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: t\r\n\r\n";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    Sink sink;
    ResponseReader reader(&sink);
    for (size_t at = 0; at < text.size(); at += piece) {
      EXPECT_FALSE(reader.done());
      ASSERT_TRUE(reader.Feed(std::string_view(text).substr(at, piece)).ok()) << piece;
    }
    EXPECT_TRUE(reader.done());
    EXPECT_TRUE(reader.keep_alive());
    EXPECT_EQ(sink.head_.status, 200);
    EXPECT_EQ(sink.head_.content_type, "text/event-stream");
    EXPECT_EQ(sink.body_, "hello!");
  }
}

TEST(ResponseReader, ABodyWithoutLengthEndsWithTheConnection) {
  Sink sink;
  ResponseReader reader(&sink);
  ASSERT_TRUE(reader.Feed("HTTP/1.1 200 OK\r\n\r\nabc").ok());
  EXPECT_FALSE(reader.done());
  EXPECT_TRUE(reader.End().ok());
  EXPECT_EQ(sink.body_, "abc");
  EXPECT_FALSE(reader.keep_alive());
}

TEST(ResponseReader, AnEarlyEndIsAFailure) {
  for (const char* text :
       {"", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "HTTP/1.1 100 Continue\r\n\r\n"}) {
    Sink sink;
    ResponseReader reader(&sink);
    ASSERT_TRUE(reader.Feed(text).ok()) << text;
    EXPECT_EQ(reader.End().code(), Code::kUnavailable) << text;
  }
}

TEST(ResponseReader, BytesBehindTheResponseSpoilTheConnection) {
  Sink sink;
  ResponseReader reader(&sink);
  ASSERT_TRUE(reader.Feed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP").ok());
  EXPECT_TRUE(reader.done());
  EXPECT_FALSE(reader.keep_alive());
}

TEST(ResponseReader, WhatIsNotHttpIsRefused) {
  for (const char* text : {"hello\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    Sink sink;
    ResponseReader reader(&sink);
    EXPECT_EQ(reader.Feed(text).code(), Code::kInvalid) << text;
  }
}

// Feeds the head, then blocks until the reader refuses or took `limit` bytes.
Status Flood(std::string_view head, const std::string& block, size_t limit) {
  Sink sink;
  ResponseReader reader(&sink);
  Status status = reader.Feed(head);
  for (size_t fed = 0; status.ok() && fed < limit; fed += block.size()) status = reader.Feed(block);
  return status;
}

TEST(ResponseReader, EndlessHeadsLinesAndBodiesAreRefused) {
  const std::string block(65536, '1');
  EXPECT_EQ(Flood("HTTP/1.1 200 OK\r\nX: ", block, 1 << 20).code(), Code::kInvalid);
  EXPECT_EQ(Flood("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", block, 1 << 20).code(), Code::kInvalid);
  EXPECT_EQ(Flood("HTTP/1.1 200 OK\r\n\r\n", block, 64 << 20).code(), Code::kInvalid);
  EXPECT_EQ(Flood("", "HTTP/1.1 100 Continue\r\n\r\n", 1 << 20).code(), Code::kInvalid);
}

TEST(ResponseReader, TheSinkMayRefuse) {
  Sink sink;
  sink.refuse_ = true;
  ResponseReader reader(&sink);
  EXPECT_EQ(reader.Feed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab").message(), "refused");
}

}  // namespace
}  // namespace cachalot::load
