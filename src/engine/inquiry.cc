#include "engine/inquiry.h"

#include <algorithm>

#include "engine/engine_state.h"
#include "kv/identity.h"

namespace cachalot::engine {
namespace {

KvOverview OverviewOf(const kv::KvSnapshot& kv) {
  KvOverview view;
  view.block_tokens = kv.geometry.block_tokens;
  view.layer_groups = static_cast<uint32_t>(kv.geometry.windows.size());
  view.sequences = static_cast<uint32_t>(kv.sequences.size());
  view.index_nodes = kv.nodes.size();
  for (const kv::KvSnapshot::Sequence& sequence : kv.sequences) view.sequence_tokens += sequence.length;
  for (const kv::KvSnapshot::Node& node : kv.nodes) {
    const bool listed = std::ranges::any_of(node.slots, [](uint32_t slot) { return slot != kv::kNoSlot; });
    if (listed) view.indexed_tokens += node.tokens;
  }
  return view;
}

HitLimit LimitOf(const kv::PrefixView& found, uint64_t skippable) {
  if (found.tokens >= skippable) return HitLimit::kLastToken;
  if (found.awaited > found.tokens) return HitLimit::kAwaited;
  return found.full_tokens > found.tokens ? HitLimit::kResumePoint : HitLimit::kNotResident;
}

}  // namespace

PrefixProbe Engine::State::Probe(const GenerateRequest& asked) const {
  PrefixProbe probe{.prompt_tokens = asked.prompt.size(), .public_tokens = asked.scope.public_tokens};
  if (!options.prefix_cache) {
    probe.limit = HitLimit::kOff;
  } else if (asked.prompt_logprobs >= 0) {
    probe.limit = HitLimit::kScored;
  } else if (!asked.prompt.empty()) {
    const uint64_t skippable = asked.prompt.size() - 1;
    const kv::PrefixView found = kv.Find(asked.scope, asked.prompt, skippable);
    probe.hit_tokens = found.tokens;
    probe.awaited_tokens = found.awaited;
    probe.limit = LimitOf(found, skippable);
    const std::span<const TokenId> hit = std::span(asked.prompt).first(found.tokens);
    const std::vector<Digest> keys = kv::BlockKeys(identity, asked.scope, kv.geometry().block_tokens, hit);
    if (!keys.empty()) probe.key = keys.back();
    probe.disk_tokens = StoredTokens(asked.scope, std::span(asked.prompt).first(skippable));
  }
  return probe;
}

Answer Engine::State::AnswerTo(const Inquiry& inquiry) {
  Answer answer{.id = inquiry.id, .kind = inquiry.kind};
  switch (inquiry.kind) {
    case InquiryKind::kOverview:
      answer.overview = OverviewOf(kv.Snapshot());
      answer.overview.ledger = kv.Ledger(executor.layout());
      answer.overview.identity = identity;
      break;
    case InquiryKind::kProbe:
      for (const GenerateRequest& asked : inquiry.requests) answer.probes.push_back(Probe(asked));
      break;
    case InquiryKind::kClear:
      EndSessionPins();
      pins.EndAll();
      answer.evicted_slots = kv.EvictAllIdle();
      answer.cleared = ClearStore();
      admission_due = true;
      break;
    case InquiryKind::kDecisions:
      answer.decisions = DecisionsAsJson(up.decisions, now);
      answer.decisions_down = DecisionsAsJson(down.decisions, now);
      break;
  }
  return answer;
}

}  // namespace cachalot::engine
