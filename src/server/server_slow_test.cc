#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "server/server.h"
#include "server/testing/fake_generator.h"
#include "server/testing/fake_tokenizer.h"
#include "server/testing/test_client.h"
#include "text/chat_template.h"

namespace cachalot::server {
namespace {

using nlohmann::json;

class ServerSlowTest : public testing::Test {
 protected:
  void Start(FakeGenerator::Options generator, ServerOptions options = {}) {
    options.port = 0;
    generator_ = std::make_unique<FakeGenerator>(std::move(generator));
    server_ = std::make_unique<Server>(
        options,
        ServerDeps{.model = model_, .generator = *generator_, .clock = clock_, .metrics = metrics_, .entropy = 1});
    const Result<uint16_t> port = server_->Start();
    ASSERT_TRUE(port.ok()) << port.status().message();
    port_ = *port;
  }
  static std::string TextOf(const std::string& sse) {
    std::string text;
    const std::vector<std::string> events = EventsOf(sse);
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      const json event = json::parse(events[i]);
      text += event["choices"][0]["text"].get<std::string>();
    }
    return text;
  }

  FakeTokenizer tokenizer_;
  ServedModel model_{.names = {"tiny"},
                     .fingerprint = "fp",
                     .context_tokens = 1'000'000,
                     .pool_tokens = 1'000'000,
                     .tokenizer = &tokenizer_};
  SteadyClock clock_;
  Metrics metrics_;
  std::unique_ptr<FakeGenerator> generator_;
  std::unique_ptr<Server> server_;
  uint16_t port_ = 0;
};

TEST_F(ServerSlowTest, AThousandStreamsAtOnceAllGetTheirOwnText) {
  FakeGenerator::Options options;
  options.automatic = false;
  options.answer = [](const engine::GenerateRequest& request, uint32_t) {
    std::vector<TokenId> answer;
    for (int i = 0; i < 40; ++i) answer.insert(answer.end(), request.prompt.begin(), request.prompt.end());
    answer.resize(40);
    return answer;
  };
  Start(options);
  constexpr size_t kStreams = 1000;
  std::vector<TestClient> clients;
  for (size_t i = 0; i < kStreams; ++i) {
    clients.emplace_back(port_);
    const std::string body = fmt::format(R"({{"prompt":"<{}>","stream":true,"max_tokens":40}})", i);
    ASSERT_TRUE(clients.back().Send(PostText("/v1/completions", body)));
  }
  generator_->WaitForSubmits(kStreams);
  while (generator_->Step()) {
  }
  for (size_t i = 0; i < kStreams; ++i) {
    const ClientResponse response = clients[i].Read();
    ASSERT_EQ(response.status, 200);
    std::string expected;
    while (expected.size() < 40) expected += fmt::format("<{}>", i);
    ASSERT_EQ(TextOf(response.body), expected.substr(0, 40));
  }
  // The connections are good for more.
  EXPECT_EQ(clients.front().Get("/health").status, 200);
  EXPECT_EQ(clients.back().Get("/health").status, 200);
}

TEST_F(ServerSlowTest, AHundredMegabytesAreRefusedWhileOthersAreServed) {
  Start(FakeGenerator::Saying("fine"));
  const std::string huge(100 << 20, 'x');
  std::thread sender([&] {
    TestClient client(port_);
    EXPECT_TRUE(client.Send(PostText("/v1/completions", huge)));
    const ClientResponse response = client.Read();
    EXPECT_EQ(response.status, 413);
    EXPECT_NE(response.body.find("33554432 bytes"), std::string::npos);
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(TestClient(port_).Post("/v1/completions", R"({"prompt":"x"})").status, 200);
  }
  sender.join();
}

TEST_F(ServerSlowTest, LargePromptsDoNotHoldUpSmallOnes) {
  Start(FakeGenerator::Saying("fine"));
  const std::string large = R"({"prompt":")" + std::string(1 << 20, 'x') + R"("})";
  std::vector<TestClient> heavy;
  for (int i = 0; i < 4; ++i) {
    heavy.emplace_back(port_);
    ASSERT_TRUE(heavy.back().Send(PostText("/v1/completions", large)));
  }
  EXPECT_EQ(TestClient(port_).Post("/v1/completions", R"({"prompt":"x"})").status, 200);
  // A million tokens of the fake tokenizer: each is refused when its turn has come.
  for (TestClient& client : heavy) EXPECT_EQ(client.Read().status, 400);
}

// Clients that come, go, half-send, reset and read slowly, for a while; afterwards nothing is left behind.
TEST_F(ServerSlowTest, NothingIsLeftBehindByAStorm) {
  Start(FakeGenerator::Repeating("storm "), {.stream_buffer = 4096});
  SplitMix64 random(3);
  const std::string stream = PostText("/v1/completions", R"({"prompt":["a","b"],"stream":true,"max_tokens":100})");
  const std::string whole = PostText("/v1/completions", R"({"prompt":"x","max_tokens":30,"logprobs":2})");
  std::deque<TestClient> open;
  for (int i = 0; i < 1500; ++i) {
    TestClient client(port_, random.Below(2) == 0 ? 2048 : 0);
    switch (random.Below(7)) {
      case 0: client.Send(stream); break;
      case 1: client.Send(whole + whole + stream); break;
      case 2: client.Send(stream.substr(0, random.Below(stream.size()))); break;
      case 3:
        client.Send(stream);
        client.ReadUntil("storm");
        client.Reset();
        break;
      case 4:
        client.Send(whole);
        EXPECT_EQ(client.Read().status, 200);
        break;
      case 5: {
        std::string damaged = whole;
        damaged[random.Below(damaged.size())] = static_cast<char>(random());
        client.Send(damaged);
        break;
      }
      default: client.ShutdownWrite(); break;
    }
    if (random.Below(3) == 0) open.push_back(std::move(client));
    if (open.size() > 50) open.pop_front();
  }
  open.clear();
  while (generator_->running() > 0) std::this_thread::yield();
  const auto open_connections = [&] {
    const std::string metrics = TestClient(port_).Get("/metrics").body;
    const std::string name = "\ncachalot_open_connections ";
    return std::stoi(metrics.substr(metrics.find(name) + name.size()));
  };
  while (open_connections() > 1) std::this_thread::yield();
}

}  // namespace
}  // namespace cachalot::server
