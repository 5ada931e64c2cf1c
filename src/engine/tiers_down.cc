// KV on its way down: what a sequence that ended leaves behind is written to lower tiers.
#include <algorithm>

#include "engine/engine_state.h"
#include "kv/identity.h"
#include "tier/kv_store.h"

namespace cachalot::engine {
namespace {

constexpr uint32_t kRunsPerStep = 4;                // that are copied out, so that a step stays short
constexpr size_t kMostUnwritten = 4096;             // histories; of more the oldest are not written
constexpr Nanos kRetry = std::chrono::seconds(10);  // between attempts to write to a store that is not well

}  // namespace

// The history that a sequence leaves behind is written by and by.
void Engine::State::NoteUnwritten(const Request& request, const Choice& choice, uint64_t computed) {
  if (store == nullptr || !options.prefix_cache || computed < kv.geometry().block_tokens) return;
  const RetentionHints hints = HintsOf(request.asked);
  if (hints.scrub || hints.ttl != Nanos::max()) return;  // it is to be gone some day, from everywhere
  if (unwritten.size() == kMostUnwritten) unwritten.pop_front();
  const std::span<const TokenId> tokens = HistoryOf(request, choice).first(computed);
  unwritten.push_back({request.asked.scope,
                       {tokens.begin(), tokens.end()},
                       kv::BlockKeys(identity, request.asked.scope, kv.geometry().block_tokens, tokens),
                       std::min<uint64_t>(request.asked.prompt.size(), computed)});
}

void Engine::State::WriteBehind() {
  if (store == nullptr || unwritten.empty()) return;
  if (!store->stats().health.ok()) {
    if (now < retry_store_at) return unwritten.clear();  // what is not written now is computed again later
    retry_store_at = now + kRetry;
  }
  for (uint32_t runs = kRunsPerStep; runs > 0 && !unwritten.empty() && !store_is_full;) {
    if (WriteSome(unwritten.front(), &runs)) unwritten.pop_front();
  }
}

// What is resident of it and not in the store. False: there is more.
bool Engine::State::WriteSome(Unwritten& item, uint32_t* runs) {
  const size_t group_count = kv.geometry().windows.size();
  const std::vector<uint32_t> slots = kv.Listed(item.scope, item.tokens);
  const uint64_t blocks = slots.size() / group_count;
  std::vector<uint32_t> groups;  // of the run's blocks
  while (*runs > 0 && item.done < blocks) {
    groups.clear();
    for (uint64_t block = item.done; block < blocks; ++block) {
      const uint32_t wanted = GroupsToWrite(item, block, std::span(slots).subspan(block * group_count, group_count));
      const uint32_t stored = store->GroupsOf(identity, item.keys[block]);
      if ((stored & ~wanted) != 0 || stored == wanted) break;  // the new record takes the place of the old
      groups.push_back(wanted);
    }
    if (groups.empty()) {
      ++item.done;
      continue;
    }
    groups.resize(BlocksOfRun(groups));
    const std::span<const uint32_t> from = std::span(slots).subspan(item.done * group_count);
    if (!WriteRun(RunOf(item.tokens, item.keys, item.done, groups), from)) {
      store_is_full = store->stats().transfers > 0;
      return !store_is_full;  // with nothing under way it will never fit
    }
    item.done += groups.size();
    --*runs;
  }
  return item.done >= blocks;
}

// Those resident parts of a block from which somebody may go on: all of full attention, and of a window what is seen
// from the end of the prompt or of the history, or from the last whole block before.
uint32_t Engine::State::GroupsToWrite(const Unwritten& item, uint64_t block, std::span<const uint32_t> slots) const {
  const kv::KvGeometry& geometry = kv.geometry();
  uint32_t groups = 0;
  for (uint32_t group = 0; group < slots.size(); ++group) {
    const auto seen_from = [&](uint64_t end) {
      const uint64_t first = (end - 1) / geometry.block_tokens * geometry.block_tokens;
      return block >= kv::FirstBlockKept(geometry.windows[group], first, geometry.block_tokens) &&
             block * geometry.block_tokens < end;
    };
    if (geometry.windows[group] == 0 && slots[group] == kv::kNoSlot) return 0;
    const bool wanted = seen_from(item.prompt_tokens) || seen_from(item.tokens.size());
    if (wanted && slots[group] != kv::kNoSlot) groups |= 1u << group;
  }
  return groups;
}

// `slots`: of the run's blocks, [block][group]. False: there is no room for it now.
bool Engine::State::WriteRun(tier::KvRun run, std::span<const uint32_t> slots) {
  const size_t group_count = kv.geometry().windows.size();
  uint64_t bytes = 0;
  for (const tier::KvRunBlock& block : run.blocks) bytes += tier::BytesOf({&block.groups, 1}, memory.slot_bytes());
  std::optional<tier::Staging> staging = store->TakeStaging(bytes);
  if (!staging) return false;
  std::span<std::byte> left = staging->bytes();
  std::optional<exec::CopyTicket> last;
  for (size_t block = 0; block < run.blocks.size(); ++block) {
    for (uint32_t group = 0; group < group_count; ++group) {
      if ((run.blocks[block].groups >> group & 1) == 0) continue;
      last = memory.CopyOut(SlotId(slots[block * group_count + group]), left.first(memory.slot_bytes()));
      left = left.subspan(memory.slot_bytes());
    }
  }
  if (last) memory.Wait(*last);  // copies are done in the order given
  return store->Store(std::move(run), std::move(*staging)).ok();
}

}  // namespace cachalot::engine
