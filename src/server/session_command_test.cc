#include "server/session_command.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "server/testing/fake_tokenizer.h"

namespace cachalot::server {
namespace {

using engine::SessionCommand;
using engine::SessionVerb;

SessionCommand CommandOf(const ApiResult<SessionCommand>& result) {
  const auto* error = std::get_if<ApiError>(&result);
  EXPECT_EQ(error, nullptr) << error->message;
  return error == nullptr ? std::get<SessionCommand>(result) : SessionCommand{};
}

SessionCommand Read(std::string_view target, std::string_view body = "", Method method = Method::kPost) {
  return CommandOf(ReadSessionCommand(MatchRoute(target), method, body));
}

int StatusOf(const ApiResult<SessionCommand>& result) {
  const auto* error = std::get_if<ApiError>(&result);
  return error == nullptr ? 200 : error->status;
}

TEST(SessionCommandReader, EachPathIsAVerb) {
  EXPECT_EQ(Read("/v1/kv/sessions/a", "", Method::kGet).verb, SessionVerb::kShow);
  EXPECT_EQ(Read("/v1/kv/sessions/a", "", Method::kHead).verb, SessionVerb::kShow);
  EXPECT_EQ(Read("/v1/kv/sessions/a", "", Method::kDelete).verb, SessionVerb::kDelete);
  EXPECT_EQ(Read("/v1/kv/sessions/a/suspend").verb, SessionVerb::kSuspend);
  EXPECT_EQ(Read("/v1/kv/sessions/a/suspend", "{}").name.id, "a");
  EXPECT_TRUE(Read("/v1/kv/sessions/a/pin").pinned);
  EXPECT_FALSE(Read("/v1/kv/sessions/a/unpin").pinned);
  EXPECT_EQ(Read("/v1/kv/sessions/a/unpin").verb, SessionVerb::kPin);
  EXPECT_EQ(Read("/v1/kv/sessions/a%2Fb/fork", R"({"id":"c/d"})").other, "c/d");
  EXPECT_EQ(Read("/v1/kv/sessions/a%2Fb/fork", R"({"id":"c/d"})").name.id, "a/b");
  EXPECT_EQ(Read("/v1/kv/sessions/a/save", R"({"file":"x-1.kv"})").other, "x-1.kv");
  EXPECT_EQ(Read("/v1/kv/sessions/a/restore", R"({"file":"x"})").verb, SessionVerb::kRestore);
  EXPECT_EQ(Read("/v1/kv/sessions/a/resume", R"({"in":0.25})").when, Nanos(std::chrono::milliseconds(250)));
  EXPECT_EQ(Read("/v1/kv/sessions/a/resume").when, Nanos(0));
}

TEST(SessionCommandReader, RefusesWhatItDoesNotKnow) {
  const auto status = [](std::string_view target, std::string_view body) {
    return StatusOf(ReadSessionCommand(MatchRoute(target), Method::kPost, body));
  };
  EXPECT_EQ(status("/v1/kv/sessions/a/suspend", "[]"), 400);
  EXPECT_EQ(status("/v1/kv/sessions/a/suspend", "{"), 400);
  EXPECT_EQ(status("/v1/kv/sessions/a/suspend", R"({"id":"x"})"), 400);
  EXPECT_EQ(status("/v1/kv/sessions/a%00/suspend", ""), 400);
  EXPECT_EQ(status("/v1/kv/sessions/%FF/suspend", ""), 400);
  EXPECT_EQ(status("/v1/kv/sessions/%2E%2E/suspend", ""), 400);
  EXPECT_EQ(status("/v1/kv/sessions/a/fork", ""), 400);
  EXPECT_EQ(status("/v1/kv/sessions/a/fork", R"({"id":""})"), 400);
  EXPECT_EQ(status("/v1/kv/sessions/a/resume", R"({"in":-1})"), 400);
  EXPECT_EQ(status("/v1/kv/sessions/a/resume", R"({"in":"soon"})"), 400);
  EXPECT_EQ(status("/v1/kv/sessions/a/suspend", std::string(5000, ' ')), 413);
  for (const char* name : {"", ".", "..", ".x", "a/b", "../x", "a b", "\\u0000", "caf\\u00e9"}) {
    EXPECT_EQ(status("/v1/kv/sessions/a/save", R"({"file":")" + std::string(name) + R"("})"), 400) << name;
  }
  EXPECT_EQ(status("/v1/kv/sessions/a/save", R"({"file":")" + std::string(129, 'x') + R"("})"), 400);
}

TEST(SessionCommandReader, ListsAPartAtATime) {
  const SessionCommand all = CommandOf(ReadSessionList("/v1/kv/sessions"));
  EXPECT_EQ(all.verb, SessionVerb::kList);
  EXPECT_EQ(all.limit, 100u);
  const SessionCommand part = CommandOf(ReadSessionList("/v1/kv/sessions?limit=7&after=a%26b&after_tenant=bob"));
  EXPECT_EQ(part.limit, 7u);
  EXPECT_EQ(part.after, (engine::SessionName{"bob", "a&b"}));
  for (const char* query : {"?limit=0", "?limit=1001", "?limit=x", "?limit=", "?limit=5x", "?after=%00"}) {
    EXPECT_EQ(StatusOf(ReadSessionList("/v1/kv/sessions" + std::string(query))), 400) << query;
  }
}

TEST(SessionCommandReader, APrefetchIsOfASessionOrOfOnePrompt) {
  FakeTokenizer tokenizer;
  const ServedModel model{.names = {"tiny"}, .context_tokens = 100, .pool_tokens = 100, .tokenizer = &tokenizer};
  const PrepareContext context{.model = model, .salt = {1, 2}};
  const SessionCommand session = CommandOf(ReadPrefetch(context, R"({"session":"s","in":2})"));
  EXPECT_EQ(session.verb, SessionVerb::kResume);
  EXPECT_EQ(session.name.id, "s");
  EXPECT_EQ(session.when, Nanos(std::chrono::seconds(2)));
  const SessionCommand prompt = CommandOf(ReadPrefetch(context, R"({"prompt":"abc"})"));
  EXPECT_EQ(prompt.verb, SessionVerb::kPrefetch);
  EXPECT_EQ(prompt.prompt, (std::vector<TokenId>{'a', 'b', 'c'}));
  EXPECT_EQ(prompt.scope.salt, (CacheSalt{1, 2}));
  for (const char* wrong :
       {R"({})", R"([])", R"({"session":""})", R"({"session":"s","prompt":"x"})", R"({"prompt":["a","b"]})",
        R"({"prompt":""})", R"({"prompt":"a","in":-1})", R"({"session":3})", R"({"in":1})", ""}) {
    EXPECT_EQ(StatusOf(ReadPrefetch(context, wrong)), 400) << wrong;
  }
}

}  // namespace
}  // namespace cachalot::server
