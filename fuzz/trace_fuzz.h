// What the fuzzers of trace formats have in common: any bytes are a trace that keeps its promises, or an error that
// says why not; with bad lines skipped too. Read as it is replayed it is the same trace, or the same error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "sim/block_replay.h"
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

inline void CheckStream(std::string_view text, const ReadTraceOptions& options, const Result<TraceFile>& whole) {
  const BlockReplayOptions options_of_replay{.capacity_blocks = 20,
                                             .ghosts_per_block = uint64_t{1} << 20};  // forgets nothing
  BlockReplay replay = BlockReplay::Make(options_of_replay).value();
  const auto replayed = [&](const TraceRequest& request, uint32_t tokens) { return replay.Take(request, tokens); };
  const Result<TraceFacts> facts = StreamTrace(text, options, replayed);
  CACHALOT_CHECK(facts.ok() == whole.ok());
  if (!facts.ok()) {
    CACHALOT_CHECK(facts.status().message() == whole.status().message());
    return;
  }
  CACHALOT_CHECK(facts->requests == whole->trace.requests.size());
  CACHALOT_CHECK(facts->skipped_lines == whole->facts.skipped_lines);
  CACHALOT_CHECK(facts->first_skipped == whole->facts.first_skipped);
  CACHALOT_CHECK(replay.Finish()->hit_blocks == ReplayBlocks(whole->trace, options_of_replay)->hit_blocks);
}

inline void FuzzTrace(const uint8_t* data, size_t size, const std::string& format, const std::string& reuse) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool skip_bad : {false, true}) {
    const ReadTraceOptions options{.format = format,
                                   .skip_bad = skip_bad,
                                   .sort = skip_bad,
                                   .reuse = reuse,
                                   .block_tokens = 16,
                                   .limits = {.least_tokens = 0, .most_tokens = 10'000}};
    const Result<TraceFile> file = ReadTrace(text, options);
    CheckStream(text, options, file);
    if (file.ok()) {
      CheckTrace(file->trace);
    } else {
      CACHALOT_CHECK(file.status().code() == Code::kInvalid);
      CACHALOT_CHECK(FindInvalidUtf8(file.status().message()) == std::string_view::npos);
    }
  }
}

}  // namespace cachalot::sim
