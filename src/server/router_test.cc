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

TEST(Router, FindsASessionByItsIdAndWhatIsToBeDoneWithIt) {
  EXPECT_EQ(MatchRoute("/v1/kv/sessions?limit=3").route, Route::kSessions);
  EXPECT_EQ(MatchRoute("/v1/kv/prefetch").route, Route::kKvPrefetch);
  EXPECT_EQ(MatchRoute("/v1/kv/sessions/a%2Fb%20%C3%A9?tenant=x").argument, "a/b \xC3\xA9");
  EXPECT_EQ(MatchRoute("/v1/kv/sessions/a/suspend").route, Route::kSessionSuspend);
  EXPECT_EQ(MatchRoute("/v1/kv/sessions/suspend/suspend").argument, "suspend");
  EXPECT_EQ(MatchRoute("/v1/kv/sessions/suspend").route, Route::kSession);
  EXPECT_EQ(MatchRoute("/v1/kv/sessions/a/restore").route, Route::kSessionRestore);
  for (const char* path : {"/v1/kv/sessions/", "/v1/kv/sessions//suspend", "/v1/kv/sessions/a/", "/v1/kv/sessions/a/b",
                           "/v1/kv/sessions/a/suspend/", "/v1/kv/sessions/a/b/suspend"}) {
    EXPECT_EQ(MatchRoute(path).route, Route::kUnknown) << path;
  }
}

TEST(Router, ReadsTheQuery) {
  EXPECT_EQ(QueryValue("/x?tenant=a%26b&limit=3", "tenant"), "a&b");
  EXPECT_EQ(QueryValue("/x?tenant=a&limit=3#limit=4", "limit"), "3");
  EXPECT_EQ(QueryValue("/x?limit", "limit"), "");
  EXPECT_EQ(QueryValue("/x?a=1&&b=2", "b"), "2");
  for (const char* target : {"/x", "/x?", "/x?limits=3", "/x#limit=3", "?"}) {
    EXPECT_EQ(QueryValue(target, "limit"), std::nullopt) << target;
  }
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
  const RouteMatch keep = MatchRoute("/v1/kv/sessions/a");
  EXPECT_TRUE(Allows(keep, Method::kDelete));
  EXPECT_TRUE(Allows(keep, Method::kHead));
  EXPECT_FALSE(Allows(keep, Method::kPost));
  EXPECT_FALSE(Allows(read, Method::kDelete));
  EXPECT_EQ(keep.allowed, "GET, HEAD, DELETE, OPTIONS");
}

TEST(Router, TheApiNeedsAKeyAndItsAdministrationAnother) {
  for (const char* path : {"/v1/models", "/v1/models/x", "/v1/chat/completions"}) {
    EXPECT_EQ(MatchRoute(path).access, Access::kClient) << path;
  }
  for (const char* path : {"/v1/kv", "/v1/kv/probe", "/v1/kv/clear", "/v1/kv/decisions"}) {
    EXPECT_EQ(MatchRoute(path).access, Access::kAdmin) << path;
  }
  for (const char* path : {"/v1/kv/sessions", "/v1/kv/sessions/a", "/v1/kv/sessions/a/pin", "/v1/kv/prefetch"}) {
    EXPECT_EQ(MatchRoute(path).access, Access::kClientOrAdmin) << path;
  }
  for (const char* path : {"/health", "/metrics"}) EXPECT_EQ(MatchRoute(path).access, Access::kAnyone) << path;
}

}  // namespace
}  // namespace cachalot::server
