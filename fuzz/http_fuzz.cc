// Any bytes on a connection: the requests that are read do not depend on how the bytes are cut into pieces (when an
// error is seen, and which, may), and nothing stays charged.
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

// The requests, and the answers to those that wait for one, when the bytes come in pieces of so many.
std::vector<std::string> Read(std::string_view bytes, size_t piece_bytes) {
  BodyBudget budget(1 << 16);
  std::vector<std::string> said;
  {
    RequestReader reader(1 << 12, &budget);
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, piece_bytes);
      bytes.remove_prefix(piece.size());
      reader.Feed(piece);
      for (;;) {
        const RequestReader::Event event = reader.Next();
        if (event == RequestReader::Event::kNeedMore) break;
        if (event == RequestReader::Event::kWantsBody) {
          said.push_back("100");
          continue;
        }
        if (event == RequestReader::Event::kError) {
          CACHALOT_CHECK(reader.error().status >= 400 && reader.error().status < 600);
          return said;
        }
        const HttpRequest request = reader.TakeRequest();
        CACHALOT_CHECK(request.body.size() <= size_t{1} << 12);
        said.push_back(request.method_name + " " + request.target + " " + request.body +
                       (reader.keep_alive() ? " keep" : " close"));
      }
    }
  }
  CACHALOT_CHECK(budget.used_bytes() == 0);
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  if (bytes < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, bytes - 1);
  const std::vector<std::string> whole = Read(text, text.size());
  const std::vector<std::string> pieces = Read(text, 1 + data[0] % 64);
  CACHALOT_CHECK(whole == pieces);
  return 0;
}
