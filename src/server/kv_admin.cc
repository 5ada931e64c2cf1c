#include "server/kv_admin.h"

#include <array>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "server/field_reader.h"

namespace cachalot::server {
namespace {

using engine::HitLimit;

struct LimitText {
  std::string_view name;
  std::string_view reason;
};

LimitText TextOf(HitLimit limit) {
  switch (limit) {
    case HitLimit::kLastToken: return {"last_token", "all is there; the last token is always computed"};
    case HitLimit::kScored: return {"scored", "the logprobs of the prompt are asked for, so all of it is computed"};
    case HitLimit::kOff: return {"off", "the server runs without a prefix cache"};
    case HitLimit::kAwaited: return {"awaited", "a running request is computing more of it, and would be waited for"};
    case HitLimit::kResumePoint:
      return {"resume_point",
              "full attention has more of it, but sliding attention cannot go on from beyond the last resume point"};
    case HitLimit::kNotResident: break;
  }
  return {"not_resident",
          "what follows is not there for this salt: it was not computed, or was evicted; what other salts have is not "
          "looked at"};
}

template <size_t N>
void WriteEach(JsonWriter& w, const std::array<std::string_view, N>& names, const std::array<uint64_t, N>& values) {
  for (size_t i = 0; i < N; ++i) w.Key(names[i]).UInt(values[i]);
}

void WriteTiers(JsonWriter& w, const engine::TierStats& tiers) {
  w.Key("disk").BeginObject();
  w.Key("blocks").UInt(tiers.blocks);
  w.Key("live_bytes").UInt(tiers.live_bytes);
  w.Key("occupied_bytes").UInt(tiers.occupied_bytes);
  w.Key("loaded_tokens").UInt(tiers.loaded_tokens);
  w.Key("loaded_bytes").UInt(tiers.loaded_bytes);
  w.Key("stored_bytes").UInt(tiers.stored_bytes);
  w.Key("failed_loads").UInt(tiers.failed_loads);
  w.Key("failed_stores").UInt(tiers.failed_stores);
  w.Key("refused_blocks").UInt(tiers.refused_blocks);
  w.Key("degraded").Bool(tiers.degraded);
  w.Key("reads").BeginObject();
  WriteEach(w, kReadOutcomeNames, tiers.disk_reads);
  w.EndObject();
  w.EndObject();
  w.Key("host").BeginObject();
  w.Key("limit_bytes").UInt(tiers.host_limit_bytes);
  w.Key("cached_bytes").UInt(tiers.host_cached_bytes);
  w.Key("moving_bytes").UInt(tiers.host_moving_bytes);
  w.Key("free_bytes").UInt(tiers.host_free_bytes);
  w.Key("overhead_bytes").UInt(tiers.host_overhead_bytes);
  w.Key("loaded_tokens").UInt(tiers.host_loaded_tokens);
  w.Key("loaded_bytes").UInt(tiers.host_loaded_bytes);
  w.Key("stored_bytes").UInt(tiers.host_stored_bytes);
  w.Key("found_blocks").UInt(tiers.host_found_cells);
  w.Key("evicted_blocks").UInt(tiers.host_evicted_cells);
  w.Key("taken_back_blocks").UInt(tiers.taken_back_blocks);
  w.Key("dropped_blocks").UInt(tiers.host_dropped_blocks);
  w.EndObject();
}

HttpResponse SnapshotPage(const engine::KvOverview& kv, const engine::EngineStats& stats, const Json& settings) {
  HttpResponse response;
  JsonWriter w(&response.body);
  w.BeginObject();
  w.Key("identity").String(HexOf(kv.identity));
  w.Key("slots").BeginObject();
  w.Key("total").UInt(stats.total_slots);
  w.Key("free").UInt(stats.free_slots);
  w.Key("idle").UInt(stats.idle_slots);
  w.Key("in_use").UInt(stats.in_use_slots());
  w.Key("promised").UInt(stats.promised_slots);
  w.Key("pinned").UInt(stats.pinned_slots);
  w.EndObject();
  w.Key("bytes").BeginObject();
  w.Key("total").UInt(kv.ledger.total_bytes);
  WriteEach(w, kLedgerParts, kv.ledger.parts());
  w.Key("shared").UInt(kv.ledger.shared_bytes);
  w.EndObject();
  w.Key("block_tokens").UInt(kv.block_tokens);
  w.Key("layer_groups").UInt(kv.layer_groups);
  w.Key("tokens").BeginObject();
  w.Key("in_sequences").UInt(kv.sequence_tokens);
  w.Key("indexed").UInt(kv.indexed_tokens);
  w.EndObject();
  w.Key("sequences").UInt(kv.sequences);
  w.Key("waiting_requests").UInt(stats.waiting_requests);
  w.Key("awaiting_requests").UInt(stats.awaiting_requests);
  w.Key("index_nodes").UInt(kv.index_nodes);
  w.Key("prompt_tokens").BeginObject();
  WriteEach(w, kTokenClassNames, stats.hits.tokens);
  w.EndObject();
  w.Key("shadow_hit_tokens").BeginObject();
  WriteEach(w, kShadowNames, stats.hits.shadow_tokens);
  w.EndObject();
  w.Key("totals").BeginObject();
  w.Key("prompt_tokens_cached").UInt(stats.prompt_tokens_cached);
  w.Key("prompt_tokens_computed").UInt(stats.prompt_tokens_computed);
  w.Key("evicted_slots").UInt(stats.slots_evicted);
  w.Key("expired_slots").UInt(stats.slots_expired);
  w.Key("scrubbed_slots").UInt(stats.slots_scrubbed);
  w.Key("pins_whole").UInt(stats.pins_whole);
  w.Key("pins_shortened").UInt(stats.pins_shortened);
  w.Key("pins_refused").UInt(stats.pins_refused);
  w.Key("preemptions").UInt(stats.preemptions);
  w.Key("tokens_recomputed").UInt(stats.tokens_recomputed);
  w.EndObject();
  WriteTiers(w, stats.tiers);
  w.Key("settings").Value(settings);
  w.EndObject();
  return response;
}

HttpResponse ProbePage(const std::vector<engine::PrefixProbe>& probes) {
  HttpResponse response;
  JsonWriter w(&response.body);
  w.BeginObject().Key("prompts").BeginArray();
  for (const engine::PrefixProbe& probe : probes) {
    const LimitText limit = TextOf(probe.limit);
    w.BeginObject();
    w.Key("prompt_tokens").UInt(probe.prompt_tokens);
    w.Key("hit_tokens").UInt(probe.hit_tokens);
    w.Key("awaited_tokens").UInt(probe.awaited_tokens);
    w.Key("disk_tokens").UInt(probe.disk_tokens);
    w.Key("public_tokens").UInt(probe.public_tokens);
    w.Key("key");
    if (probe.key) {
      w.String(HexOf(*probe.key));
    } else {
      w.Null();
    }
    w.Key("limit").String(limit.name);
    w.Key("reason").String(limit.reason);
    w.EndObject();
  }
  w.EndArray().EndObject();
  return response;
}

HttpResponse ClearPage(const engine::Answer& answer) {
  if (!answer.cleared.ok()) {
    return ErrorResponse(ServerFault("the hot pool is cleared, the disk tier is not: " + answer.cleared.message()));
  }
  HttpResponse response;
  JsonWriter(&response.body).BeginObject().Key("evicted_slots").UInt(answer.evicted_slots).EndObject();
  return response;
}

HttpResponse DecisionsPage(const engine::Answer& answer) {
  HttpResponse response;
  JsonWriter w(&response.body);
  w.BeginObject().Key("decisions").Value(answer.decisions).Key("down").Value(answer.decisions_down).EndObject();
  return response;
}

HttpResponse PageOf(const engine::Answer& answer, const engine::EngineStats& stats, const Json& settings) {
  switch (answer.kind) {
    case engine::InquiryKind::kOverview: return SnapshotPage(answer.overview, stats, settings);
    case engine::InquiryKind::kProbe: return ProbePage(answer.probes);
    case engine::InquiryKind::kDecisions: return DecisionsPage(answer);
    case engine::InquiryKind::kClear: break;
  }
  return ClearPage(answer);
}

// The salt of the tenant that the body names, if it names one.
std::optional<ApiError> ReadTenant(const Json& body, const ApiKeys& keys, CacheSalt* salt) {
  FieldReader reader(body, "");
  std::string tenant;
  reader.String("tenant", &tenant);
  if (!reader.ok()) return reader.error();
  if (tenant.empty()) return std::nullopt;
  const std::optional<CacheSalt> found = keys.SaltOfTenant(tenant);
  if (!found) return InvalidField("tenant", "no key belongs to a tenant of this name");
  *salt = *found;
  return std::nullopt;
}

ApiResult<PreparedRequest> PrepareProbe(PrepareContext context, const ApiKeys& keys, std::string_view body) {
  ApiResult<Json> parsed = ParseBody(body);
  if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  const Json& json = std::get<Json>(parsed);
  if (auto error = ReadTenant(json, keys, &context.salt)) return *error;
  const bool chat = json.Find("messages") != nullptr;
  return PrepareRequest(context, chat ? ParseChatRequest(json) : ParseCompletionRequest(json));
}

}  // namespace

engine::InquiryId KvAdmin::Await(std::shared_ptr<Exchange> exchange) {
  const uint64_t id = next_id_++;
  exchange->OnGone([this, id] { waiting_.erase(id); });
  waiting_.emplace(id, std::move(exchange));
  return engine::InquiryId(id);
}

void KvAdmin::Snapshot(std::shared_ptr<Exchange> exchange) {
  deps_.generator.Ask({Await(std::move(exchange)), engine::InquiryKind::kOverview, {}});
}

void KvAdmin::Clear(std::shared_ptr<Exchange> exchange) {
  deps_.generator.Ask({Await(std::move(exchange)), engine::InquiryKind::kClear, {}});
}

void KvAdmin::Decisions(std::shared_ptr<Exchange> exchange) {
  deps_.generator.Ask({Await(std::move(exchange)), engine::InquiryKind::kDecisions, {}});
}

void KvAdmin::Probe(const PrepareContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const engine::InquiryId id = Await(std::move(exchange));
  const size_t bytes = request.body.size();
  const auto shared = std::make_shared<HttpRequest>(std::move(request));
  deps_.workers.Submit(bytes, [this, id, context, shared] {
    const auto result = std::make_shared<ApiResult<PreparedRequest>>(PrepareProbe(context, deps_.keys, shared->body));
    deps_.post([this, id, result] { AskProbe(id, *result); });
  });
}

void KvAdmin::AskProbe(engine::InquiryId id, ApiResult<PreparedRequest>& result) {
  const auto waiting = waiting_.find(id.value);
  if (waiting == waiting_.end()) return;
  if (const auto* error = std::get_if<ApiError>(&result)) {
    waiting->second->Respond(ErrorResponse(*error));
    waiting_.erase(waiting);
    return;
  }
  PreparedRequest prepared = std::get<PreparedRequest>(std::move(result));
  engine::Inquiry inquiry{id, engine::InquiryKind::kProbe, {}};
  for (PreparedPrompt& prompt : prepared.prompts) {
    engine::GenerateRequest& request = inquiry.requests.emplace_back();
    request.prompt = std::move(prompt.tokens);
    request.scope = prompt.scope;
    if (prepared.api.echo) request.prompt_logprobs = prepared.api.sampling.logprobs;
  }
  deps_.generator.Ask(std::move(inquiry));
}

void KvAdmin::OnAnswers(const std::vector<engine::Answer>& answers, const engine::EngineStats& stats) {
  for (const engine::Answer& answer : answers) {
    auto node = waiting_.extract(answer.id.value);
    if (!node.empty()) node.mapped()->Respond(PageOf(answer, stats, deps_.settings));
  }
}

}  // namespace cachalot::server
