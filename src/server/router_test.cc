#include "server/router.h"

#include <gtest/gtest.h>

namespace cachalot::server {
namespace {

TEST(Router, FindsThePathsOfTheApi) {
  EXPECT_EQ(MatchRoute("/v1/chat/completions").route, Route::kChatCompletions);
  EXPECT_EQ(MatchRoute("/v1/completions?x=1").route, Route::kCompletions);
  EXPECT_EQ(MatchRoute("/health").route, Route::kHealth);
  EXPECT_EQ(MatchRoute("/").route, Route::kRoot);
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

TEST(Router, OnlyTheApiNeedsAKey) {
  EXPECT_TRUE(MatchRoute("/v1/models").needs_key);
  EXPECT_TRUE(MatchRoute("/v1/models/x").needs_key);
  EXPECT_TRUE(MatchRoute("/v1/chat/completions").needs_key);
  EXPECT_FALSE(MatchRoute("/health").needs_key);
  EXPECT_FALSE(MatchRoute("/metrics").needs_key);
}

}  // namespace
}  // namespace cachalot::server
