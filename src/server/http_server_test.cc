#include "server/http_server.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/testing/test_client.h"

namespace cachalot::server {
namespace {

using std::chrono::seconds;

// Answers with the target and the size of the body. /hold answers never, /stream begins a stream; the test has both.
class TestHandler final : public HttpHandler {
 public:
  void Handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override {
    if (request.target == "/hold" || request.target == "/stream") {
      exchange->OnGone([this] { gone.set_value(); });
      if (request.target == "/stream") exchange->BeginStream({.content_type = "text/plain", .body = "begin"});
      held.set_value(std::move(exchange));
      return;
    }
    if (request.target == "/drop") return;
    HttpResponse response;
    response.content_type = "text/plain";
    response.body = fmt::format("{} {}", request.target, request.body.size());
    if (request.target == "/big") response.body = std::string(8 << 20, 'x');
    exchange->Respond(std::move(response));
  }
  void OnResponse(int status) override { statuses.push_back(status); }
  void OnTick() override {}

  std::promise<std::shared_ptr<Exchange>> held;
  std::promise<void> gone;
  std::vector<int> statuses;  // I/O thread
};

class HttpServerTest : public testing::Test {
 protected:
  void Start(ServerOptions options = {}) {
    options.port = 0;
    server_ = std::make_unique<HttpServer>(options, clock_, handler_);
    const Result<uint16_t> port = server_->Start();
    ASSERT_TRUE(port.ok()) << port.status().message();
    port_ = *port;
  }
  // Runs it on the I/O thread and waits.
  void OnIoThread(const std::function<void()>& task) {
    std::promise<void> done;
    server_->Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  // The exchange must be dropped on the I/O thread.
  void Release(std::shared_ptr<Exchange> exchange) {
    server_->Post([exchange = std::move(exchange)]() mutable { exchange.reset(); });
  }
  // Returns once the server has dealt with everything that was sent before, and armed its deadlines.
  void Settle() {
    EXPECT_EQ(TestClient(port_).Get("/settle").status, 200);
    OnIoThread([] {});
  }
  size_t OpenConnections() {
    size_t count = 0;
    OnIoThread([&] { count = server_->open_connections(); });
    return count;
  }

  ManualClock clock_{1000};
  TestHandler handler_;
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
};

TEST_F(HttpServerTest, AnswersRequestsOnOneConnection) {
  Start();
  TestClient client(port_);
  const ClientResponse first = client.Get("/a");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "/a 0");
  EXPECT_EQ(first.headers.at("content-type"), "text/plain");
  EXPECT_EQ(first.headers.at("date"), "Thu, 01 Jan 1970 00:16:40 GMT");
  EXPECT_FALSE(first.headers.contains("access-control-allow-origin"));
  EXPECT_EQ(client.Post("/b", "12345").body, "/b 5");
  EXPECT_EQ(OpenConnections(), 1u);
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  Start();
  HttpServer second({.port = port_}, clock_, handler_);
  const Result<uint16_t> result = second.Start();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(), fmt::format("cannot listen on 127.0.0.1:{}: Address already in use", port_));
  HttpServer nowhere({.host = "no.such.host.invalid"}, clock_, handler_);
  EXPECT_FALSE(nowhere.Start().ok());
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  Start();
  TestClient client(port_);
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += fmt::format("GET /{} HTTP/1.1\r\n\r\n", i);
  ASSERT_TRUE(client.Send(requests));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.Read().body, fmt::format("/{} 0", i));
}

TEST_F(HttpServerTest, PipelinedRequestsWaitForASlowAnswer) {
  Start();
  TestClient client(port_);
  client.Send("GET /hold HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\n\r\n");
  std::shared_ptr<Exchange> exchange = handler_.held.get_future().get();
  OnIoThread([&] { exchange->Respond({.body = "held"}); });
  EXPECT_EQ(client.Read().body, "held");
  EXPECT_EQ(client.Read().body, "/next 0");
  Release(std::move(exchange));
}

TEST_F(HttpServerTest, ReadsARequestThatComesByteByByte) {
  Start();
  TestClient client(port_);
  for (const char byte : PostText("/slow", "abc")) ASSERT_TRUE(client.Send({&byte, 1}));
  EXPECT_EQ(client.Read().body, "/slow 3");
}

TEST_F(HttpServerTest, SendsLargeAnswersToClientsThatReadLate) {
  Start();
  TestClient client(port_, 4096);
  client.Send("GET /big HTTP/1.1\r\n\r\nGET /after HTTP/1.1\r\n\r\n");
  // Others are served while it does not read.
  EXPECT_EQ(TestClient(port_).Get("/other").status, 200);
  EXPECT_EQ(client.Read().body.size(), size_t{8} << 20);
  EXPECT_EQ(client.Read().body, "/after 0");
}

