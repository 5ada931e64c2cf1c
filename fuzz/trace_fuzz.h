// What the fuzzers of trace formats have in common: any bytes are a trace that keeps its promises, or an error that
// says why not; with bad lines skipped too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "sim/read_trace.h"
#include "sim/trace_text.h"

namespace cachalot::sim {

inline void CheckTrace(const Trace& trace) {
  Nanos before{0};
  for (const TraceRequest& request : trace.requests) {
    CACHALOT_CHECK(request.arrival >= before);
    before = request.arrival;
    CACHALOT_CHECK(request.blocks.size() == (request.input_tokens + trace.block_tokens - 1) / trace.block_tokens);
    const size_t words = WordsOf(trace, request).size();
    CACHALOT_CHECK(words >= request.input_tokens && words <= request.input_tokens + request.output_tokens);
  }
  const std::string text = FormatTrace(trace);
  const Result<TraceFile> again = ReadTrace(text, {.format = "mooncake", .block_tokens = trace.block_tokens});
  CACHALOT_CHECK(again.ok() && FormatTrace(again->trace) == text);
}

inline void FuzzTrace(const uint8_t* data, size_t size, const std::string& format, const std::string& reuse) {
  for (const bool skip_bad : {false, true}) {
    const Result<TraceFile> file =
        ReadTrace({reinterpret_cast<const char*>(data), size}, {.format = format,
                                                                .skip_bad = skip_bad,
                                                                .sort = skip_bad,
                                                                .reuse = reuse,
                                                                .block_tokens = 16,
                                                                .limits = {.least_tokens = 0, .most_tokens = 10'000}});
    if (file.ok()) {
      CheckTrace(file->trace);
    } else {
      CACHALOT_CHECK(file.status().code() == Code::kInvalid);
      CACHALOT_CHECK(FindInvalidUtf8(file.status().message()) == std::string_view::npos);
    }
  }
}

}  // namespace cachalot::sim
