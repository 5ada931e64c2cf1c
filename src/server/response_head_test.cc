#include "server/response_head.h"

#include <gtest/gtest.h>

namespace cachalot::server {
namespace {

TEST(ResponseHead, SaysWhatTheResponseIs) {
  HttpResponse response;
  response.status = 429;
  response.headers = {{"Retry-After", "1"}};
  const std::string head =
      FormatHead(response, {.content_length = 7, .date = "Sun, 06 Nov 1994 08:49:37 GMT", .cors_origin = "*"});
  EXPECT_EQ(head,
            "HTTP/1.1 429 Too Many Requests\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Type: application/json\r\nContent-Length: 7\r\n"
            "Access-Control-Allow-Origin: *\r\nRetry-After: 1\r\n\r\n");
}

TEST(ResponseHead, TellsHowTheConnectionGoesOn) {
  const HttpResponse response;
  EXPECT_NE(FormatHead(response, {.keep_alive = false}).find("Connection: close\r\n"), std::string::npos);
  EXPECT_NE(FormatHead(response, {.http_1_1 = false}).find("Connection: keep-alive\r\n"), std::string::npos);
  EXPECT_EQ(FormatHead(response, {}).find("Connection"), std::string::npos);
  EXPECT_NE(FormatHead(response, {.chunked = true}).find("Transfer-Encoding: chunked\r\n"), std::string::npos);
}

TEST(ResponseHead, HeaderValuesCannotBreakTheLine) {
  HttpResponse response;
  response.headers = {{"X-Test", "a\r\nInjected: yes\x7f"}};
  EXPECT_NE(FormatHead(response, {}).find("X-Test: aInjected: yes\r\n"), std::string::npos);
}

TEST(ResponseHead, DatesAreThoseOfHttp) {
  EXPECT_EQ(HttpDate(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(HttpDate(1709164800), "Thu, 29 Feb 2024 00:00:00 GMT");
  DateCache cache;
  EXPECT_EQ(cache.At(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(cache.At(1), "Thu, 01 Jan 1970 00:00:01 GMT");
}

TEST(ResponseHead, EveryStatusThatIsUsedHasAReason) {
  for (const int status : {200, 204, 400, 401, 404, 405, 408, 411, 413, 417, 429, 431, 500, 501, 503, 505}) {
    EXPECT_NE(ReasonPhrase(status), "Unknown") << status;
  }
}

}  // namespace
}  // namespace cachalot::server
