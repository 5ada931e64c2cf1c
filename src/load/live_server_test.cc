#include "load/live_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/metrics.h"
#include "load/testing/fake_server.h"

namespace cachalot::load {
namespace {

using ::testing::HasSubstr;

constexpr auto kGoOn = [] { return true; };

// Answers each path with what it is told.
FakeServer Serving(std::string metrics, std::string models, std::string kv) {
  return FakeServer([=](const FakeRequest& request) {
    const bool of_models = request.head.find("/v1/models") != std::string::npos;
    const bool of_kv = request.head.find("/v1/kv") != std::string::npos;
    return FakeReply{JsonResponse(200, of_models ? models : of_kv ? kv : metrics)};
  });
}

const std::string kModels = R"({"data":[{"id":"m","max_model_len":512},{"id":"n","max_model_len":512}]})";

Result<ServerIdentity> IdentityOf(const FakeServer& server, ServerKeys keys = {}) {
  const SteadyClock clock;
  auto live = LiveServer::Open(server.url(), std::move(keys), clock, kGoOn);
  if (!live.ok()) return live.status();
  return (*live)->ReadIdentity();
}

TEST(LiveServer, AsksBelowTheRootWithTheKeyThatEachPathWants) {
  FakeServer server = Serving(Metrics().Exposition(), kModels, R"({"block_tokens":16})");
  const SteadyClock clock;
  const auto live = LiveServer::Open(server.url() + "/behind/v1/", {.api = "a", .admin = "b"}, clock, kGoOn).value();
  ASSERT_TRUE(live->ReadMetrics().ok());
  const Result<ServerIdentity> identity = live->ReadIdentity();
  ASSERT_TRUE(identity.ok()) << identity.status().message();
  EXPECT_EQ(identity->model, "m");
  EXPECT_EQ(identity->context_tokens, 512u);
  EXPECT_EQ(*identity->kv.Find("block_tokens")->AsInt(), 16);
  const std::vector<FakeRequest> requests = server.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_TRUE(requests[0].head.starts_with("GET /behind/metrics HTTP/1.1\r\n")) << requests[0].head;
  EXPECT_EQ(requests[0].head.find("Authorization"), std::string::npos);
  EXPECT_THAT(requests[1].head, HasSubstr("GET /behind/v1/models "));
  EXPECT_THAT(requests[1].head, ::testing::EndsWith("Authorization: Bearer a"));
  EXPECT_THAT(requests[2].head, HasSubstr("GET /behind/v1/kv "));
  EXPECT_THAT(requests[2].head, ::testing::EndsWith("Authorization: Bearer b"));
}

TEST(LiveServer, WithoutAnAdminKeyTheAdministrationIsNotAsked) {
  FakeServer server = Serving("", kModels, "");
  const Result<ServerIdentity> identity = IdentityOf(server);
  ASSERT_TRUE(identity.ok()) << identity.status().message();
  EXPECT_TRUE(identity->kv.is_null());
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(LiveServer, SaysWhatIsWrongWithAnAnswer) {
  const auto complaint = [](const std::string& models, const std::string& kv = "{}") {
    FakeServer server = Serving("", models, kv);
    return IdentityOf(server, {.api = "", .admin = "b"}).status().message();
  };
  EXPECT_EQ(complaint(kModels), "");
  EXPECT_THAT(complaint("{"), HasSubstr("GET /v1/models: "));
  for (const char* models :
       {"[]", "{}", R"({"data":[]})", R"({"data":[{"id":"m"}]})", R"({"data":[{"id":"m","max_model_len":0}]})",
        R"({"data":[{"id":3,"max_model_len":9}]})"}) {
    EXPECT_THAT(complaint(models), HasSubstr("expected models with \"id\" and \"max_model_len\"")) << models;
  }
  EXPECT_THAT(complaint(kModels, "nothing"), HasSubstr("GET /v1/kv: "));
}

}  // namespace
}  // namespace cachalot::load
