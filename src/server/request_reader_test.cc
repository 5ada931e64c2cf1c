#include "server/request_reader.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::server {
namespace {

using Event = RequestReader::Event;

constexpr uint64_t kBodyLimit = 1000;

class RequestReaderTest : public testing::Test {
 protected:
  Event Read(std::string_view bytes) {
    reader_.Feed(bytes);
    return reader_.Next();
  }
  int ErrorOf(std::string_view bytes) {
    RequestReader reader(kBodyLimit, &budget_);
    reader.Feed(bytes);
    Event event;
    while ((event = reader.Next()) == Event::kWantsBody || event == Event::kRequest) {
    }
    return event == Event::kError ? reader.error().status : 0;
  }

  BodyBudget budget_{5000};
  RequestReader reader_{kBodyLimit, &budget_};
};

constexpr std::string_view kPost =
    "POST /v1/completions?a=b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nContent-Length: 5\r\n\r\nhello";

TEST_F(RequestReaderTest, ReadsARequest) {
  ASSERT_EQ(Read(kPost), Event::kRequest);
  const HttpRequest request = reader_.TakeRequest();
  EXPECT_EQ(request.method, Method::kPost);
  EXPECT_EQ(request.method_name, "POST");
  EXPECT_EQ(request.target, "/v1/completions?a=b");
  EXPECT_EQ(request.authorization, "Bearer k");
  EXPECT_TRUE(request.has_length);
  EXPECT_EQ(request.body, "hello");
  EXPECT_EQ(budget_.used_bytes(), 5u);
  EXPECT_TRUE(reader_.keep_alive());
  EXPECT_TRUE(reader_.idle());
}

TEST_F(RequestReaderTest, ReadsItByteByByteAndKnowsWhereItIs) {
  EXPECT_TRUE(reader_.idle());
  for (size_t i = 0; i + 1 < kPost.size(); ++i) {
    ASSERT_EQ(Read(kPost.substr(i, 1)), Event::kNeedMore) << i;
    EXPECT_FALSE(reader_.idle());
    EXPECT_EQ(reader_.in_body(), i + 1 >= kPost.size() - 5) << i;
  }
  ASSERT_EQ(Read(kPost.substr(kPost.size() - 1)), Event::kRequest);
  EXPECT_EQ(reader_.TakeRequest().body, "hello");
}

TEST_F(RequestReaderTest, ReadsPipelinedRequestsInOrder) {
  std::string bytes;
  for (int i = 0; i < 50; ++i) bytes += "GET /" + std::to_string(i) + " HTTP/1.1\r\n\r\n\r\n";
  ASSERT_EQ(Read(bytes), Event::kRequest);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(reader_.TakeRequest().target, "/" + std::to_string(i));
    ASSERT_EQ(reader_.Next(), i < 49 ? Event::kRequest : Event::kNeedMore);
  }
  EXPECT_TRUE(reader_.idle());
}

TEST_F(RequestReaderTest, JoinsChunks) {
  const std::string_view bytes =
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;name=value\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: "
      "x\r\n\r\n";
  for (size_t i = 0; i + 1 < bytes.size(); ++i) ASSERT_EQ(Read(bytes.substr(i, 1)), Event::kNeedMore) << i;
  ASSERT_EQ(Read(bytes.substr(bytes.size() - 1)), Event::kRequest);
  const HttpRequest request = reader_.TakeRequest();
  EXPECT_EQ(request.body, "abc0123456789");
  EXPECT_TRUE(request.has_length);
}

TEST_F(RequestReaderTest, ReadsAnEmptyChunkedBodyInPiecesOfAnySize) {
  for (const std::string_view end : {"0\r\n\r\n", "00;a=b\r\n\r\n", "0\r\nTrailer: x\r\n\r\n"}) {
    const std::string bytes = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(end);
    for (size_t piece = 1; piece < bytes.size(); ++piece) {
      RequestReader reader(kBodyLimit, &budget_);
      for (size_t at = 0; at < bytes.size(); at += piece) {
        reader.Feed(std::string_view(bytes).substr(at, piece));
        ASSERT_EQ(reader.Next(), at + piece < bytes.size() ? Event::kNeedMore : Event::kRequest) << end << piece;
      }
      EXPECT_EQ(reader.TakeRequest().body, "");
      EXPECT_TRUE(reader.idle());
    }
  }
}

TEST_F(RequestReaderTest, AsksForTheBodyWhenTheClientWaits) {
  ASSERT_EQ(Read("POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n"), Event::kWantsBody);
  EXPECT_EQ(reader_.Next(), Event::kNeedMore);
  ASSERT_EQ(Read("ok"), Event::kRequest);
  EXPECT_EQ(reader_.TakeRequest().body, "ok");
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\nExpect: magic\r\nContent-Length: 2\r\n\r\n"), 417);
}

