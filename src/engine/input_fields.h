// What the values that an engine was made with, and those that enter a step, are made up of, for logs
// (engine/log_fields.h).
// Threads:   pure functions.
// Ownership: none.
// Invariant: what was written is read back equal, but for stop conditions: whether there is one is all that is kept.
// Cost:      linear in the bytes.
#pragma once

#include "base/prefix_scope.h"
#include "base/retention.h"
#include "base/sampling.h"
#include "base/status.h"
#include "engine/archive_answers.h"
#include "engine/engine.h"
#include "engine/input_log.h"
#include "engine/log_fields.h"
#include "engine/store_answers.h"
#include "tier/archive_file.h"

namespace cachalot::engine {

// Each setting under its name, so that a log of another version is told from a broken one.
struct OptionsOut {
  LogWriter& a;
  void operator()(std::string_view name, auto& value, std::string_view) { Write(name, value); }
  void Write(std::string_view name, const ByteSize& value) { a(std::string(name), value.bytes); }
  void Write(std::string_view name, const auto& value) { a(std::string(name), value); }
};

struct OptionsIn {
  LogReader& a;
  void operator()(std::string_view name, auto& value, std::string_view) {
    std::string written;
    a(written);
    if (written != name) a.Fail();
    Read(value);
  }
  void Read(ByteSize& value) { a(value.bytes); }
  void Read(auto& value) { a(value); }
};

inline void VisitWith(LogWriter& a, auto options) {
  options.Visit(OptionsOut{a});
}  // a copy: Visit hands out mutable fields
inline void VisitWith(LogReader& a, auto& options) { options.Visit(OptionsIn{a}); }

void Fields(auto& a, Like<TenantTerms> auto& v) {
  VisitWith(a, v);
  a(v.weight);
}

void Fields(auto& a, Like<EngineOptions> auto& v) {
  VisitWith(a, v);
  a(v.tenants);
}

void Fields(auto& a, Like<LayerKvShape> auto& v) { a(v.kv_heads, v.k_dim, v.v_dim, v.window); }
void Fields(auto& a, Like<LayerGroup> auto& v) { a(v.window, v.layers, v.used_bytes); }

void Fields(auto& a, Like<LayerPlace> auto& v) { a(v.group, v.k_offset, v.v_offset); }

void Fields(auto& a, Like<KvLayout> auto& v) {
  a(v.shape.layers);
  a.EnumUpTo(v.shape.type, KvType::kBF16);
  a(v.shape.block_tokens, v.slot_bytes, v.groups, v.places);
}

void Fields(auto& a, Like<HostFacts> auto& v) { a(v.memory_bytes, v.eviction); }

void Fields(auto& a, Like<InputFacts> auto& v) {
  a(v.options, v.layout, v.slots, v.vocabulary, v.context_tokens, v.most_rows, v.most_logit_rows);
  a(v.identity, v.step_curve, v.host_rate, v.host, v.store, v.sessions, v.archive, v.asynchronous_copies);
}

void Fields(auto& a, Like<SamplingParams> auto& v) {
  a(v.temperature, v.top_k, v.top_p, v.min_p, v.repetition_penalty, v.presence_penalty, v.frequency_penalty);
  a(v.logit_bias, v.seed, v.logprobs);
}

void Fields(auto& a, Like<CacheSalt> auto& v) { a(v.high, v.low); }
void Fields(auto& a, Like<PrefixScope> auto& v) { a(v.salt, v.public_tokens); }

void Fields(auto& a, Like<RetentionHints> auto& v) {
  a.EnumUpTo(v.priority, RetentionPriority::kHigh);
  a(v.ttl, v.pin, v.scrub);
}

void Fields(auto& a, Like<SessionName> auto& v) { a(v.owner, v.id); }
void Fields(auto& a, Like<ReturnHint> auto& v) { a(v.returns, v.in); }

inline void Fields(LogWriter& a, const StopConditionFactory& v) { a(static_cast<bool>(v)); }
inline void Fields(LogReader& a, StopConditionFactory& v) {
  bool stops = false;
  a(stops);
  v = {};
  if (stops) v = [] { return nullptr; };
}

void Fields(auto& a, Like<GenerateRequest> auto& v) {
  a(v.id, v.prompt, v.max_tokens, v.n, v.sampling, v.end_tokens);
  Fields(a, v.stop);
  a(v.prompt_logprobs, v.scope, v.tenant, v.retention, v.session, v.session_ttl_seconds, v.returns);
}

void Fields(auto& a, Like<Inquiry> auto& v) {
  a(v.id);
  a.EnumUpTo(v.kind, InquiryKind::kDecisions);
  a(v.requests);
}

void Fields(auto& a, Like<SessionCommand> auto& v) {
  a(v.id);
  a.EnumUpTo(v.verb, SessionVerb::kPrefetch);
  a(v.name, v.every_owner, v.after, v.limit, v.pinned, v.other, v.prompt, v.scope, v.when);
}

void Fields(auto& a, Like<TierRate> auto& v) { a(v.latency_seconds, v.bytes_per_second); }
void Fields(auto& a, Like<StoreLevels> auto& v) { a(v.well, v.transfers, v.queued_load_bytes); }
void Fields(auto& a, Like<StoreEnd> auto& v) { a(v.transfer, v.well); }

template <class T>
void Fields(LogWriter& a, const ChangedAnswer<T>& v) {
  a(v.nth, v.key, v.answer);
}
template <class T>
void Fields(LogReader& a, ChangedAnswer<T>& v) {
  a(v.nth, v.key, v.answer);
}

void Fields(auto& a, Like<StoreAnswers> auto& v) {
  a(v.groups, v.deadlines, v.load_rates, v.levels, v.refusals, v.starts, v.ends);
}

void Fields(auto& a, Like<tier::SessionKey> auto& v) { a(v.owner, v.id); }
void Fields(auto& a, Like<tier::StoredSession> auto& v) {
  a(v.key, v.identity, v.scope, v.tokens, v.created, v.last_used, v.ttl_seconds, v.pinned, v.suspended);
}

void Fields(auto& a, Like<Code> auto& v) { a.EnumUpTo(v, Code::kInternal); }
void Fields(auto& a, Like<ArchiveEnd> auto& v) { a(v.code, v.groups, v.file_bytes); }
void Fields(auto& a, Like<tier::ArchiveHeader> auto& v) {
  a(v.session, v.slot_bytes, v.block_tokens, v.kv_tokens, v.parts, v.saved, v.kv_seconds);
}
void Fields(auto& a, Like<ArchiveAnswers> auto& v) { a(v.begins, v.ends, v.headers); }

void Fields(auto& a, Like<CopyAnswer> auto& v) { a.EnumUpTo(v, CopyAnswer::kDiffers); }
void Fields(auto& a, Like<SyncEnd> auto& v) { a(v.sync, v.well); }
void Fields(auto& a, Like<LoggedToken> auto& v) { a(v.request, v.choice, v.token, v.stops); }

void Fields(auto& a, Like<StepInput> auto& v) {
  a(v.now, v.last_duration, v.last_stalled, v.waited, v.arrivals, v.cancels, v.inquiries, v.session_commands,
    v.unix_seconds);
}

}  // namespace cachalot::engine
