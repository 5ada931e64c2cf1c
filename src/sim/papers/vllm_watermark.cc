// A share of the pool that is kept free at admission against none, in the setting that vLLM measured.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "sim/papers/closed_loop.h"
#include "sim/papers/papers.h"

namespace cachalot::sim {
namespace {

// 450 prompts of 800 to 1,200 tokens with answers of 4,000 to 6,000, 128 at once, on 299,584 tokens of KV.
ClosedLoopOptions Setting(uint64_t seed) {
  ClosedLoopOptions options;
  SplitMix64 random(seed);
  for (int i = 0; i < 450; ++i) {
    options.requests.push_back({800 + static_cast<uint32_t>(random.Below(401)),  //
                                4000 + static_cast<uint32_t>(random.Below(2001))});
  }
  options.concurrency = 128;
  options.slots = 299'584 / 16;
  // A model of 7B parameters: 2.5 ms for its weights, 100,000 prompt tokens a second, 56 KiB of KV per position.
  options.model.curve = {2.5e-3, 1e-5, 6e-9, 0, 0};
  options.model.limits = {.rows = 8192, .logit_rows = 256};
  options.engine.max_sequences = 256;
  options.engine.step_rows = 8192;
  options.engine.prefill_chunk = 8192;
  options.engine.prefix_cache = false;
  options.engine.shadow_index = false;
  options.engine.thrash_control = false;
  return options;
}

struct Measured {
  double preemptions = 0;
  double itl_p99 = 0;
  double ttft_p50 = 0;
  double tokens_per_second = 0;
};

Result<Measured> Measure(ClosedLoopOptions options, const std::string& admission, double reserve) {
  options.engine.admission = admission;
  options.engine.admission_reserve = reserve;
  CACHALOT_ASSIGN_OR_RETURN(const ClosedLoopReport report, ServeClosedLoop(options));
  return Measured{.preemptions = static_cast<double>(report.last.preemptions),
                  .itl_p99 = ToSeconds(report.itl.Quantile(0.99)),
                  .ttft_p50 = ToSeconds(report.ttft.Quantile(0.5)),
                  .tokens_per_second = static_cast<double>(report.output_tokens) / ToSeconds(report.duration)};
}

}  // namespace

Result<PaperResult> VllmWatermark(const PaperInput& input) {
  const ClosedLoopOptions setting = Setting(input.seed);
  CACHALOT_ASSIGN_OR_RETURN(const Measured none, Measure(setting, "optimistic", 0));
  CACHALOT_ASSIGN_OR_RETURN(const Measured reserve, Measure(setting, "optimistic", 0.05));
  CACHALOT_ASSIGN_OR_RETURN(const Measured expected, Measure(setting, "expected", 0.02));
  using enum FigureUnit;
  PaperResult result{
      .setting = "450 prompts of about 1,000 tokens with answers of about 5,000, 128 at once, 299,584 tokens of KV",
      .rows = {}};
  auto& rows = result.rows;
  rows.push_back(ShownRow("preemptions, optimistic", kCount, none.preemptions, 1065));
  rows.push_back(ClaimRow("preemptions, 5 % reserve", kCount, reserve.preemptions, "at most half of optimistic",
                          reserve.preemptions <= none.preemptions / 2, 187));
  rows.push_back(ClaimRow("preemptions, expected", kCount, expected.preemptions, "fewer than with the reserve",
                          expected.preemptions < reserve.preemptions));
  rows.push_back(ShownRow("ITL p99, optimistic", kSeconds, none.itl_p99, 0.0406));
  rows.push_back(ClaimRow("ITL p99, 5 % reserve", kSeconds, reserve.itl_p99, "shorter than optimistic",
                          reserve.itl_p99 < none.itl_p99, 0.0177));
  rows.push_back(ClaimRow("ITL p99, expected", kSeconds, expected.itl_p99, "no longer than with the reserve",
                          expected.itl_p99 <= reserve.itl_p99));
  rows.push_back(ShownRow("TTFT p50, optimistic", kSeconds, none.ttft_p50, 6.56));
  rows.push_back(ShownRow("TTFT p50, 5 % reserve", kSeconds, reserve.ttft_p50, 11.2));
  rows.push_back(ShownRow("TTFT p50, expected", kSeconds, expected.ttft_p50));
  rows.push_back(ShownRow("output tokens/s, optimistic", kCount, none.tokens_per_second, 11582));
  rows.push_back(ClaimRow("output tokens/s, 5 % reserve", kCount, reserve.tokens_per_second, "more than optimistic",
                          reserve.tokens_per_second > none.tokens_per_second, 12167));
  rows.push_back(ShownRow("output tokens/s, expected", kCount, expected.tokens_per_second));
  return result;
}

}  // namespace cachalot::sim
