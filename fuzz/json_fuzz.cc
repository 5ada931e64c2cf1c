// Any bytes: parsing never fails but with kInvalid, and what was read is written and read back the same.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using cachalot::Json;
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  const cachalot::Result<Json> parsed = cachalot::ParseJson(text);
  if (!parsed.ok()) {
    CACHALOT_CHECK(parsed.status().code() == cachalot::Code::kInvalid);
    CACHALOT_CHECK(cachalot::FindInvalidUtf8(parsed.status().message()) == std::string_view::npos);
    return 0;
  }
  const std::string written = parsed->Dump();
  CACHALOT_CHECK(cachalot::FindInvalidUtf8(written) == std::string_view::npos);
  const cachalot::Result<Json> again = cachalot::ParseJson(written);
  CACHALOT_CHECK(again.ok() && *again == *parsed && again->Dump() == written);
  return 0;
}