TEST_F(RequestReaderTest, KnowsWhetherTheConnectionGoesOn) {
  const auto keep_alive = [&](std::string_view bytes) {
    RequestReader reader(kBodyLimit, &budget_);
    reader.Feed(bytes);
    EXPECT_EQ(reader.Next(), Event::kRequest);
    return reader.keep_alive();
  };
  EXPECT_TRUE(keep_alive("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_FALSE(keep_alive("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_FALSE(keep_alive("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keep_alive("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST_F(RequestReaderTest, RefusesWhatIsTooLong) {
  EXPECT_EQ(ErrorOf("GET /" + std::string(kHeadLimitBytes, 'a')), 431);
  EXPECT_EQ(ErrorOf("GET / HTTP/1.1\r\nX: " + std::string(kHeadLimitBytes, 'a')), 431);
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n"), 413);
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n"), 0);
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"), 400);
  std::string chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i) chunks += "64\r\n" + std::string(100, 'x') + "\r\n";
  EXPECT_EQ(ErrorOf(chunks), 413);
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(20000, 'x')), 400);
}

TEST_F(RequestReaderTest, RefusesWhatTwoParsersCouldReadDifferently) {
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n"), 501);
  EXPECT_EQ(ErrorOf("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
}

TEST_F(RequestReaderTest, RefusesWhatIsNotHttp) {
  EXPECT_EQ(ErrorOf("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS client\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(ErrorOf("GET\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf("GET / HTTP/1.1\r\nbroken header\r\n\r\n"), 400);
  EXPECT_EQ(ErrorOf("{\"prompt\": \"x\"}\r\n\r\n"), 400);
}

TEST_F(RequestReaderTest, TheBudgetBoundsTheBodiesOfAllConnections) {
  std::vector<RequestReader> readers;
  const std::string bytes = "POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n" + std::string(999, 'x');
  for (int i = 0; i < 5; ++i) {
    RequestReader& reader = readers.emplace_back(kBodyLimit, &budget_);
    reader.Feed(bytes);
    EXPECT_EQ(reader.Next(), Event::kNeedMore);
  }
  EXPECT_EQ(budget_.used_bytes(), 4995u);
  EXPECT_EQ(ErrorOf(bytes), 503);
  EXPECT_EQ(budget_.used_bytes(), 4995u);
  readers.pop_back();
  EXPECT_EQ(budget_.used_bytes(), 3996u);
  EXPECT_EQ(ErrorOf(bytes), 0);
}

TEST_F(RequestReaderTest, AnnouncedBytesReserveNothing) {
  EXPECT_EQ(Read("POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n"), Event::kNeedMore);
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

TEST_F(RequestReaderTest, HowTheBytesAreCutMakesNoDifference) {
  const std::string bytes = std::string(kPost) + "GET /2 HTTP/1.1\r\n\r\n" +
                            "POST /3 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n" +
                            "GET /4 HTTP/1.1\r\nBad Header\r\n\r\n";
  SplitMix64 random(5);
  for (int round = 0; round < 300; ++round) {
    RequestReader reader(kBodyLimit, &budget_);
    std::vector<std::string> seen;
    bool failed = false;
    for (size_t at = 0; at < bytes.size() && !failed;) {
      const size_t n = std::min<size_t>(1 + random.Below(60), bytes.size() - at);
      reader.Feed(std::string_view(bytes).substr(at, n));
      at += n;
      Event event;
      while ((event = reader.Next()) == Event::kRequest) {
        const HttpRequest request = reader.TakeRequest();
        seen.push_back(request.target + "|" + request.body);
      }
      failed = event == Event::kError;
    }
    EXPECT_TRUE(failed);
    EXPECT_EQ(seen, (std::vector<std::string>{"/v1/completions?a=b|hello", "/2|", "/3|ab"}));
  }
}

TEST_F(RequestReaderTest, SurvivesRandomDamage) {
  SplitMix64 random(9);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes(kPost);
    for (uint64_t i = 0; i <= random.Below(4); ++i) bytes[random.Below(bytes.size())] = static_cast<char>(random());
    RequestReader reader(kBodyLimit, &budget_);
    reader.Feed(bytes);
    Event event;
    while ((event = reader.Next()) == Event::kRequest || event == Event::kWantsBody) {
    }
    EXPECT_TRUE(event == Event::kNeedMore || reader.error().status >= 400);
  }
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

}  // namespace
}  // namespace cachalot::server
