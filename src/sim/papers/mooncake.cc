// Hit rates of Mooncake's released conversation trace, by eviction policy and capacity.
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "sim/block_replay.h"
#include "sim/papers/papers.h"

namespace cachalot::sim {
namespace {

struct Reference {
  std::string_view policy;
  bool leaves_only;  // of how the figures were made
  std::vector<double> rates;
};

constexpr uint64_t kCapacities[] = {1000, 5859, 10'000, 20'000, 30'000, 50'000, 100'000};
constexpr uint64_t kUnlimited = 288'500;  // all blocks of the trace, had each been another

}  // namespace

Result<PaperResult> Mooncake(const PaperInput& input) {
  const std::vector<Reference> references = {
      {"lru", true, {.0445, .1361, .2116, .2878, .3257, .3546, .3637}},
      {"fifo", false, {.0436, .1250, .1813, .2574, .2937, .3335, .3563}},
      {"lfu", true, {.0481, .0969, .1317, .2100, .2760, .3439, .3631}},
      {"length", true, {.0563, .0827, .1063, .1549, .1949, .2511, .3280}},
      {kOptimumPolicy, true, {.1907, .3532, .3664, .3664}},
      {"cost", true, {}},
  };
  const Trace& trace = *input.trace;
  Trace in_blocks = trace;  // where positions count blocks, as in the references: no last block is a short one
  for (TraceRequest& request : in_blocks.requests) request.input_tokens = request.blocks.size() * trace.block_tokens;
  PaperResult result{.setting = fmt::format("{} requests, blocks of {} tokens", FormatCount(trace.requests.size()),
                                            trace.block_tokens),
                     .rows = {}};
  const auto replay = [&](const Reference& reference, uint64_t capacity) -> Result<double> {
    CACHALOT_ASSIGN_OR_RETURN(
        const BlockReplayResult replayed,
        ReplayBlocks(reference.rates.empty() ? trace : in_blocks, {.policy = std::string(reference.policy),
                                                                   .capacity_blocks = capacity,
                                                                   .leaves_only = reference.leaves_only}));
    return replayed.BlockHitRate();
  };
  for (const Reference& reference : references) {
    for (size_t i = 0; i < std::size(kCapacities); ++i) {
      if (reference.policy == kOptimumPolicy && i >= reference.rates.size()) break;
      CACHALOT_ASSIGN_OR_RETURN(const double rate, replay(reference, kCapacities[i]));
      const std::string figure = fmt::format("{}, {} blocks", reference.policy, FormatCount(kCapacities[i]));
      result.rows.push_back(reference.rates.empty() ? ShownRow(figure, FigureUnit::kRate, rate)
                                                    : EqualRow(figure, FigureUnit::kRate, rate, reference.rates[i]));
    }
  }
  CACHALOT_ASSIGN_OR_RETURN(const double unlimited, replay(references.front(), kUnlimited));
  result.rows.push_back(EqualRow("any, all blocks", FigureUnit::kRate, unlimited, .3664));
  return result;
}

}  // namespace cachalot::sim
