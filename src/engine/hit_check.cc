// Hits that are computed again, beside the request that they served, and compared bit for bit.
#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "base/random.h"
#include "engine/engine_state.h"

namespace cachalot::engine {

// Begins the check of a hit, if it is one of the sample and there is room. Its whole blocks are held meanwhile; a
// sequence of its own, which the index doesn't know, computes them from the first token on.
void Engine::State::SampleHit(const Request& request, uint64_t hit_tokens) {
  const uint64_t tokens = hit_tokens - hit_tokens % kv.geometry().block_tokens;
  SplitMix64 random(request.asked.id.value);
  if (tokens == 0 || random.Uniform() >= options.verify_hits) return;
  const uint64_t slots =
      kv::PeakSlots(kv.geometry(), tokens, step_tokens_limit()) + kv::SlotsHeld(sliding_part, tokens);
  const std::span<const TokenId> whole = std::span(request.asked.prompt).first(tokens);
  // The window before a hit in mid-block may begin later than the one before its whole blocks.
  const bool held_whole = kv.Find(request.asked.scope, whole, tokens).tokens == tokens;
  Result<kv::SlotPromise> promise = budget.Promise(slots, kv.full_slots_in_use());
  const bool fits = promise.ok() && FitsWithExpected(request, slots);
  if (!held_whole || !fits || RunningSequences() >= options.max_sequences) {
    ++totals.hits_not_verified;
    return;
  }
  Request& check = running.emplace_back();
  check.is_check = true;
  check.demand.full = slots;
  check.asked.prompt.assign(whole.begin(), whole.end());
  check.asked.max_tokens = 0;
  check.promise = std::move(promise).value();
  check.checked = kv.Create(request.asked.scope, HintsOf(request.asked));
  kv.Attach(check.checked, whole, tokens);
  check.choices.emplace_back().sequence = kv.CreateUnindexed(HintsOf(request.asked));
}

void Engine::State::FinishCheck(Request& check, StepOutput* out) {
  const Result<bool> same = SameBlocks(check.checked, check.choices.front().sequence);
  Finish(check, 0, FinishReason::kLength, OkStatus(), out);
  ++(same.ok() ? totals.hits_verified : totals.hits_not_verified);
  if (!same.ok() || *same) return;
  Poison(Internal(fmt::format("cached KV of {} prompt tokens is not what computing them gives: the cache or the "
                              "arithmetic is broken, and no answer can be trusted",
                              check.asked.prompt.size())),
         out);
}

// An error: they could not be read.
Result<bool> Engine::State::SameBlocks(SequenceId a, SequenceId b) {
  for (uint32_t group = 0; group < kv.geometry().windows.size(); ++group) {
    const PageTableRef pages = kv.Pages(a, group), others = kv.Pages(b, group);
    const uint64_t used_bytes = executor.layout().groups[group].used_bytes;
    CACHALOT_CHECK(pages.first_block == others.first_block && pages.slot_count == others.slot_count);
    for (uint32_t i = 0; i < pages.slot_count; ++i) {
      CACHALOT_ASSIGN_OR_RETURN(const bool same,
                                memory.Same(SlotId(pages.slots[i]), SlotId(others.slots[i]), used_bytes));
      if (!same) return false;
    }
  }
  return true;
}

// All that runs or waits ends with the error, and nothing is taken any more.
void Engine::State::Poison(const Status& error, StepOutput* out) {
  LogError(error.message());
  poison = error;
  for (std::deque<Request>* requests : {&running, &waiting}) {
    for (Request& request : *requests) {
      for (uint32_t c = 0; c < request.asked.n; ++c) Finish(request, c, FinishReason::kError, error, out);
    }
  }
  for (const Request& request : waiting) fair_share.Leave(request.asked.tenant);
  waiting.clear();
}

}  // namespace cachalot::engine
