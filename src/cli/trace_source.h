// TraceSource says which requests a command is about: those of a file, or made-up ones.
// Threads:   plain data; LoadTrace and StreamTrace read files.
// Ownership: none.
// Invariant: each setting is declared once (base/options.h). Equal settings and files give equal traces.
// Cost:      that of sim/read_trace.h and sim/workload.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/status.h"
#include "cli/option_rules.h"
#include "sim/read_trace.h"
#include "sim/workload.h"

namespace cachalot::cli {

struct TraceSource {
  std::string path;  // of TRACE, which stands on the command line by its place
  std::string workload;
  uint32_t requests = 10'000;
  uint64_t seed = 1;
  uint32_t block_tokens = 0;
  std::string tokenizer;
  sim::ReadTraceOptions read;
  template <class F>
  void Visit(F&& f) {
    f("workload", workload,
      fmt::format("Instead of TRACE, generated requests: {}.", fmt::join(sim::WorkloadNames(), ", ")));
    f("requests", requests, "How many are generated.");
    f("seed", seed, "Of the generated requests, and of --reuse.");
    f("block-tokens", block_tokens,
      "Tokens per block of the trace; 0: 16 for logs, what a record's heading says for records, else 512.");
    read.Visit(f);
    f("tokenizer", tokenizer,
      "Model, by path or catalogue name, that makes tokens of the text in a requests TRACE; empty: they are "
      "estimated.");
  }
};

inline constexpr const char* kTraceHelp =
    "requests: a Mooncake trace, a record of `serve --record`, Azure's or BurstGPT's CSV, or a log of requests as JSON "
    "lines";

// Which of these settings count with a file, and which with a workload.
std::vector<OptionRule> TraceRules();

// Whether a setting of that name changes the trace.
bool ChangesTrace(std::string_view name);

// kInvalid unless there is either a path or a workload. The format of a workload is its name.
Result<sim::TraceFile> LoadTrace(const TraceSource& source);
// The same, one request after the other, none of which is kept (sim/read_trace.h).
Result<sim::TraceFacts> StreamTrace(const TraceSource& source, const sim::RequestSink& sink);

// A line about what was read: format, requests.
std::string DescribeTrace(const TraceSource& source, const sim::TraceFacts& facts);
// How many lines were skipped, and why the first; empty: none.
std::string DescribeSkipped(const sim::TraceFacts& facts);
// Both.
std::string Describe(const TraceSource& source, const sim::TraceFacts& facts);

}  // namespace cachalot::cli
