// Any bytes as a server's metrics: an error in UTF-8 that says why not, or series that can be looked up.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/exposition.h"
#include "base/scrape.h"
#include "base/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cachalot;  // NOLINT
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Exposition> exposition = ParseExposition(text);
  const Result<Scrape> scrape = Scrape::Read(text);
  if (!exposition.ok()) CACHALOT_CHECK(exposition.status().code() == Code::kInvalid && !scrape.ok());
  if (!scrape.ok()) CACHALOT_CHECK(FindInvalidUtf8(scrape.status().message()) == std::string_view::npos);
  if (exposition.ok()) {
    const std::optional<BucketCounts> counts = exposition->FindBuckets("h");
    if (counts) {
      CACHALOT_CHECK(counts->counts.size() == counts->bounds.size() + 1);
      for (const double count : counts->counts) CACHALOT_CHECK(count >= 0);
      for (const double share : {0.0, 0.5, 1.0}) {
        if (const auto range = counts->Quantile(share)) CACHALOT_CHECK(range->above <= range->up_to);
      }
    }
  }
  if (scrape.ok()) CACHALOT_CHECK(Scrape::Between(*scrape, *scrape).ok());
  return 0;
}
