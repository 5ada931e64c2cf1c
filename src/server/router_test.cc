#include "server/router.h"

#include <gtest/gtest.h>

namespace cachalot::server {
namespace {

TEST(Router, FindsThePathsOfTheApi) {
  EXPECT_EQ(MatchRoute("/v1/chat/completions").route, Route::kChatCompletions);
  EXPECT_EQ(MatchRoute("/v1/completions?x=1").route, Route::kCompletions);
  EXPECT_EQ(MatchRoute("/health").route, Route::kHealth);
  EXPECT_EQ(MatchRoute("/").route, Route::kRoot);
  EXPECT_EQ(MatchRoute("/v1/kv").route, Route::kKv);
  EXPECT_EQ(MatchRoute("/v1/kv/probe").route, Route::kKvProbe);
  EXPECT_EQ(MatchRoute("/v1/kv/clear").route, Route::kKvClear);
  for (const char* path : {"", "/v1", "/v1/chat", "/v1/completions/", "//health", "/HEALTH", "*", "/v1/modelsx"}) {
    EXPECT_EQ(MatchRoute(path).route, Route::kUnknown) << path;
  }
}

TEST(Router, TakesModelNamesWithSlashesAndEscapes) {
  EXPECT_EQ(MatchRoute("/v1/models/HuggingFaceTB/SmolLM2").argument, "HuggingFaceTB/SmolLM2");
  EXPECT_EQ(MatchRoute("/v1/models/a%2Fb%20c%").argument, "a/b c%");
  EXPECT_EQ(MatchRoute("/v1/models/%zz%4").argument, "%zz%4");
}

TEST(Router, KnowsWhichMethodsGoWhere) {
  const RouteMatch read = MatchRoute("/v1/models"), write = MatchRoute("/v1/completions");
  EXPECT_TRUE(Allows(read, Method::kGet));
  EXPECT_TRUE(Allows(read, Method::kHead));
  EXPECT_FALSE(Allows(read, Method::kPost));
  EXPECT_TRUE(Allows(write, Method::kPost));
  EXPECT_FALSE(Allows(write, Method::kGet));
  EXPECT_TRUE(Allows(write, Method::kOptions));
  EXPECT_FALSE(Allows(write, Method::kOther));
}

TEST(Router, TheApiNeedsAKeyAndItsAdministrationAnother) {
  for (const char* path : {"/v1/models", "/v1/models/x", "/v1/chat/completions"}) {
    EXPECT_EQ(MatchRoute(path).access, Access::kClient) << path;
  }
  for (const char* path : {"/v1/kv", "/v1/kv/probe", "/v1/kv/clear"}) {
    EXPECT_EQ(MatchRoute(path).access, Access::kAdmin) << path;
  }
  for (const char* path : {"/health", "/metrics"}) EXPECT_EQ(MatchRoute(path).access, Access::kAnyone) << path;
}

}  // namespace
}  // namespace cachalot::server