TEST_F(HttpServerTest, StreamsInChunks) {
  Start();
  TestClient client(port_);
  client.Send("GET /stream HTTP/1.1\r\n\r\n");
  std::shared_ptr<Exchange> exchange = handler_.held.get_future().get();
  OnIoThread([&] {
    exchange->Write(" middle");
    exchange->Write("");
    exchange->Write(" end");
    exchange->EndStream();
    exchange->Write("ignored");
  });
  const ClientResponse response = client.Read();
  EXPECT_EQ(response.headers.at("transfer-encoding"), "chunked");
  EXPECT_EQ(response.body, "begin middle end");
  EXPECT_EQ(client.Get("/again").status, 200);
  Release(std::move(exchange));
}

TEST_F(HttpServerTest, StreamsToOldClientsUntilTheConnectionEnds) {
  Start();
  TestClient client(port_);
  client.Send("GET /stream HTTP/1.0\r\n\r\n");
  std::shared_ptr<Exchange> exchange = handler_.held.get_future().get();
  OnIoThread([&] { exchange->EndStream(); });
  const std::string all = client.ReadToEnd();
  EXPECT_EQ(all.find("chunked"), std::string::npos);
  EXPECT_TRUE(all.ends_with("\r\n\r\nbegin")) << all;
  Release(std::move(exchange));
}

TEST_F(HttpServerTest, HeadGetsNoBody) {
  Start();
  TestClient client(port_);
  client.Send("HEAD /abc HTTP/1.1\r\n\r\nGET /x HTTP/1.1\r\n\r\n");
  const std::string head = client.ReadUntil("\r\n\r\n");
  EXPECT_NE(head.find("Content-Length: 6\r\n"), std::string::npos);
  EXPECT_EQ(client.Read().body, "/x 0");
}

TEST_F(HttpServerTest, NoticesThatAClientIsGone) {
  for (const char* how : {"close", "reset", "half", "pipelined"}) {
    handler_.held = {};
    handler_.gone = {};
    Start();
    TestClient client(port_);
    client.Send("GET /stream HTTP/1.1\r\n\r\n");
    std::shared_ptr<Exchange> exchange = handler_.held.get_future().get();
    EXPECT_NE(client.ReadUntil("begin"), "");
    if (std::string(how) == "pipelined") client.Send("GET /more HTTP/1.1\r\n\r\n");
    if (std::string(how) == "reset") {
      client.Reset();
    } else if (std::string(how) == "half") {
      client.ShutdownWrite();
    } else {
      client.Close();
    }
    // The check behind pipelined bytes is timed.
    std::future<void> gone = handler_.gone.get_future();
    while (gone.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) clock_.Advance(seconds(1));
    OnIoThread([&] { exchange->Write("into the void"); });
    Release(std::move(exchange));
    EXPECT_EQ(OpenConnections(), 0u) << how;
    server_->Stop(nullptr);
  }
}

