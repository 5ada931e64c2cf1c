// BenchPlan turns the flags of `cachalot bench` into the rows that are measured, and says what KV they need.
// Threads:   pure functions over values.
// Ownership: none.
// Invariant: rows of equal threads and step rows stand side by side, so that a model is loaded once for each.
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/loaded_model.h"

namespace cachalot::cli {

struct BenchOptions {
  std::vector<uint32_t> prefill = {512};
  std::vector<uint32_t> decode = {64};
  bool combined = false;
  std::vector<uint32_t> depth = {0};
  std::vector<uint32_t> concurrency = {1};
  bool shared_prefix = false;
  std::vector<uint32_t> threads = {0};
  std::vector<uint32_t> step_rows = {512};
  uint32_t repetitions = 3;
  uint32_t warm_up = 1;
  std::string format = "table";
  template <class F>
  void Visit(F&& f) {
    f("prefill", prefill, "Prompt lengths to measure, separated by commas as in all lists here; 0: none.");
    f("decode", decode, "Output lengths to measure; 0: none.");
    f("combined", combined, "Measure prompt and output together instead, every prefill with every decode length.");
    f("depth", depth,
      "Tokens already in the KV cache when the measurement begins; for prefill a multiple of --step-rows.");
    f("concurrency", concurrency, "Sequences at once. Prefill at a depth is measured with one sequence only.");
    f("shared-prefix", shared_prefix, "Decode: the sequences are forks of one prompt and share its KV blocks.");
    f("threads", threads, "Compute threads; 0: one per usable processor.");
    f("step-rows", step_rows, "Batch size: most rows (tokens) computed in one step.");
    f("repetitions", repetitions, "Measurements of each row; the median counts.");
    f("warm-up", warm_up, "Measurements before those, which do not count.");
    f("format", format, "table, markdown, csv or json.");
  }
};

enum class BenchTest : uint8_t { kPrefill, kDecode, kCombined };
const char* BenchTestName(BenchTest test);  // "prefill", "decode", "combined"

struct BenchRow {
  BenchTest test = BenchTest::kPrefill;
  uint32_t prompt = 0;     // tokens of each sequence's prompt that are timed
  uint32_t output = 0;     // tokens of each sequence's output that are timed
  uint32_t depth = 0;      // tokens in its KV before
  uint32_t sequences = 1;  // at once
  bool shared = false;     // they are forks of one prompt of `depth` tokens
  uint32_t threads = 0;
  uint32_t step_rows = 512;
  std::vector<double> rates;  // one per repetition, tokens/s of all sequences together
};

// The requests that measure a row. Sequences that answer early decode on while late ones are in their prompts: what is
// asked for is more than what is timed.
struct BenchRequests {
  uint32_t prompt_tokens = 0;
  uint64_t max_tokens = 0;
  uint32_t requests = 1;
  uint32_t choices = 1;  // of each
};

// kInvalid, naming the flag, for values that measure nothing.
Result<std::vector<BenchRow>> PlanBench(const BenchOptions& options);
BenchRequests RequestsOf(const BenchRow& row);
KvNeed KvNeedOf(const BenchRow& row);

}  // namespace cachalot::cli
