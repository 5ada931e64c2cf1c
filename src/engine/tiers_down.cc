// KV on its way down: what a sequence that ended leaves behind is written to disk.
#include <algorithm>

#include "base/check.h"
#include "base/copy_bytes.h"
#include "engine/engine_state.h"
#include "kv/identity.h"
#include "kv/shadow_index.h"
#include "sched/write_behind.h"
#include "tier/kv_store.h"

namespace cachalot::engine {
namespace {

constexpr uint32_t kRunsPerStep = 4;                // that are copied out, so that a step stays short
constexpr size_t kMostUnwritten = 4096;             // histories; of more the oldest are not written
constexpr Nanos kRetry = std::chrono::seconds(10);  // between attempts to write to a store that is not well
constexpr Nanos kBudgetEvery = std::chrono::milliseconds(20);
constexpr double kWritePrice = 0.1;  // seconds that others lose by a second of writing, which waits for them

}  // namespace

// The history that a sequence leaves behind is written by and by.
void Engine::State::NoteUnwritten(const Request& request, const Choice& choice, uint64_t computed) {
  if (store == nullptr || !options.prefix_cache || !request.asked.returns.returns) return;
  const RetentionHints hints = HintsOf(request.asked);
  if (hints.scrub) return;  // it is to be nowhere else
  const bool session = request.asked.session.has_value();
  // Only whoever goes on with the very same history gets anything out of its unfilled block.
  const kv::Tail tail = session ? kv::Tail::kShortToo : kv::Tail::kWholeOnly;
  const std::span<const TokenId> tokens = HistoryOf(request, choice).first(computed);
  Unwritten item{request.asked.scope,
                 {tokens.begin(), tokens.end()},
                 kv::BlockKeys(identity, request.asked.scope, kv.geometry().block_tokens, tokens, tail),
                 std::min<uint64_t>(request.asked.prompt.size(), computed)};
  if (item.keys.empty()) return;
  const uint64_t whole = tokens.size() / kv.geometry().block_tokens, of_all = item.keys.size();
  const uint64_t of_prompt = item.prompt_tokens / kv.geometry().block_tokens;
  const sched::Leaver leaver = session ? sched::Leaver::kSession : sched::Leaver::kHistory;
  if (whole > 0) down.returns.Left(leaver, item.keys[whole - 1]);
  if (!session && of_prompt > 0) down.returns.Left(sched::Leaver::kPrompt, item.keys[of_prompt - 1]);
  const auto is_written = [&](sched::Leaver of) {
    const sched::DownDecision decision = DecideToWrite(item, down.returns.Of(of));
    item.decision = NoteDown({.request = request.asked.id, .session = request.asked.session, .decision = decision});
    return decision.way == sched::WayDown::kHandDown;
  };
  if (!is_written(leaver)) {
    // Others may still begin with its prompt.
    item.tokens.resize(session ? 0 : item.prompt_tokens);
    item.keys.resize(session ? 0 : of_prompt);
    if (item.keys.empty() || !is_written(sched::Leaver::kPrompt)) item.keys.clear();
    totals.tiers.refused_blocks += of_all - item.keys.size();
  }
  if (item.keys.empty()) return;
  if (down.unwritten.size() >= kMostUnwritten) {
    const auto oldest = std::ranges::find(down.unwritten, WriteTicket{0}, &Unwritten::ticket);
    if (oldest != down.unwritten.end()) {
      down.Cut(*oldest, 0);
      down.unwritten.erase(oldest);
    }
  }
  down.unwritten.push_back(std::move(item));
}

// `returns`: how likely it is used again.
sched::ReuseView Engine::State::ReuseOf(const sched::DownKv& what, double returns) const {
  const double link_seconds = TransferSeconds(RateOf(what.tier), what.bytes, 0);
  return {.probability = returns,
          .recompute_seconds = step_cost.Added(work_shape.Rows(what.first_token, what.tokens)),
          .load_seconds = link_seconds,
          .write_seconds = link_seconds};
}

// What is not written stays until others need its room, and is then computed again; unless it is to be written.
sched::DownDecision Engine::State::DecideToWrite(const Unwritten& item, double returns) const {
  const sched::DownKv what{.tier = TierId::kDisk,
                           .tokens = item.tokens.size(),
                           .blocks = item.keys.size(),
                           .bytes = kv::SlotsHeld(kv.geometry(), item.tokens.size()) * memory.slot_bytes()};
  const sched::ReuseView reuse = ReuseOf(what, returns);
  return sched::DecideDown(
      what, {.reuse = reuse, .keep = reuse.probability * reuse.recompute_seconds, .write_price = kWritePrice},
      item.ticket == 0 ? sched::DownReason::kLeastCost : sched::DownReason::kAskedFor);
}

// Before all others that nobody awaits, whatever it costs.
WriteTicket Engine::State::WriteFirst(const SessionName& name, const PrefixScope& scope,
                                      std::span<const TokenId> tokens) {
  const WriteTicket ticket = ++down.last_ticket;
  AwaitedWrite& awaited = down.awaited.emplace_back();
  awaited.ticket = ticket;
  if (store == nullptr || !options.prefix_cache) {
    awaited.status = Unavailable("there is no disk tier that KV could be written to");
    awaited.ended = true;
    return ticket;
  }
  Unwritten item{scope,
                 {tokens.begin(), tokens.end()},
                 kv::BlockKeys(identity, scope, kv.geometry().block_tokens, tokens, kv::Tail::kShortToo),
                 tokens.size(),
                 0,
                 ticket};
  const double returns = down.returns.Of(sched::Leaver::kSession);
  item.decision = NoteDown({.session = name, .decision = DecideToWrite(item, returns)});
  down.unwritten.insert(std::ranges::find(down.unwritten, WriteTicket{0}, &Unwritten::ticket), std::move(item));
  return ticket;
}

std::optional<Status> Engine::State::WriteFirstEnded(WriteTicket ticket) {
  const auto found = std::ranges::find(down.awaited, ticket, &AwaitedWrite::ticket);
  CACHALOT_CHECK(found != down.awaited.end());
  if (!found->ended) return std::nullopt;
  Status status = std::move(found->status);
  down.awaited.erase(found);
  return status;
}

void Engine::State::WriteBehind() {
  if (store == nullptr) return;
  if (!down.unwritten.empty() && !store->stats().health.ok()) {
    if (now < down.retry_store_at) return AbandonUnwritten(store->stats().health);  // it is computed again later
    down.retry_store_at = now + kRetry;
  }
  for (uint32_t runs = kRunsPerStep; runs > 0 && !down.unwritten.empty() && !down.store_is_full;) {
    Unwritten& item = down.unwritten.front();
    if (item.ticket == 0 && now < down.budget_due) break;
    if (!WriteSome(item, &runs)) continue;
    if (AwaitedWrite* awaited = down.AwaitedOf(item.ticket)) awaited->all_begun = true;
    down.Cut(item, item.done);
    down.unwritten.pop_front();
  }
  SyncAwaited();
}

void Engine::State::AbandonUnwritten(const Status& why) {
  for (Unwritten& item : down.unwritten) {
    down.Cut(item, item.done);
    AwaitedWrite* const awaited = down.AwaitedOf(item.ticket);
    if (awaited == nullptr) continue;
    awaited->Fail(why);
    awaited->all_begun = true;
  }
  down.unwritten.clear();
}

// What was written lasts once it is synced.
void Engine::State::SyncAwaited() {
  for (AwaitedWrite& awaited : down.awaited) {
    if (awaited.ended || !awaited.all_begun || awaited.under_way > 0 || awaited.sync) continue;
    if (awaited.status.ok()) {
      if (const Result<tier::TransferId> sync = store->Sync(); sync.ok()) awaited.sync = *sync;
    } else {
      awaited.ended = true;
    }
  }
}

// What is resident of it and not in the store. False: there is more.
bool Engine::State::WriteSome(Unwritten& item, uint32_t* runs) {
  const size_t group_count = kv.geometry().windows.size();
  kv::ListedBlocks listed = kv.Listed(item.scope, item.tokens);
  std::vector<uint32_t>& slots = listed.slots;
  slots.resize(item.keys.size() * group_count, kv::kNoSlot);  // what is not hot may be in host memory
  std::vector<uint32_t> groups;                               // of the run's blocks
  while (*runs > 0 && item.done < item.keys.size()) {
    groups.clear();
    Nanos deadline{0};  // of the run
    for (uint64_t block = item.done; block < item.keys.size(); ++block) {
      const Digest& key = item.keys[block];
      const std::span<const uint32_t> of_block = std::span(slots).subspan(block * group_count, group_count);
      const bool hot = std::ranges::any_of(of_block, [](uint32_t slot) { return slot != kv::kNoSlot; });
      const uint32_t wanted = GroupsToWrite(item, block, of_block), stored = store->GroupsOf(identity, key);
      if (wanted == 0 || (stored & ~wanted) != 0) break;  // the new record takes the place of the old
      const Nanos in_host = host == nullptr ? kv::kNever : host->DeadlineOf(key);
      const std::optional<Nanos> until =
          sched::WriteUntil({.now = now,
                             .wanted_until = hot ? std::min(listed.wanted_until[block], in_host) : in_host,
                             .stored_until = stored == 0 ? Nanos(0) : store->DeadlineOf(key),
                             .stored_whole = stored == wanted});
      if (!until || (!groups.empty() && *until != deadline)) break;
      deadline = *until;
      groups.push_back(wanted);
    }
    if (groups.empty()) {
      down.Count(item.decision, &sched::DownOutcome::skipped_blocks, 1);
      ++item.done;
      continue;
    }
    groups.resize(BlocksOfRun(groups));
    const uint64_t bytes = tier::BytesOf(groups, memory.slot_bytes());
    if (!down.budget.Take(bytes, now) && item.ticket == 0) {
      down.budget_due = now + kBudgetEvery;
      *runs = 0;
      return false;
    }
    const std::span<const uint32_t> from = std::span(slots).subspan(item.done * group_count);
    tier::KvRun run = RunOf(item.tokens, item.keys, item.done, groups);
    run.deadline = deadline;
    if (!CopyRun(std::move(run), from, {item.ticket, item.decision, groups.size()})) {
      down.store_is_full = store->stats().transfers > 0 || !slot_copies.empty();
      if (down.store_is_full) return false;
      if (AwaitedWrite* awaited = down.AwaitedOf(item.ticket)) {
        awaited->Fail(Overloaded("a block is larger than what may be on its way to disk at a time"));
      }
      return true;  // with nothing under way it will never fit
    }
    item.done += groups.size();
    --*runs;
  }
  return item.done >= item.keys.size();
}

// Those parts of a block that are hot, or in host memory, and from which somebody may go on: all of full attention, and
// of a window what is seen from the end of the prompt or of the history, or from the last whole block before.
uint32_t Engine::State::GroupsToWrite(const Unwritten& item, uint64_t block, std::span<const uint32_t> slots) const {
  const kv::KvGeometry& geometry = kv.geometry();
  const uint32_t in_host = host == nullptr ? 0 : host->GroupsOf(item.keys[block]);
  uint32_t groups = 0;
  for (uint32_t group = 0; group < slots.size(); ++group) {
    const auto seen_from = [&](uint64_t end) {
      const uint64_t first = (end - 1) / geometry.block_tokens * geometry.block_tokens;
      return block >= kv::FirstBlockKept(geometry.windows[group], first, geometry.block_tokens) &&
             block * geometry.block_tokens < end;
    };
    const bool there = slots[group] != kv::kNoSlot || (in_host >> group & 1) != 0;
    if (geometry.windows[group] == 0 && !there) return 0;
    if (there && (seen_from(item.prompt_tokens) || seen_from(item.tokens.size()))) groups |= 1u << group;
  }
  return groups;
}

// `slots`: of the run's blocks, [block][group]; what is not hot comes from host memory. False: there is no room for it
// now.
bool Engine::State::CopyRun(tier::KvRun run, std::span<const uint32_t> slots, const DownOwner& owner) {
  const size_t group_count = kv.geometry().windows.size();
  uint64_t bytes = 0;
  for (const tier::KvRunBlock& block : run.blocks) bytes += tier::BytesOf({&block.groups, 1}, memory.slot_bytes());
  std::optional<tier::Staging> staging = store->TakeStaging(bytes);
  if (!staging) return false;
  SlotCopies copies;
  std::span<std::byte> left = staging->bytes();
  for (size_t block = 0; block < run.blocks.size(); ++block) {
    for (uint32_t group = 0; group < group_count; ++group) {
      if ((run.blocks[block].groups >> group & 1) == 0) continue;
      const std::span<std::byte> to = left.first(memory.slot_bytes());
      left = left.subspan(memory.slot_bytes());
      if (const uint32_t slot = slots[block * group_count + group]; slot != kv::kNoSlot) {
        CopySlotOut(SlotId(slot), to, &copies);
      } else {
        const auto cell = host->Find({run.blocks[block].key, group}, tier::HostUse::kCopy);
        CopyBytes(cell->bytes(), to);
      }
    }
  }
  copies.run = std::move(run);
  copies.staging = std::move(*staging);
  copies.owner = owner;
  if (AwaitedWrite* awaited = down.AwaitedOf(owner.ticket)) ++awaited->under_way;
  slot_copies.push_back(std::move(copies));
  EndCopies();
  return true;
}

// All of the run lies in staging.
void Engine::State::StoreRun(SlotCopies& copies) {
  if (copies.run.blocks.empty()) {
    down.Count(copies.owner.decision, &sched::DownOutcome::skipped_blocks, copies.owner.blocks);
    return down.EndAwaited(copies.owner.ticket, Unavailable("its blocks were deleted meanwhile"));
  }
  const Result<tier::TransferId> id = store->Store(std::move(copies.run), std::move(copies.staging));
  if (id.ok()) {
    down.storing.push_back({*id, copies.owner});
  } else {
    down.EndWrite(copies.owner, id.status());
  }
}

// Something that was started at the store, and was no load, ended.
void Engine::State::NoteStored(const tier::KvStore::Ended& ended) {
  NoteErased(ended);
  const auto stored = std::ranges::find(down.storing, ended.id, &StoredRun::id);
  if (stored != down.storing.end()) {
    down.EndWrite(stored->owner, ended.status);
    down.storing.erase(stored);
  }
  for (AwaitedWrite& awaited : down.awaited) {
    if (awaited.sync != ended.id) continue;
    awaited.Fail(ended.status);
    awaited.ended = true;
  }
}

// Nothing of these tokens' blocks from token `from` on is found any more, as far as nobody uses it now.
Result<std::optional<tier::TransferId>> Engine::State::ForgetKv(const PrefixScope& scope,
                                                                std::span<const TokenId> tokens, uint64_t from) {
  const uint32_t block_tokens = kv.geometry().block_tokens;
  std::vector<Digest> keys = kv::BlockKeys(identity, scope, block_tokens, tokens, kv::Tail::kShortToo);
  keys.erase(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(std::min<uint64_t>(from / block_tokens, keys.size())));
  kv.EvictIdle(scope, tokens, from, kv::Loss::kCleared);
  if (host != nullptr) {
    for (const Digest& key : keys) host->Erase(key);
  }
  const auto among = [&](const Digest& key) { return std::ranges::find(keys, key) != keys.end(); };
  for (SlotCopies& copies : slot_copies) {
    if (copies.given_up && among(copies.given_up->key)) copies.given_up.reset();
  }
  if (store == nullptr || keys.empty()) return std::optional<tier::TransferId>();
  for (Unwritten& item : down.unwritten) {
    const auto first = std::ranges::find_if(item.keys, among);
    down.Cut(item, static_cast<uint64_t>(first - item.keys.begin()));
  }
  for (SlotCopies& copies : slot_copies) {
    if (std::ranges::any_of(copies.run.blocks, among, &tier::KvRunBlock::key)) copies.run.blocks.clear();
  }
  CACHALOT_ASSIGN_OR_RETURN(const tier::TransferId erasure, store->Erase(std::move(keys)));
  return std::optional(erasure);
}

}  // namespace cachalot::engine