TEST_F(HttpServerTest, AnExchangeThatIsDroppedEndsTheConnection) {
  Start();
  TestClient client(port_);
  client.Send("GET /drop HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(HttpServerTest, AStreamThatNobodyReadsIsCut) {
  Start({.stream_buffer = 64 * 1024});
  TestClient client(port_, 4096);
  client.Send("GET /stream HTTP/1.1\r\n\r\n");
  std::shared_ptr<Exchange> exchange = handler_.held.get_future().get();
  std::future<void> gone = handler_.gone.get_future();
  const std::string piece(16 * 1024, 'x');
  int written = 0;
  while (gone.wait_for(seconds(0)) != std::future_status::ready && written < 10000) {
    OnIoThread([&] { exchange->Write(piece); });
    ++written;
  }
  EXPECT_LT(written, 1000);  // 16 MB: what the kernel holds, and the buffer
  EXPECT_EQ(TestClient(port_).Get("/other").status, 200);
  Release(std::move(exchange));
}

TEST_F(HttpServerTest, AClientThatStopsReadingIsDroppedAfterAWhile) {
  Start({.stream_buffer = 1 << 30, .write_timeout = 30});
  TestClient client(port_, 4096);
  client.Send("GET /stream HTTP/1.1\r\n\r\n");
  std::shared_ptr<Exchange> exchange = handler_.held.get_future().get();
  std::future<void> gone = handler_.gone.get_future();
  OnIoThread([&] { exchange->Write(std::string(16 << 20, 'x')); });
  clock_.Advance(seconds(29));
  Settle();
  EXPECT_EQ(gone.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  clock_.Advance(seconds(2));
  gone.wait();
  Release(std::move(exchange));
}

TEST_F(HttpServerTest, SlowHeadsAndBodiesAndIdleConnectionsTimeOut) {
  Start({.header_timeout = 10, .body_timeout = 60, .keep_alive = 75});
  TestClient silent(port_), head(port_), body(port_), idle(port_);
  head.Send("GET / HT");
  body.Send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n12");
  EXPECT_EQ(idle.Get("/").status, 200);
  Settle();
  // A byte now and then wins no time: the deadline is for the whole head.
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(seconds(2));
    head.Send("T");
    Settle();
  }
  clock_.Advance(seconds(1));
  EXPECT_EQ(silent.ReadToEnd(), "");
  const ClientResponse late = head.Read();
  EXPECT_EQ(late.status, 408);
  EXPECT_NE(late.body.find("the head of the request did not arrive within 10 seconds"), std::string::npos);
  clock_.Advance(seconds(50));
  EXPECT_EQ(body.Read().status, 408);
  EXPECT_EQ(idle.Get("/").status, 200);  // which starts its time anew
  Settle();
  clock_.Advance(seconds(76));
  EXPECT_EQ(idle.ReadToEnd(), "");
}

TEST_F(HttpServerTest, ErrorsOfHttpAreJsonAndEndTheConnection) {
  Start({.body_limit = 2048});
  const auto answer = [&](std::string_view bytes) {
    TestClient client(port_);
    client.Send(bytes);
    ClientResponse response = client.Read();
    EXPECT_EQ(response.headers["connection"], "close") << bytes;
    EXPECT_EQ(response.body.substr(0, 21), R"({"error":{"message":")") << bytes;
    EXPECT_EQ(client.ReadToEnd(), "");
    return response.status;
  };
  EXPECT_EQ(answer("nonsense\r\n\r\n"), 400);
  EXPECT_EQ(answer("GET / HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n"), 431);
  EXPECT_EQ(answer("POST / HTTP/1.1\r\nContent-Length: 2049\r\n\r\n"), 413);
  EXPECT_EQ(answer("POST / HTTP/1.1\r\nContent-Length: 2049\r\nExpect: 100-continue\r\n\r\n"), 413);
}

TEST_F(HttpServerTest, TellsClientsThatWaitToGoOn) {
  Start();
  TestClient client(port_);
  client.Send("POST /b HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("abc");
  EXPECT_EQ(client.Read().body, "/b 3");
}

TEST_F(HttpServerTest, AClientThatSendsTooMuchStillReadsTheAnswer) {
  Start({.body_limit = 4096});
  TestClient client(port_);
  // All of it is sent before anything is read.
  EXPECT_TRUE(client.Send(PostText("/", std::string(20 << 20, 'x'))));
  EXPECT_EQ(client.Read().status, 413);
}

TEST_F(HttpServerTest, ConnectionsAreBounded) {
  Start({.max_connections = 3});
  std::vector<TestClient> clients;
  for (int i = 0; i < 3; ++i) clients.emplace_back(port_);
  for (TestClient& client : clients) EXPECT_EQ(client.Get("/").status, 200);
  TestClient refused(port_);
  const ClientResponse response = refused.Read();
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.headers.at("retry-after"), "1");
  clients.pop_back();
  while (OpenConnections() > 2) {
  }
  EXPECT_EQ(TestClient(port_).Get("/").status, 200);
}

TEST_F(HttpServerTest, CrossOriginHeadersComeWhenConfigured) {
  Start({.cors_origin = "https://example.org"});
  EXPECT_EQ(TestClient(port_).Get("/").headers.at("access-control-allow-origin"), "https://example.org");
}

TEST_F(HttpServerTest, ADrainLetsAnswersFinishAndThenEnds) {
  Start();
  TestClient idle(port_), busy(port_);
  EXPECT_EQ(idle.Get("/").status, 200);
  busy.Send("GET /stream HTTP/1.1\r\n\r\n");
  std::shared_ptr<Exchange> exchange = handler_.held.get_future().get();
  std::promise<void> drained;
  OnIoThread([&] { server_->Drain([&] { drained.set_value(); }); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_EQ(TestClient(port_).Read().status, 0);  // nobody listens any more
  OnIoThread([&] {
    exchange->Write(" end");
    exchange->EndStream();
  });
  EXPECT_EQ(busy.Read().body, "begin end");
  busy.Close();
  drained.get_future().wait();
  Release(std::move(exchange));
}

TEST_F(HttpServerTest, StopEndsEverythingAtOnce) {
  Start();
  TestClient busy(port_);
  busy.Send("GET /hold HTTP/1.1\r\n\r\n");
  std::shared_ptr<Exchange> exchange = handler_.held.get_future().get();
  server_->Stop([&] { exchange.reset(); });
  EXPECT_EQ(busy.ReadToEnd(), "");
}

}  // namespace
}  // namespace cachalot::server
