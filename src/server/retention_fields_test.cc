#include "server/retention_fields.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"

namespace cachalot::server {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

std::optional<RetentionHints> Read(const std::string& body, std::string* problem = nullptr) {
  const Json json = ParseJson(body).value();
  FieldReader reader(json, "");
  const std::optional<RetentionHints> hints = ReadRetention(reader);
  EXPECT_EQ(reader.ok(), problem == nullptr) << body;
  if (!reader.ok() && problem != nullptr) *problem = reader.error()->param + ": " + reader.error()->message;
  return hints;
}

std::string ProblemOf(const std::string& body) {
  std::string problem;
  Read(body, &problem);
  return problem;
}

TEST(RetentionFields, WhoSaysNothingHasNoHints) {
  EXPECT_EQ(Read(R"({"prompt":"x"})"), std::nullopt);
  EXPECT_EQ(Read(R"({"kv":null,"prompt_cache_retention":null})"), std::nullopt);
  EXPECT_EQ(Read(R"({"prompt_cache_key":"user-7"})"), std::nullopt);
}

TEST(RetentionFields, ReadsTheKvObject) {
  EXPECT_EQ(Read(R"({"kv":{}})"), RetentionHints{});
  EXPECT_EQ(Read(R"({"kv":{"priority":"low"}})"), (RetentionHints{.priority = RetentionPriority::kLow}));
  EXPECT_EQ(Read(R"({"kv":{"priority":"high","ttl":60,"pin":60,"scrub":true}})"),
            (RetentionHints{RetentionPriority::kHigh, seconds(60), seconds(60), true}));
  EXPECT_EQ(Read(R"({"kv":{"pin":86400}})"), (RetentionHints{.pin = hours(24)}));
}

TEST(RetentionFields, ReadsPromptCacheRetentionAndLetsKvRefineIt) {
  const RetentionHints day{.priority = RetentionPriority::kHigh, .ttl = hours(24)};
  EXPECT_EQ(Read(R"({"prompt_cache_retention":"24h"})"), day);
  EXPECT_EQ(Read(R"({"prompt_cache_retention":"in_memory"})"), RetentionHints{});
  EXPECT_EQ(Read(R"({"prompt_cache_retention":"in-memory"})"), RetentionHints{});
  EXPECT_EQ(Read(R"({"prompt_cache_retention":"24h","kv":{"ttl":60}})"),
            (RetentionHints{.priority = RetentionPriority::kHigh, .ttl = seconds(60)}));
}

TEST(RetentionFields, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(ProblemOf(R"({"kv":7})").substr(0, 4), "kv: ");
  EXPECT_EQ(ProblemOf(R"({"kv":{"priority":"urgent"}})").substr(0, 13), "kv.priority: ");
  EXPECT_EQ(ProblemOf(R"({"kv":{"priority":3}})").substr(0, 13), "kv.priority: ");
  EXPECT_EQ(ProblemOf(R"({"kv":{"ttl":0}})").substr(0, 8), "kv.ttl: ");
  EXPECT_EQ(ProblemOf(R"({"kv":{"ttl":2592001}})").substr(0, 8), "kv.ttl: ");
  EXPECT_EQ(ProblemOf(R"({"kv":{"ttl":1.5}})").substr(0, 8), "kv.ttl: ");
  EXPECT_EQ(ProblemOf(R"({"kv":{"pin":86401}})").substr(0, 8), "kv.pin: ");
  EXPECT_EQ(ProblemOf(R"({"kv":{"pin":61,"ttl":60}})").substr(0, 8), "kv.pin: ");
  EXPECT_EQ(ProblemOf(R"({"kv":{"scrub":"yes"}})").substr(0, 10), "kv.scrub: ");
  EXPECT_NE(ProblemOf(R"({"kv":{"tll":60}})").find("tll"), std::string::npos);
  EXPECT_EQ(ProblemOf(R"({"prompt_cache_retention":"1w"})").substr(0, 24), "prompt_cache_retention: ");
  EXPECT_EQ(ProblemOf(R"({"prompt_cache_key":5})").substr(0, 18), "prompt_cache_key: ");
}

}  // namespace
}  // namespace cachalot::server
