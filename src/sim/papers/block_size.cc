// How much of a shared beginning is used again, by the size of blocks.
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "kv/eviction.h"
#include "kv/kv_manager.h"
#include "sim/papers/papers.h"

namespace cachalot::sim {
namespace {

constexpr uint64_t kSharedTokens = 80;
constexpr uint32_t kOwnTokens = 120;

// The shared beginning, and text of its own.
std::vector<TokenId> PromptOf(uint64_t who, uint64_t seed) {
  SplitMix64 shared(seed), own(seed + who);
  std::vector<TokenId> prompt;
  for (uint64_t i = 0; i < kSharedTokens; ++i) prompt.push_back(static_cast<TokenId>(shared.Below(50'000)));
  for (uint32_t i = 0; i < kOwnTokens; ++i) prompt.push_back(static_cast<TokenId>(own.Below(50'000)));
  return prompt;
}

struct Reuse {
  uint64_t whole = 0;  // tokens, in whole blocks
  uint64_t exact = 0;  // to the token
};

// What the second of two prompts finds of the first.
Result<Reuse> ReuseWith(uint32_t block_tokens, uint64_t seed) {
  CACHALOT_ASSIGN_OR_RETURN(auto policy, kv::MakeEvictionPolicy("lru"));
  kv::KvManager kv({.block_tokens = block_tokens, .windows = {0}, .slots = 64}, std::move(policy));
  const std::vector<TokenId> first = PromptOf(1, seed), second = PromptOf(2, seed);
  const SequenceId sequence = kv.Create();
  kv.Attach(sequence, first, first.size());
  const kv::Growth growth{sequence, static_cast<uint32_t>(first.size()), first};
  CACHALOT_ASSIGN_OR_RETURN(kv::StepReservation step, kv.Reserve({&growth, 1}));
  std::move(step).Commit();
  kv.Free(sequence);
  const SequenceId whole = kv.Create(), exact = kv.Create();
  return Reuse{.whole = kv.Attach(whole, second, second.size(), true).tokens,
               .exact = kv.Attach(exact, second, second.size()).tokens};
}

}  // namespace

Result<PaperResult> BlockSize(const PaperInput& input) {
  PaperResult result{.setting = fmt::format("two prompts of {} tokens, of which the first {} are the same",
                                            kSharedTokens + kOwnTokens, kSharedTokens),
                     .rows = {}};
  for (const uint32_t block_tokens : {64u, 16u}) {
    CACHALOT_ASSIGN_OR_RETURN(const Reuse reuse, ReuseWith(block_tokens, input.seed));
    result.rows.push_back(EqualRow(fmt::format("tokens reused, blocks of {}, whole blocks", block_tokens),
                                   FigureUnit::kCount, static_cast<double>(reuse.whole),
                                   static_cast<double>(kSharedTokens / block_tokens * block_tokens)));
    result.rows.push_back(ClaimRow(fmt::format("tokens reused, blocks of {}, to the token", block_tokens),
                                   FigureUnit::kCount, static_cast<double>(reuse.exact), "all that is shared",
                                   reuse.exact == kSharedTokens));
  }
  return result;
}

}  // namespace cachalot::sim
