#include "base/hmac.h"

#include <algorithm>
#include <string_view>

#include <gtest/gtest.h>

namespace cachalot {
namespace {

Digest MacOf(const MacKey& key, std::string_view text) {
  HmacSha256 mac(key);
  mac.Update(std::as_bytes(std::span(text)).first(text.size() / 2));
  mac.Update(std::as_bytes(std::span(text)).subspan(text.size() / 2));
  return mac.Finish();
}

// RFC 4231, test cases 1 and 2: a shorter key is filled with zeros.
TEST(HmacSha256, GivesThePublishedValues) {
  MacKey first{};
  std::fill_n(first.begin(), 20, uint8_t{0x0b});
  EXPECT_EQ(HexOf(MacOf(first, "Hi There")), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  MacKey second{'J', 'e', 'f', 'e'};
  EXPECT_EQ(HexOf(MacOf(second, "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(HmacSha256, ComparesAllOfADigest) {
  Digest a{}, b{};
  EXPECT_TRUE(SameDigest(a, b));
  b[31] = 1;
  EXPECT_FALSE(SameDigest(a, b));
}

}  // namespace
}  // namespace cachalot
