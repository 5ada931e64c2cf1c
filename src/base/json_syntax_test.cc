#include "base/json_syntax.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"

namespace cachalot {
namespace {

std::string Found(std::string_view text) {
  const std::optional<JsonSyntaxError> error = FindJsonSyntaxError(text);
  return error ? std::to_string(error->offset) + ": " + error->expected : "";
}

TEST(FindJsonSyntaxError, FindsNothingInJson) {
  for (const char* text : {"1", " -0.5e+3 ", "\"\\u00e9\\n\"", "[]", "{ }", "[ [ ] , { } ]", "[1, 2,\n3]",
                           R"({"a":{"b":[null,true,false]},"c":""})", "0", "[0]", "1E5"}) {
    EXPECT_EQ(Found(text), "") << text;
  }
}

TEST(FindJsonSyntaxError, PointsAtTheFirstByteThatDoesNotFit) {
  EXPECT_EQ(Found(""), "0: a value");
  EXPECT_EQ(Found("  "), "2: a value");
  EXPECT_EQ(Found("[1,]"), "3: a value");
  EXPECT_EQ(Found("[1 2]"), "3: a comma or ]");
  EXPECT_EQ(Found("[1"), "2: a comma or ]");
  EXPECT_EQ(Found("{\"a\" 1}"), "5: a colon");
  EXPECT_EQ(Found("{\"a\":}"), "5: a value");
  EXPECT_EQ(Found("{\"a\":1,}"), "7: a key in double quotes");
  EXPECT_EQ(Found("{a:1}"), "1: a key in double quotes");
  EXPECT_EQ(Found("{\"a\":1]"), "6: a comma or }");
  EXPECT_EQ(Found("{"), "1: a key in double quotes");
  EXPECT_EQ(Found("{} x"), "3: the end of the text");
  EXPECT_EQ(Found("[1]]"), "3: the end of the text");
  EXPECT_EQ(Found("01"), "1: the end of the text");
  EXPECT_EQ(Found("[1.]"), "3: a digit");
  EXPECT_EQ(Found("[-x]"), "2: a digit");
  EXPECT_EQ(Found("1e"), "2: a digit");
  EXPECT_EQ(Found("\"abc"), "4: a closing quote");
  EXPECT_EQ(Found("\"a\nb\""), "2: an escape instead of a control character");
  EXPECT_EQ(Found("\"\\x\""), "2: one of \"\\/bfnrtu after a backslash");
  EXPECT_EQ(Found("\"\\u12\""), "5: four hexadecimal digits after \\u");
  EXPECT_EQ(Found("[nul]"), "1: a value");
  EXPECT_EQ(Found(std::string_view("[1\0]", 4)), "2: a comma or ]");
}

TEST(FindJsonSyntaxError, DeepNestingIsScannedWithoutRecursion) {
  const std::string opening(1 << 20, '[');
  EXPECT_EQ(Found(opening), "1048576: a value");
  EXPECT_EQ(Found(opening + "1" + std::string(1 << 20, ']')), "");
}

TEST(FindJsonSyntaxError, AgreesWithAnotherParserOnRandomText) {
  constexpr std::string_view kPieces[] = {"{", "}", "[", "]",  ",",  ":",    "\"a\"", "\"",
                                          "1", "-", "0", ".5", "e-", "null", " "};
  SplitMix64 random(5);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (uint64_t n = random.Below(8); n > 0; --n) text += kPieces[random.Below(std::size(kPieces))];
    ASSERT_EQ(!FindJsonSyntaxError(text), nlohmann::json::accept(text)) << text;
    accepted += nlohmann::json::accept(text);
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace cachalot
