// The server over its sockets with an engine whose pool holds a tenth of what its clients want at once.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/testing/served_fake.h"
#include "server/testing/test_client.h"

namespace cachalot {
namespace {

using nlohmann::json;

constexpr size_t kClients = 40;
constexpr size_t kRequests = 2'400;
constexpr size_t kBodies = 120;       // different ones
constexpr uint32_t kBlocksEach = 12;  // of prompt and answer, about
constexpr uint32_t kSlots = kClients * kBlocksEach / 10;

using Served = cli::testing::ServedFake;

std::string BodyOf(size_t i) {
  const std::string shared(40 + i % 3 * 20, static_cast<char>('a' + i % 4));
  json body = {{"prompt", fmt::format("{} tell me about {}{}", shared, i, std::string(i % 60, 'z'))},
               {"max_tokens", 20 + i % 50},
               {"ignore_eos", true},
               {"seed", i},
               {"temperature", i % 2 == 0 ? 0.0 : 1.0}};
  if (i % 7 == 0) body["n"] = 2;
  if (i % 5 == 0) body["kv"] = {{"priority", "high"}, {"pin", 1}, {"ttl", 2}, {"scrub", true}};
  if (i % 5 == 1) body["kv"] = {{"priority", "low"}};
  return body.dump();
}

json TextsOf(const std::string& answer) {
  const json parsed = json::parse(answer);
  json texts = json::array();
  for (const json& choice : parsed.at("choices")) texts.push_back(choice.at("text"));
  return texts;
}

uint64_t ResidentPages() {
  const std::string statm = ReadFile("/proc/self/statm", 4096).value();
  return std::stoull(statm.substr(statm.find(' ')));
}

TEST(Overload, ATenthOfThePoolThatIsWantedAnswersEverybodyAsIfAlone) {
  std::vector<std::string> bodies;
  std::vector<json> alone;
  {
    Served served({.engine = {.max_sequences = 2, .prefix_cache = false}});
    server::TestClient client(served.port());
    for (size_t i = 0; i < kBodies; ++i) {
      bodies.push_back(BodyOf(i));
      const server::ClientResponse response = client.Post("/v1/completions", bodies.back());
      ASSERT_EQ(response.status, 200) << response.body;
      alone.push_back(TextsOf(response.body));
    }
  }
  engine::EngineOptions options{.max_queue = 16};
  options.pin_budget = 0.1;
  Served served({.engine = options, .slots = kSlots});
  std::atomic<size_t> next{0}, answered{0}, full{0}, wrong{0}, other{0};
  std::atomic<uint64_t> early_pages{0};
  const auto run = [&] {
    server::TestClient client(served.port());
    for (size_t i = next++; i < kRequests;) {
      const server::ClientResponse response = client.Post("/v1/completions", bodies[i * 7 % kBodies]);
      if (response.status == 429) {
        ++full;
        std::this_thread::yield();
        continue;  // asks again
      }
      other += response.status != 200;
      wrong += response.status == 200 && TextsOf(response.body) != alone[i * 7 % kBodies];
      if (++answered == kRequests / 3) early_pages = ResidentPages();
      i = next++;
    }
  };
  std::vector<std::thread> clients;
  for (size_t i = 0; i < kClients; ++i) clients.emplace_back(run);
  for (std::thread& client : clients) client.join();
  [[maybe_unused]] const uint64_t late_pages = ResidentPages();

  EXPECT_EQ(answered, kRequests);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(other, 0u);
  EXPECT_GT(full, 0u);
#ifndef CACHALOT_CHECKS  // a sanitizer keeps what was freed
  EXPECT_LE(late_pages, early_pages + 1024) << "4 MiB more";
#endif
  const std::string metrics = server::TestClient(served.port()).Get("/metrics").body;
  EXPECT_NE(metrics.find("\ncachalot_step_failures_total 0\n"), std::string::npos);
  EXPECT_EQ(metrics.find("\ncachalot_kv_evicted_slots_total 0\n"), std::string::npos);
  served.Stop();
  EXPECT_TRUE(served.executor().violations().empty()) << served.executor().violations().front();
}

TEST(RetentionOverHttp, TheUsageSaysWhatBecameOfTheHints) {
  engine::EngineOptions options;
  options.pin_budget = 0.5;
  Served served({.engine = options, .slots = 40});
  server::TestClient client(served.port());
  const auto usage = [&](const std::string& kv) {
    const std::string body = fmt::format(R"({{"prompt":"{}","max_tokens":1,"kv":{}}})", std::string(100, 'x'), kv);
    return json::parse(client.Post("/v1/completions", body).body).at("usage");
  };
  EXPECT_EQ(usage(R"({"ttl":60})")["kv"], json::parse(R"({"kept":true})"));
  EXPECT_EQ(usage(R"({"pin":60})")["kv"], json::parse(R"({"kept":true,"pin":"whole","pinned_tokens":96})"));
  EXPECT_FALSE(usage("null").contains("kv"));
  const server::ClientResponse wrong = client.Post("/v1/completions", R"({"prompt":"x","kv":{"ttl":-1}})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(json::parse(wrong.body)["error"]["param"], "kv.ttl");
}

TEST(TermsOverHttp, AFullQueueSaysWhenToComeBackAndACapWhatItIs) {
  engine::EngineOptions options;
  options.terms = {.request = {.sequences = 2}, .tenant = {.sequences = 2}, .queue = 2};
  Served served({.engine = options});
  const json wide = {{"prompt", "x"}, {"n", 3}};
  const server::ClientResponse refused = server::TestClient(served.port()).Post("/v1/completions", wide.dump());
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, ::testing::HasSubstr("needs 3 sequences (n), but a request may have 2"));

  const std::string body = json({{"prompt", "x"}, {"max_tokens", 2000}, {"ignore_eos", true}}).dump();
  const std::string request = fmt::format(
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
  size_t full = 0;
  for (int round = 0; round < 50 && full == 0; ++round) {
    std::vector<server::TestClient> clients;
    for (int i = 0; i < 8; ++i) clients.emplace_back(served.port());
    for (server::TestClient& client : clients) ASSERT_TRUE(client.Send(request));
    for (server::TestClient& client : clients) {
      const server::ClientResponse response = client.Read();
      if (response.status == 200) continue;
      ++full;
      EXPECT_EQ(response.status, 429) << response.body;
      EXPECT_GE(std::stoi("0" + response.headers.at("retry-after")), 1);
      EXPECT_THAT(response.body, ::testing::HasSubstr("2 requests of this tenant are waiting already; at most 2 may"));
    }
  }
  EXPECT_GT(full, 0u);
}

}  // namespace
}  // namespace cachalot
