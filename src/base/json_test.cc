#include "base/json.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "base/utf8.h"

namespace cachalot {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const Result<Json> parsed = ParseJson(text);
  if (parsed.ok()) return "accepted as " + parsed->Dump();
  EXPECT_EQ(parsed.status().code(), Code::kInvalid);
  return parsed.status().message();
}

std::string Nested(int depth, const std::string& inside) {
  return std::string(depth, '[') + inside + std::string(depth, ']');
}

TEST(ParseJson, ReadsEveryKindOfValueAndKeepsKeyOrder) {
  const Json json = ParseJson(R"( {"z":null,"a":true,"i":-7,"d":1.5,"s":"x","l":[1,[]],"o":{}} )").value();
  EXPECT_EQ(json.Dump(), R"({"z":null,"a":true,"i":-7,"d":1.5,"s":"x","l":[1,[]],"o":{}})");
  EXPECT_TRUE(json.Find("z")->is_null());
  EXPECT_TRUE(*json.Find("a")->AsBool());
  EXPECT_EQ(*json.Find("i")->AsInt(), -7);
  EXPECT_EQ(json.Find("i")->AsNumber(), -7.0);
  EXPECT_EQ(json.Find("d")->AsInt(), nullptr);
  EXPECT_EQ(json.Find("d")->AsNumber(), 1.5);
  EXPECT_EQ(*json.Find("s")->AsString(), "x");
  EXPECT_EQ(json.Find("l")->AsArray()->size(), 2u);
  EXPECT_TRUE(json.Find("o")->AsObject()->empty());
  EXPECT_EQ(json.Find("none"), nullptr);
  EXPECT_EQ(Json(1).Find("z"), nullptr);
}

TEST(ParseJson, TypeNamesAreThoseOfTheFormat) {
  EXPECT_STREQ(Json().TypeName(), "null");
  EXPECT_STREQ(Json(true).TypeName(), "boolean");
  EXPECT_STREQ(Json(1).TypeName(), "integer");
  EXPECT_STREQ(Json(1.0).TypeName(), "number");
  EXPECT_STREQ(Json("").TypeName(), "string");
  EXPECT_STREQ(Json(Json::Array()).TypeName(), "array");
  EXPECT_STREQ(Json(Json::Object()).TypeName(), "object");
}

TEST(ParseJson, IntegersPastInt64BecomeDoubles) {
  EXPECT_EQ(*ParseJson("9223372036854775807").value().AsInt(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*ParseJson("-9223372036854775808").value().AsInt(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParseJson("9223372036854775808").value().AsNumber(), 0x1p63);
  EXPECT_EQ(ParseJson("18446744073709551616").value().AsNumber(), 0x1p64);
  EXPECT_EQ(ParseJson("-9223372036854775809").value().AsNumber(), -0x1p63);
  EXPECT_EQ(ParseJson("9223372036854775808").value().AsInt(), nullptr);
}

TEST(ParseJson, ALongIntegerLeavesTheRestOfTheDocumentAlone) {
  const Json json =
      ParseJson(
          R"({"a":123456789012345678901,"\\\"1111111111111111111111":"2222222222222222222222\"33333333333333333333",)"
          R"("c":[0.4444444444444444444444,1e-00000000000000000000001,5555555555555555555555.5]})")
          .value();
  EXPECT_EQ(json.Find("a")->AsNumber(), 123456789012345678901.0);
  EXPECT_EQ(*json.Find("\\\"1111111111111111111111")->AsString(), "2222222222222222222222\"33333333333333333333");
  EXPECT_EQ((*json.Find("c")->AsArray())[0].AsNumber(), 0.4444444444444444444444);
  EXPECT_EQ((*json.Find("c")->AsArray())[1].AsNumber(), 0.1);
  EXPECT_EQ((*json.Find("c")->AsArray())[2].AsNumber(), 5555555555555555555555.5);
}

TEST(ParseJson, RefusesWhatIsNotOneWellFormedDocument) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[1,]",
                           "[1 2]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{a:1}",
                           "{'a':1}",
                           "1 2",
                           "{}x",
                           "nul",
                           "NaN",
                           "Infinity",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "1e",
                           "- 1",
                           "\"a",
                           "\"\t\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "[1]]",
                           "// c\n1",
                           "1e400",
                           "[99999999999999999999999",
                           "\xEF\xBB\xBF{}"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("invalid JSON: ")) << text;
  }
  EXPECT_THAT(ErrorOf(std::string("[1\0]", 4)), HasSubstr("invalid JSON: "));
}

TEST(ParseJson, RefusesInvalidUtf8AndHalfSurrogatePairs) {
  EXPECT_EQ(ErrorOf("{\"a\":\"\x80\"}"), "invalid JSON: not UTF-8 at byte 6");
  for (const char* half : {"\"\\ud800\"", "\"\\udc00\"", "\"\\ud83d\\u0041\"", "{\"\\udc00\":1}"}) {
    EXPECT_EQ(ErrorOf(half), "invalid JSON: a \\u escape is half of a surrogate pair");
  }
  EXPECT_EQ(*ParseJson("\"\\ud83d\\udc0b\"").value().AsString(), "\xF0\x9F\x90\x8B");
}

TEST(ParseJson, ErrorsSayWhatWasExpectedWhere) {
  EXPECT_EQ(ErrorOf(R"({"a": [1, 2)"), "invalid JSON: expected a comma or ] at byte 11");
  EXPECT_EQ(ErrorOf("[1e400]"), "invalid JSON: a number is out of range");
}

