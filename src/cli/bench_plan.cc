#include "cli/bench_plan.h"

#include <algorithm>

#include <fmt/format.h>

namespace cachalot::cli {
namespace {

Status CheckOptions(const BenchOptions& options) {
  const auto has_zero = [](const std::vector<uint32_t>& list) { return std::ranges::count(list, 0u) > 0; };
  if (options.repetitions == 0) return Invalid("--repetitions must be at least 1");
  if (has_zero(options.concurrency)) return Invalid("--concurrency must be at least 1");
  if (has_zero(options.step_rows)) return Invalid("--step-rows must be at least 1");
  return OkStatus();
}

// The tests of one place: what is timed there.
std::vector<BenchRow> TestsOf(const BenchOptions& options, const BenchRow& place) {
  std::vector<BenchRow> rows;
  const auto add = [&](BenchTest test, uint32_t prompt, uint32_t output) {
    BenchRow row = place;
    row.test = test;
    row.prompt = prompt;
    row.output = output;
    row.shared = options.shared_prefix && test == BenchTest::kDecode;
    rows.push_back(row);
  };
  if (options.combined) {
    for (const uint32_t prompt : options.prefill) {
      for (const uint32_t output : options.decode) {
        if (prompt != 0 && output != 0 && place.depth == 0) add(BenchTest::kCombined, prompt, output);
      }
    }
    return rows;
  }
  for (const uint32_t prompt : options.prefill) {
    if (prompt != 0 && (place.depth == 0 || place.sequences == 1)) add(BenchTest::kPrefill, prompt, 0);
  }
  for (const uint32_t output : options.decode) {
    if (output != 0) add(BenchTest::kDecode, 0, output);
  }
  return rows;
}

}  // namespace

const char* BenchTestName(BenchTest test) {
  switch (test) {
    case BenchTest::kPrefill: return "prefill";
    case BenchTest::kDecode: return "decode";
    case BenchTest::kCombined: return "combined";
  }
  return "";
}

Result<std::vector<BenchRow>> PlanBench(const BenchOptions& options) {
  CACHALOT_RETURN_IF_ERROR(CheckOptions(options));
  std::vector<BenchRow> rows;
  BenchRow place;
  for (const uint32_t threads : options.threads) {
    for (const uint32_t step_rows : options.step_rows) {
      for (const uint32_t sequences : options.concurrency) {
        for (const uint32_t depth : options.depth) {
          place.threads = threads;
          place.step_rows = step_rows;
          place.sequences = sequences;
          place.depth = depth;
          for (BenchRow& row : TestsOf(options, place)) rows.push_back(std::move(row));
        }
      }
    }
  }
  for (const BenchRow& row : rows) {
    // Else one step would hold the last tokens of the depth and the first timed ones.
    if (row.test != BenchTest::kPrefill || row.depth % row.step_rows == 0) continue;
    return Invalid(fmt::format("prefill at --depth {}: expected a multiple of --step-rows ({}), or --prefill 0",
                               row.depth, row.step_rows));
  }
  if (rows.empty()) return Invalid("nothing to measure: --prefill and --decode leave no row");
  return rows;
}

BenchRequests RequestsOf(const BenchRow& row) {
  switch (row.test) {
    case BenchTest::kPrefill: return {row.depth + row.prompt, 1, row.sequences, 1};
    case BenchTest::kCombined: return {row.prompt, row.output, row.sequences, 1};
    case BenchTest::kDecode: break;
  }
  const uint32_t prompt = std::max(row.depth, 1u);
  if (row.shared) return {prompt, row.output + uint64_t{1}, 1, row.sequences};
  const uint64_t stagger = (uint64_t{prompt} / row.step_rows + 2) * row.sequences;
  return {prompt, row.output + stagger, row.sequences, 1};
}

KvNeed KvNeedOf(const BenchRow& row) {
  const BenchRequests asked = RequestsOf(row);
  return {asked.prompt_tokens, asked.prompt_tokens + asked.max_tokens, asked.choices, asked.requests};
}

}  // namespace cachalot::cli
