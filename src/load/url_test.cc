#include "load/url.h"

#include <gtest/gtest.h>

namespace cachalot::load {
namespace {

TEST(Url, AnAddressWithoutPathMeansTheFirstVersionOfTheApi) {
  const Result<Url> url = ParseUrl("http://localhost:8080/");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url.value().host, "localhost");
  EXPECT_EQ(url.value().port, "8080");
  EXPECT_EQ(url.value().path, "/v1");
}

TEST(Url, PathsPortsAndIpv6) {
  EXPECT_EQ(ParseUrl("http://h/a/b/").value().path, "/a/b");
  EXPECT_EQ(ParseUrl("http://h").value().Authority(), "h:80");
  EXPECT_EQ(ParseUrl("http://[::1]:9/v1").value().host, "::1");
  EXPECT_EQ(ParseUrl("http://[::1]:9/v1").value().Authority(), "[::1]:9");
}

TEST(Url, HttpsIsRefusedByName) {
  const Status status = ParseUrl("https://example.org").status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("https is not supported"), std::string::npos);
}

TEST(Url, WhatIsNoAddressIsRefused) {
  for (const char* text : {"", "localhost:8080", "ftp://h", "http://", "http://:80", "http://h:0", "http://h:65536",
                           "http://h:8x", "http://h:", "http://[::1", "http://[::1]8", "http://u@h", "http://h?x",
                           "http://h#x", "http://h/a b", "http://h/\r\nX: y"}) {
    EXPECT_EQ(ParseUrl(text).status().code(), Code::kInvalid) << text;
  }
}

}  // namespace
}  // namespace cachalot::load
