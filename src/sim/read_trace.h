// ReadTrace reads the requests that serving systems publish, record or log: whole, or one after the other.
// Threads:   pure functions, but that those of files read them.
// Ownership: none.
// Invariant: what Trace promises holds of what was read, or an error says which line, which field, and what was
// expected.
//            The text of requests is not kept: words stand for it (trace_text.h).
// Cost:      linear in the text; memory linear in what the trace holds, and one line. Of requests that are given one
// after
//            the other: in one line, and in what --reuse remembers; where they must be sorted first, in their blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sim/trace.h"

namespace cachalot::sim {

// What a request of a trace may count, of input and of output.
struct TraceLimits {
  uint64_t least_tokens = 0;
  uint64_t most_tokens = uint64_t{1} << 24;
};

// One word per token of a text.
using WordsOfText = std::function<std::vector<uint32_t>(std::string_view text)>;

struct ReadTraceOptions {
  std::string format;
  bool skip_bad = false;
  bool sort = false;
  double longest_gap = 604'800;
  std::string reuse;
  std::string time_unit;
  template <class F>
  void Visit(F&& f) {
    f("format", format,
      "Of TRACE: mooncake, record, azure, burstgpt or requests; empty: what its first line looks like.");
    f("skip-bad", skip_bad, "Lines of TRACE that make no sense are skipped and counted.");
    f("sort", sort, "Puts the requests of TRACE in order of their time; without it they must be.");
    f("longest-gap", longest_gap, "Seconds between two requests of TRACE beyond which its clock must have jumped.");
    f("reuse", reuse,
      "What requests of an azure or burstgpt TRACE have in common, which it does not say: none, system:TOKENS, "
      "chat:SHARE or session.");
    f("time-unit", time_unit, "Of times that are numbers in a requests TRACE: s, ms, us or ns.");
  }

  // Of the trace that is made; of a mooncake trace: what its ids stand for. 0: 16 for logs, what a record's heading
  // says for records, else 512.
  uint32_t block_tokens = 0;
  uint64_t seed = 1;  // of the reuse
  TraceLimits limits;
  WordsOfText words_of_text;  // of logs that hold text; empty: about as many as a tokenizer makes of English
};

struct TraceFacts {
  std::string_view format;
  uint32_t block_tokens = 0;
  uint64_t requests = 0;
  uint64_t skipped_lines = 0;
  std::string first_skipped;  // what was wrong there
};

struct TraceFile {
  Trace trace;
  TraceFacts facts;
};

std::span<const std::string_view> TraceFormatNames();
inline constexpr std::string_view kRecordFormat = "record";  // of `cachalot serve --record`

// kInvalid also for a trace without requests.
Result<TraceFile> ReadTrace(std::string_view text, const ReadTraceOptions& options);
// The same of a file, which the message names.
Result<TraceFile> ReadTraceFile(const std::string& path, const ReadTraceOptions& options);

// The sink gets each request, but for the text of those that would have to be kept; what it refuses is wrong with the
// line. Of the ids of a mooncake trace only those within a request are looked at: whether they follow what they
// followed before is for the sink to see.
Result<TraceFacts> StreamTrace(std::string_view text, const ReadTraceOptions& options, const RequestSink& sink);
Result<TraceFacts> StreamTraceFile(const std::string& path, const ReadTraceOptions& options, const RequestSink& sink);

}  // namespace cachalot::sim