TEST(ParseJson, RefusesDuplicateKeysInSmallAndLargeObjects) {
  EXPECT_EQ(ErrorOf(R"({"b":1,"a":2,"b":3})"), "invalid JSON: duplicate key \"b\"");
  EXPECT_EQ(ErrorOf(R"([{"a":{"x":1,"\u0078":2}}])"), "invalid JSON: duplicate key \"x\"");
  std::string large = "{";
  for (int i = 0; i < 1000; ++i) large += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_TRUE(ParseJson(large + "\"z\":0}").ok());
  EXPECT_EQ(ErrorOf(large + "\"k500\":0}"), "invalid JSON: duplicate key \"k500\"");
  const std::string key(1 << 20, 'x');
  EXPECT_LT(ErrorOf("{\"" + key + "\":1,\"" + key + "\":2}").size(), 200u);
}

TEST(ParseJson, NestingIsLimitedExactly) {
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth, "1")).ok());
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth, "")).ok());
  EXPECT_TRUE(ParseJson(Nested(kMaxJsonDepth - 1, "{}")).ok());
  for (const char* inside : {"1", "", "{}", "[1]"}) {
    EXPECT_EQ(ErrorOf(Nested(kMaxJsonDepth + 1, inside)), "invalid JSON: nesting is deeper than 128");
  }
  EXPECT_EQ(ErrorOf(Nested(kMaxJsonDepth, "{}")), "invalid JSON: nesting is deeper than 128");
  EXPECT_EQ(ErrorOf(std::string(1 << 20, '[')).substr(0, 14), "invalid JSON: ");
}

TEST(JsonWriter, PlacesCommasAndEscapes) {
  std::string out;
  JsonWriter writer(&out);
  writer.BeginObject().Key("a").BeginArray().Int(-1).UInt(18446744073709551615u).Null().EndArray();
  writer.Key("b\"").String("\x01\b\f\n\r\t\"\\/\x7F\xC3\xA9").Key("c").BeginObject().EndObject();
  writer.Key("d").Bool(false).EndObject();
  EXPECT_EQ(out,
            "{\"a\":[-1,18446744073709551615,null],\"b\\\"\":\"\\u0001\\b\\f\\n\\r\\t\\\"\\\\/\x7F\xC3\xA9\",\"c\":{},"
            "\"d\":false}");
}

TEST(JsonWriter, InvalidUtf8BecomesTheReplacementCharacter) {
  std::string out;
  JsonWriter(&out).String("a\xFF\xC3");
  EXPECT_EQ(out, "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonWriter, NumbersAreShortestAndStayNumbersWhenReadBack) {
  const auto written = [](auto value) {
    std::string out;
    if constexpr (std::is_same_v<decltype(value), float>) {
      JsonWriter(&out).Float(value);
    } else {
      JsonWriter(&out).Double(value);
    }
    return out;
  };
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(0.1f), "0.1");
  EXPECT_EQ(written(-1.0), "-1.0");
  EXPECT_EQ(written(-0.0), "-0.0");
  EXPECT_EQ(written(1e300), "1e+300");
  EXPECT_EQ(written(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(written(-std::numeric_limits<float>::infinity()), "null");
  SplitMix64 random(3);
  for (int i = 0; i < 5'000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(std::bit_cast<uint64_t>(*ParseJson(written(value)).value().AsNumber()), std::bit_cast<uint64_t>(value));
    const float narrow = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isfinite(narrow)) continue;
    ASSERT_EQ(static_cast<float>(*ParseJson(written(narrow)).value().AsNumber()), narrow);
  }
}

Json RandomJson(SplitMix64* random, int depth) {
  switch (random->Below(depth > 0 ? 7 : 5)) {
    case 0: return {};
    case 1: return random->Below(2) == 0;
    case 2: return static_cast<int64_t>((*random)());
    case 3: return random->Uniform() * 1e6 - 5e5;
    case 4: {
      std::string text;
      for (uint64_t n = random->Below(12); n > 0; --n) AppendUtf8(&text, static_cast<char32_t>(random->Below(0x11000)));
      return text;
    }
    case 5: {
      Json::Array array;
      for (uint64_t n = random->Below(5); n > 0; --n) array.push_back(RandomJson(random, depth - 1));
      return array;
    }
    default: {
      Json::Object object;
      for (uint64_t n = random->Below(20); n > 0; --n) {
        object.emplace_back("k" + std::to_string(n), RandomJson(random, depth - 1));
      }
      return object;
    }
  }
}

TEST(Json, WrittenValuesReadBackEqualAndAnotherParserAgrees) {
  SplitMix64 random(11);
  for (int round = 0; round < 300; ++round) {
    const Json json = RandomJson(&random, 5);
    const std::string text = json.Dump();
    ASSERT_EQ(ParseJson(text).value(), json) << text;
    ASSERT_EQ(nlohmann::ordered_json::parse(text).dump(),
              nlohmann::ordered_json::parse(ParseJson(text)->Dump()).dump());
  }
}

// Cutting or changing a byte must never do worse than an error, and we accept nothing that the other parser refuses.
TEST(Json, DamagedTextIsRefusedOrReadAsAnotherParserReadsIt) {
  SplitMix64 random(13);
  for (int round = 0; round < 1000; ++round) {
    std::string text = RandomJson(&random, 4).Dump();
    text[random.Below(text.size())] = static_cast<char>("\"\\{}[],:0e-.\x80 "[random.Below(15)]);
    const Result<Json> parsed = ParseJson(text);
    ASSERT_TRUE(!parsed.ok() || nlohmann::json::accept(text)) << text;
  }
}

}  // namespace
}  // namespace cachalot
