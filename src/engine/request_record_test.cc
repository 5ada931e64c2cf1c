#include "engine/request_record.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/random.h"
#include "base/testing/fault_file_system.h"

namespace cachalot::engine {
namespace {

std::vector<TokenId> Tokens(uint32_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(1000));
  return tokens;
}

TEST(PrefixTags, AreEqualJustAsFarAsTokensAre) {
  const TagKey key{5};
  std::vector<TokenId> one = Tokens(50, 1), other = one;
  other[30] ^= 1;
  PrefixTags a(key, {}, 16), b(key, {}, 16);
  const std::vector<uint32_t> tags = a.Push(one), others = b.Push(other);
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(tags[i] == others[i], i < 30) << i;
  ASSERT_EQ(a.BlockNames().size(), 4u);
  EXPECT_EQ(a.BlockNames()[0], b.BlockNames()[0]);
  for (size_t block = 1; block < 4; ++block) EXPECT_NE(a.BlockNames()[block], b.BlockNames()[block]);
  for (const uint64_t name : a.BlockNames()) EXPECT_LT(name, uint64_t{1} << 53);
}

TEST(PrefixTags, GoOnFromAPromptAsALaterPromptDoes) {
  const TagKey key{5};
  const std::vector<TokenId> all = Tokens(40, 1);
  PrefixTags whole(key, {}, 16), prompt(key, {}, 16);
  const std::vector<uint32_t> tags = whole.Push(all);
  prompt.Push(std::span(all).first(25));
  PrefixTags answer(prompt);
  EXPECT_EQ(answer.Push(std::span(all).subspan(25)), std::vector<uint32_t>(tags.begin() + 25, tags.end()));
}

TEST(PrefixTags, TellSaltsApartBeyondTheWholeBlocksOfThePublicPrefix) {
  const TagKey key{5};
  const std::vector<TokenId> tokens = Tokens(64, 1);
  const auto tags_of = [&](uint64_t salt) {
    return PrefixTags(key, {.salt = {.high = 0, .low = salt}, .public_tokens = 40}, 16).Push(tokens);
  };
  const std::vector<uint32_t> one = tags_of(1), other = tags_of(2), again = tags_of(1);
  EXPECT_EQ(one, again);
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(one[i] == other[i], i < 32) << i;
}

TEST(PrefixTags, AreOthersUnderAnotherKey) {
  const std::vector<TokenId> tokens = Tokens(64, 1);
  const std::vector<uint32_t> one = PrefixTags(TagKey{1}, {}, 16).Push(tokens);
  const std::vector<uint32_t> other = PrefixTags(TagKey{2}, {}, 16).Push(tokens);
  for (size_t i = 0; i < 64; ++i) EXPECT_NE(one[i], other[i]);
  EXPECT_NE(TagOf(TagKey{1}, "session", "a"), TagOf(TagKey{2}, "session", "a"));
  EXPECT_NE(TagOf(TagKey{1}, "session", "a"), TagOf(TagKey{1}, "tenant", "a"));
}

class RequestRecordTest : public testing::Test {
 protected:
  void Create() {
    auto made = RequestRecord::Create(files_, "/record", 16, Nanos(1'000'000'000), [this] { return entropy_(); });
    ASSERT_TRUE(made.ok()) << made.status().message();
    record_ = std::move(*made);
  }
  // Closes it; its lines.
  std::vector<Json> Lines() {
    static_cast<void>(record_->Close());
    const std::vector<std::byte> bytes = files_.Contents("/record");
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::vector<Json> lines;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      EXPECT_NE(end, std::string_view::npos) << "a line has no end";
      const auto line = ParseJson(text.substr(0, end));
      EXPECT_TRUE(line.ok()) << line.status().message();
      lines.push_back(*line);
      text.remove_prefix(end + 1);
    }
    return lines;
  }

  FaultFileSystem files_;
  SplitMix64 entropy_{3};
  std::unique_ptr<RequestRecord> record_;
};

EndedRequest Ended(std::vector<TokenId> prompt, std::vector<std::vector<TokenId>> outputs) {
  EndedRequest request;
  request.submitted = Nanos(1'002'500'000);
  request.prompt = std::move(prompt);
  request.outputs = std::move(outputs);
  request.outcome = NameOf(FinishReason::kStop);
  request.cached_tokens = 16;
  request.host_tokens = 5;
  request.disk_tokens = 6;
  request.first_token = Nanos(1'102'500'000);
  request.ended = Nanos(1'202'500'000);
  request.max_tokens = 9;
  return request;
}

TEST_F(RequestRecordTest, ALineSaysWhenAndHowLongAndWhatIsShared) {
  Create();
  const std::vector<TokenId> prompt = Tokens(20, 1), answer = {1, 2, 3};
  record_->Write(Ended(prompt, {answer, {1}}));
  std::vector<TokenId> next = prompt;
  next.insert(next.end(), answer.begin(), answer.end());
  EndedRequest refused = Ended(next, {});
  refused.outcome = NameOf(RejectReason::kQueueFull);
  refused.first_token.reset();
  refused.session = SessionName{"secret-owner", "secret-session"};
  record_->Write(std::move(refused));
  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].Dump(), R"({"cachalot_record":1,"block_tokens":16,"tag_bits":32})");
  const Json& line = lines[1];
  EXPECT_EQ(*line.Find("timestamp"), Json(2));
  EXPECT_EQ(*line.Find("input_length"), Json(20));
  EXPECT_EQ(*line.Find("output_length"), Json(3));
  EXPECT_EQ(line.Find("hash_ids")->AsArray()->size(), 2u);
  EXPECT_EQ(*line.Find("outcome"), Json("stop"));
  EXPECT_EQ(*line.Find("cached_tokens"), Json(16));
  EXPECT_EQ(*line.Find("host_tokens"), Json(5));
  EXPECT_EQ(*line.Find("disk_tokens"), Json(6));
  EXPECT_EQ(line.Find("ttft_seconds")->AsNumber(), 0.1);
  EXPECT_EQ(line.Find("e2e_seconds")->AsNumber(), 0.2);
  EXPECT_EQ(*line.Find("max_tokens"), Json(9));
  EXPECT_EQ(*line.Find("n"), Json(1));
  EXPECT_EQ(line.Find("session"), nullptr);

  const Json& last = lines[2];
  EXPECT_EQ(*last.Find("outcome"), Json("queue_full"));
  EXPECT_EQ(last.Find("ttft_seconds"), nullptr);
  EXPECT_NE(last.Find("session"), nullptr);
  // The next prompt's tags are those of the first one and its answer.
  const auto tags = [](const Json& text) { return ParseBase64(*text.AsString()).value(); };
  std::vector<uint8_t> both = tags(*line.Find("tags"));
  EXPECT_EQ(both.size(), 80u);
  const std::vector<uint8_t> more = tags(line.Find("output_tags")->AsArray()->at(0));
  both.insert(both.end(), more.begin(), more.end());
  EXPECT_EQ(tags(*last.Find("tags")), both);
  EXPECT_EQ(record_->written(), 2u);
  EXPECT_EQ(record_->lost(), 0u);
}

TEST_F(RequestRecordTest, NothingOfTheContentIsInTheFile) {
  Create();
  EndedRequest request = Ended(Tokens(20, 1), {{1, 2, 3}});
  request.session = SessionName{"secret-owner", "secret-session"};
  record_->Write(std::move(request));
  EXPECT_TRUE(record_->Close().ok());
  const std::vector<std::byte> bytes = files_.Contents("/record");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(text.find("secret"), std::string::npos);
  // Another file of the same request has nothing in common with it.
  const Json line = Lines().at(1);
  EXPECT_TRUE(files_.Remove("/record").ok());
  Create();
  record_->Write(Ended(Tokens(20, 1), {{1, 2, 3}}));
  const Json other = Lines().at(1);
  EXPECT_NE(*line.Find("tags"), *other.Find("tags"));
  EXPECT_NE(*line.Find("hash_ids"), *other.Find("hash_ids"));
  EXPECT_NE(*line.Find("tenant"), *other.Find("tenant"));
}

TEST_F(RequestRecordTest, WhatDoesNotFitOnTheDiskIsCountedAndLaterLinesAreWhole) {
  Create();
  record_->Write(Ended(Tokens(20, 1), {{1}}));
  files_.Fail({.op = FileOp::kWrite, .nth = 3, .onwards = false, .code = Code::kOverloaded});
  record_->Write(Ended(Tokens(20, 2), {{1}}));
  record_->Write(Ended(Tokens(20, 3), {{1}}));
  record_->Write(Ended(Tokens(20, 4), {{1}}));
  EXPECT_FALSE(record_->Close().ok());
  EXPECT_EQ(record_->lost(), 1u);
  EXPECT_EQ(record_->written(), 3u);
  EXPECT_EQ(Lines().size(), 4u);
}

TEST_F(RequestRecordTest, AnOldFileIsNeverGoneOnWith) {
  Create();
  const auto again = RequestRecord::Create(files_, "/record", 16, Nanos(0));
  EXPECT_EQ(again.status().code(), Code::kUnavailable);
  EXPECT_FALSE(RequestRecord::Create(files_, "/no/such/folder", 16, Nanos(0)).ok());
}

}  // namespace
}  // namespace cachalot::engine
