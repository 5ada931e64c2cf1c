#include "server/session_fields.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "server/retention_fields.h"

namespace cachalot::server {
namespace {

// "" when it is right.
std::string ProblemOf(const std::string& body, SessionFields* fields = nullptr) {
  const Json json = ParseJson(body).value();
  FieldReader reader(json, "");
  ReadRetention(reader);
  const SessionFields read = ReadSession(reader);
  if (fields != nullptr) *fields = read;
  return reader.ok() ? "" : reader.error()->message;
}

TEST(SessionFields, WhoNamesNoneHasNone) {
  for (const char* body : {R"({})", R"({"kv":null})", R"({"kv":{"ttl":5,"session":null}})"}) {
    SessionFields fields;
    EXPECT_EQ(ProblemOf(body, &fields), "");
    EXPECT_EQ(fields.id, "");
    EXPECT_TRUE(fields.returns.returns);
    EXPECT_EQ(fields.returns.in, std::nullopt);
  }
}

TEST(SessionFields, ReadsIdTtlAndHints) {
  SessionFields fields;
  EXPECT_EQ(
      ProblemOf(R"({"kv":{"session":"caf\u00e9/1 2","session_ttl":60,"returns":true,"returns_in":1.5}})", &fields), "");
  EXPECT_EQ(fields.id, "caf\u00e9/1 2");
  EXPECT_EQ(fields.ttl_seconds, 60u);
  EXPECT_EQ(fields.returns.in, Nanos(std::chrono::milliseconds(1500)));
  EXPECT_EQ(ProblemOf(R"({"kv":{"returns":false}})", &fields), "");
  EXPECT_FALSE(fields.returns.returns);
}

TEST(SessionFields, NamesWhatIsWrong) {
  EXPECT_EQ(ProblemOf(R"({"kv":{"session":""}})"), "kv.session: has 0 bytes; 1 to 128 are allowed");
  EXPECT_EQ(ProblemOf(R"({"kv":{"session":")" + std::string(129, 'x') + R"("}})"),
            "kv.session: has 129 bytes; 1 to 128 are allowed");
  EXPECT_EQ(ProblemOf(R"({"kv":{"session":"a\nb"}})"), "kv.session: contains a control character");
  EXPECT_EQ(ProblemOf(R"({"kv":{"session":7}})"), "kv.session: expected string, got integer");
  EXPECT_NE(ProblemOf(R"({"kv":{"session":".."}})"), "");
  EXPECT_NE(ProblemOf(R"({"kv":{"session_ttl":0}})"), "");
  EXPECT_NE(ProblemOf(R"({"kv":{"session_ttl":2592001}})"), "");
  EXPECT_NE(ProblemOf(R"({"kv":{"returns":1}})"), "");
  EXPECT_NE(ProblemOf(R"({"kv":{"returns_in":-1}})"), "");
  EXPECT_NE(ProblemOf(R"({"kv":{"returns_in":1e300}})"), "");
  EXPECT_EQ(ProblemOf(R"({"kv":{"returns":false,"returns_in":1}})"), "kv.returns_in: contradicts \"returns\": false");
  EXPECT_EQ(
      ProblemOf(R"({"kv":{"sesion":"x"}})"),
      "kv.\"sesion\": is not known; expected priority, ttl, pin, scrub, session, session_ttl, returns, returns_in");
}

TEST(SessionFields, IdsOfHeadersAndPathsHaveTheSameRules) {
  EXPECT_EQ(SessionIdProblem("x"), std::nullopt);
  EXPECT_EQ(SessionIdProblem("..."), std::nullopt);
  EXPECT_EQ(SessionIdProblem("\xff"), "is not UTF-8");
  EXPECT_NE(SessionIdProblem("a\x7f"), std::nullopt);
  EXPECT_NE(SessionIdProblem("."), std::nullopt);
}

}  // namespace
}  // namespace cachalot::server
