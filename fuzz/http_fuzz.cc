// Any bytes on a connection: all that the reader says about them, its errors included, is the same however they are cut
// into pieces, and nothing stays charged.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "server/request_reader.h"

namespace {

using cachalot::server::BodyBudget;
using cachalot::server::HttpRequest;
using cachalot::server::RequestReader;

constexpr uint64_t kBodyLimit = 1 << 12;
constexpr size_t kComparedBytes = 1 << 12;

std::string Described(const RequestReader& reader, const HttpRequest& request) {
  return request.method_name + " " + request.target + " " + request.authorization + " " + request.cors_headers + " " +
         request.body + (request.has_length ? " length" : "") + (reader.http_1_1() ? " 1.1" : " 1.0") +
         (reader.keep_alive() ? " keep" : " close");
}

// All that the reader says about the bytes when they come in pieces of so many.
std::vector<std::string> Read(std::string_view bytes, size_t piece_bytes, BodyBudget& budget) {
  std::vector<std::string> said;
  RequestReader reader(kBodyLimit, &budget);
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, piece_bytes);
    bytes.remove_prefix(piece.size());
    reader.Feed(piece);
    RequestReader::Event event;
    while ((event = reader.Next()) != RequestReader::Event::kNeedMore) {
      if (event == RequestReader::Event::kError) {
        CACHALOT_CHECK(reader.error().status >= 400 && reader.error().status < 600);
        CACHALOT_CHECK(budget.used_bytes() == 0);
        said.push_back(std::to_string(reader.error().status) + " " + reader.error().message);
        return said;
      }
      if (event == RequestReader::Event::kWantsBody) {
        said.emplace_back("100");
      } else {
        const HttpRequest request = reader.TakeRequest();
        CACHALOT_CHECK(request.body.size() <= kBodyLimit);
        CACHALOT_CHECK(budget.used_bytes() == request.body.size());
        said.push_back(Described(reader, request));
      }
    }
    CACHALOT_CHECK(budget.used_bytes() <= kBodyLimit);
    if (reader.idle()) CACHALOT_CHECK(budget.used_bytes() == 0);
  }
  said.emplace_back(reader.idle() ? "idle" : reader.in_body() ? "in body" : "in head");
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  if (bytes < 2) return 0;
  std::string text(reinterpret_cast<const char*>(data) + 1, bytes - 1);
  // A head that comes in pieces is judged when its empty line has come; one that comes at once may be refused at its
  // first bad line. The empty line at the end makes both judge all that they were given. Longer heads meet limits of
  // bytes that wait, which only pieces do.
  text += "\r\n\r\n";
  BodyBudget budget(1 << 16);
  const std::vector<std::string> whole = Read(text, text.size(), budget);
  CACHALOT_CHECK(budget.used_bytes() == 0);
  const std::vector<std::string> pieces = Read(text, 1 + data[0] % 64, budget);
  CACHALOT_CHECK(budget.used_bytes() == 0);
  // Of a quoted chunk extension, which is refused, the reader may still wait for more when another way of cutting has
  // shown its end.
  const bool quoted_extension = text.find(';') < text.rfind('"') && text.rfind('"') != std::string::npos;
  CACHALOT_CHECK(whole == pieces || quoted_extension || text.size() > kComparedBytes);
  return 0;
}
