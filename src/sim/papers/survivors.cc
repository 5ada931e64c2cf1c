// Evicting tokens here and there frees no blocks: a block is free only once none of its tokens is kept.
#include <cmath>

#include <fmt/format.h>

#include "base/random.h"
#include "sim/papers/papers.h"

namespace cachalot::sim {
namespace {

constexpr double kKept = 0.1;  // share of the tokens that are not evicted
constexpr uint64_t kBlocks = 200'000;

// Evicts each token but for a share of them, by chance, and counts the blocks of which nothing is left.
double ReclaimedShare(uint32_t block_tokens, uint64_t seed) {
  SplitMix64 random(seed);
  uint64_t reclaimed = 0;
  for (uint64_t block = 0; block < kBlocks; ++block) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < block_tokens; ++i) kept += random.Uniform() < kKept;
    reclaimed += kept == 0;
  }
  return static_cast<double>(reclaimed) / kBlocks;
}

}  // namespace

Result<PaperResult> Survivors(const PaperInput& input) {
  PaperResult result{
      .setting = fmt::format("{:.0f} % of the tokens of {} blocks are kept, at random", kKept * 100, kBlocks),
      .rows = {}};
  const struct {
    uint32_t block_tokens;
    double paper;
  } cases[] = {{16, 0.185}, {64, 0.001}};
  for (const auto& [block_tokens, paper] : cases) {
    const double closed = std::pow(1 - kKept, block_tokens);
    const double simulated = ReclaimedShare(block_tokens, input.seed);
    const double deviation = std::sqrt(closed * (1 - closed) / kBlocks);
    result.rows.push_back(
        EqualRow(fmt::format("reclaimed blocks of {}, (1 - p)^B", block_tokens), FigureUnit::kPercent, closed, paper));
    result.rows.push_back(ClaimRow(fmt::format("reclaimed blocks of {}, simulated", block_tokens), FigureUnit::kPercent,
                                   simulated, "within 4 standard deviations of (1 - p)^B",
                                   std::abs(simulated - closed) <= 4 * deviation, paper));
  }
  return result;
}

}  // namespace cachalot::sim
