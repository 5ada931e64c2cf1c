// What is told of a session: where its KV is, and what it would take to go on with it.
#include <algorithm>
#include <bit>

#include "engine/engine_state.h"
#include "kv/load_plan.h"

namespace cachalot::engine {

SessionView Engine::State::ViewOf(const SessionName& name, const Session& session) const {
  const tier::StoredSession& record = session.record;
  SessionView view{.name = name,
                   .tokens = record.tokens.size(),
                   .created = record.created,
                   .last_used = record.last_used,
                   .ttl_seconds = record.ttl_seconds,
                   .pinned = record.pinned,
                   .in_use = InUse(name),
                   .other_model = record.identity != identity};
  if (view.other_model) {
    view.recompute_seconds = step_cost.Added(work_shape.Rows(0, record.tokens.size()));
  } else if (!record.tokens.empty()) {
    AddPlaces(session, &view);
  }
  return view;
}

// Where its KV is found, and what it would take to have it all.
void Engine::State::AddPlaces(const Session& session, SessionView* view) const {
  const std::span<const TokenId> tokens = KvTokensOf(session);
  if (tokens.empty() || !options.prefix_cache) return;
  const kv::KvGeometry& geometry = kv.geometry();
  const std::vector<uint32_t> slots = kv.Listed(session.record.scope, tokens).slots;
  const std::vector<uint32_t> host_groups = HostGroups(session.keys);
  const std::vector<uint32_t> disk_groups =
      store == nullptr ? std::vector<uint32_t>{} : store->Match(identity, session.keys);
  view->hot.tokens = kv.Find(session.record.scope, tokens, tokens.size()).tokens;

  std::vector<uint32_t> anywhere(session.keys.size(), 0);  // groups, by block
  uint64_t from_host = 0, from_disk = 0;                   // slots that are not hot
  for (size_t block = 0; block < anywhere.size(); ++block) {
    const uint32_t hot = GroupsListed(slots, block), warm = host_groups[block];
    const uint32_t stored = block < disk_groups.size() ? disk_groups[block] : 0;
    anywhere[block] = hot | warm | stored;
    view->hot.bytes += std::popcount(hot) * memory.slot_bytes();
    from_host += std::popcount(warm & ~hot);
    from_disk += std::popcount(stored & ~(hot | warm));
  }
  const auto leading = [&](std::span<const uint32_t> groups) {
    return std::min<uint64_t>(kv::LoadableTokens(geometry, 0, groups), tokens.size());
  };
  view->host = {leading(host_groups), tier::BytesOf(host_groups, memory.slot_bytes())};
  view->disk = {leading(disk_groups), tier::BytesOf(disk_groups, memory.slot_bytes())};
  view->reusable_tokens = std::max(view->hot.tokens, leading(anywhere));
  view->state = view->reusable_tokens == 0                      ? SessionState::kCold
                : 2 * view->hot.tokens >= view->reusable_tokens ? SessionState::kHot
                                                                : SessionState::kWarm;
  view->recompute_seconds = step_cost.Added(work_shape.Rows(view->hot.tokens, tokens.size() - view->hot.tokens));
  if (view->reusable_tokens <= view->hot.tokens) return;
  const double host_seconds = TransferSeconds(HostRate(), from_host * memory.slot_bytes(), 0);
  view->load_seconds = host_seconds;
  if (from_disk == 0) return;
  *view->load_seconds +=
      TransferSeconds(store->load_rate(now), from_disk * memory.slot_bytes(), store->queued_load_bytes());
}

// Bit g: group g of that block is hot. `slots`: as of KvManager::Listed.
uint32_t Engine::State::GroupsListed(std::span<const uint32_t> slots, size_t block) const {
  const size_t groups = kv.geometry().windows.size();
  uint32_t listed = 0;
  for (size_t group = 0; group < groups && (block + 1) * groups <= slots.size(); ++group) {
    if (slots[block * groups + group] != kv::kNoSlot) listed |= 1u << group;
  }
  return listed;
}

}  // namespace cachalot::engine
