#include "base/base64.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot {
namespace {

std::vector<uint8_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

TEST(Base64, IsThatOfTheRfc) {
  const std::pair<std::string_view, std::string_view> cases[] = {{"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"},
                                                                 {"\xfb\xff", "+/8="}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(FormatBase64(Bytes(bytes)), text);
    EXPECT_EQ(ParseBase64(text), Bytes(bytes));
  }
}

TEST(Base64, NothingElseIsParsed) {
  for (const std::string_view text :
       {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "=", "Zm 9", "Zg==Zg==", "Zm9v\n", "Zm-_", "Zg=v"}) {
    EXPECT_FALSE(ParseBase64(text)) << text;
  }
}

TEST(Base64, RandomBytesComeBack) {
  SplitMix64 random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<uint8_t> bytes(random.Below(50));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    EXPECT_EQ(ParseBase64(FormatBase64(bytes)), bytes);
  }
}

}  // namespace
}  // namespace cachalot
