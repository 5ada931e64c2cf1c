#include "server/api_service.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "server/field_reader.h"
#include "server/kv_metrics.h"
#include "server/pages.h"
#include "server/retry_after.h"

namespace cachalot::server {
namespace {

HttpResponse Unauthorized(std::string_view whose, std::string code) {
  HttpResponse response =
      ErrorResponse({.status = 401,
                     .message = fmt::format("the {} key is missing or wrong; send Authorization: Bearer KEY", whose),
                     .code = std::move(code)});
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

ApiError MethodNotAllowed(const HttpRequest& request, const RouteMatch& match) {
  return {.status = 405,
          .message = fmt::format("{} is not allowed here; allowed: {}", request.method_name, match.allowed),
          .code = "method_not_allowed"};
}

HttpResponse OptionsPage(const HttpRequest& request, const RouteMatch& match, bool cors) {
  HttpResponse response;
  response.status = 204;
  response.headers.emplace_back("Allow", match.allowed);
  if (cors) {
    response.headers.emplace_back("Access-Control-Allow-Methods", match.allowed);
    if (!request.cors_headers.empty()) {
      response.headers.emplace_back("Access-Control-Allow-Headers", request.cors_headers);
    }
    response.headers.emplace_back("Access-Control-Max-Age", "600");
  }
  return response;
}

ApiError RejectionError(const engine::Rejection& rejection) {
  using engine::RejectReason;
  switch (rejection.reason) {
    case RejectReason::kContextLength: return ContextLengthExceeded(rejection.message);
    case RejectReason::kTooLarge: return {.status = 413, .message = rejection.message, .code = "request_too_large"};
    case RejectReason::kQueueFull:
      return {.status = 429,
              .message = rejection.message,
              .type = "rate_limit_error",
              .code = "rate_limit_exceeded",
              .retry_after_seconds = RetryAfterSeconds(rejection.wait_seconds)};
    case RejectReason::kShuttingDown: return ShuttingDown();
    case RejectReason::kPoisoned: return ServerFault(rejection.message);
    case RejectReason::kInvalid: return InvalidBody(rejection.message);
  }
  return ServerFault(rejection.message);
}

}  // namespace

ApiService::ApiService(const ServerOptions& options, Deps deps)
    : options_(options),
      deps_(std::move(deps)),
      started_unix_seconds_(deps_.clock.UnixSeconds()),
      admin_({.generator = deps_.generator,
              .workers = deps_.workers,
              .post = deps_.post,
              .keys = deps_.keys,
              .settings = deps_.settings}),
      sessions_({.generator = deps_.generator, .workers = deps_.workers, .post = deps_.post, .keys = deps_.keys}),
      ids_(deps_.entropy),
      seeds_(SplitMix64(~deps_.entropy)()) {}

void ApiService::Handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const RouteMatch match = MatchRoute(request.target);
  const bool hidden = match.access == Access::kAdmin && !deps_.keys.has_admin();
  if (match.route == Route::kUnknown || hidden) {
    return exchange->Respond(ErrorResponse(NotFound(fmt::format("there is nothing at {}", Excerpt(request.target)))));
  }
  if (request.method == Method::kOptions) {
    return exchange->Respond(OptionsPage(request, match, !options_.cors_origin.empty()));
  }
  if (!Allows(match, request.method)) {
    HttpResponse response = ErrorResponse(MethodNotAllowed(request, match));
    response.headers.emplace_back("Allow", match.allowed);
    return exchange->Respond(std::move(response));
  }
  const std::optional<Sender> sender = SenderFor(match.access, request.authorization);
  if (!sender && match.access == Access::kAdmin) {
    return exchange->Respond(Unauthorized("admin", "invalid_admin_key"));
  }
  if (!sender) return exchange->Respond(Unauthorized("API", "invalid_api_key"));
  HandleAllowed(match, *sender, std::move(request), std::move(exchange));
}

std::optional<Sender> ApiService::SenderFor(Access access, std::string_view authorization) const {
  if (access == Access::kAnyone) return Sender{};
  if (access == Access::kAdmin || access == Access::kClientOrAdmin) {
    if (deps_.keys.IsAdmin(authorization)) return Sender{.admin = true};
    if (access == Access::kAdmin) return std::nullopt;
  }
  return deps_.keys.SenderOf(authorization);
}

void ApiService::HandleAllowed(const RouteMatch& match, const Sender& sender, HttpRequest request,
                               std::shared_ptr<Exchange> exchange) {
  if (match.route == Route::kKv) return admin_.Snapshot(std::move(exchange));
  if (match.route == Route::kKvClear) return admin_.Clear(std::move(exchange));
  if (match.route == Route::kKvDecisions) return admin_.Decisions(std::move(exchange));
  const bool generates = match.route == Route::kChatCompletions || match.route == Route::kCompletions;
  const bool of_sessions = match.access == Access::kClientOrAdmin;
  if (!generates && !of_sessions && match.route != Route::kKvProbe) return HandlePage(match, *exchange);
  const bool asks_only = request.method == Method::kGet || request.method == Method::kHead;
  if (draining_ && (generates || (of_sessions && !asks_only))) return exchange->Respond(ErrorResponse(ShuttingDown()));
  if (!request.has_length && (generates || !of_sessions || match.route == Route::kKvPrefetch)) {
    return exchange->Respond(
        ErrorResponse({.status = 411, .message = "the request has no body and no Content-Length"}));
  }
  const PrepareContext context{.model = deps_.model,
                               .default_max_tokens = options_.default_max_tokens,
                               .unix_seconds = deps_.clock.UnixSeconds(),
                               .salt = sender.salt,
                               .tenant = sender.tenant,
                               .caps = deps_.keys.TermsOf(sender.tenant).Most(),
                               .public_prefixes = &deps_.public_prefixes,
                               .session = request.session};
  if (of_sessions) return sessions_.Handle(match, sender, context, std::move(request), std::move(exchange));
  if (!generates) return admin_.Probe(context, std::move(request), std::move(exchange));
  const Endpoint endpoint = match.route == Route::kCompletions ? Endpoint::kCompletion : Endpoint::kChat;
  BeginPreparing(context, endpoint, std::move(request), std::move(exchange));
}

void ApiService::HandlePage(const RouteMatch& match, Exchange& exchange) {
  switch (match.route) {
    case Route::kHealth:
      return exchange.Respond(HealthPage(draining_, {seen_.tiers.degraded, seen_.sessions.degraded}));
    case Route::kVersion: return exchange.Respond(VersionPage(deps_.version));
    case Route::kMetrics: return exchange.Respond(MetricsPage(deps_.metrics));
    case Route::kModels: return exchange.Respond(ModelsPage(deps_.model, started_unix_seconds_));
    case Route::kModel: return exchange.Respond(ModelPage(deps_.model, match.argument, started_unix_seconds_));
    default: return exchange.Respond(RootPage(deps_.model));
  }
}

void ApiService::OnResponse(int status) { deps_.metrics.Add(Counter::kHttpResponses, 1, std::to_string(status)); }

void ApiService::OnTick() {
  const Nanos silence = std::chrono::seconds(options_.heartbeat);
  for (auto& [key, running] : running_) running.generation->SendHeartbeat(silence);
}

void ApiService::BeginPreparing(const PrepareContext& context, Endpoint endpoint, HttpRequest request,
                                std::shared_ptr<Exchange> exchange) {
  const uint64_t key = next_key_++;
  exchange->OnGone([this, key] { Forget(key); });
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  preparing_.emplace(key, Preparing{std::move(exchange), deps_.clock.Now(), gone});

  const size_t bytes = request.body.size();
  const auto shared = std::make_shared<HttpRequest>(std::move(request));
  deps_.workers.Submit(bytes, [this, key, endpoint, context, gone, shared] {
    if (gone->load(std::memory_order_relaxed)) return;
    const auto result = std::make_shared<ApiResult<PreparedRequest>>(PrepareRequest(context, endpoint, shared->body));
    deps_.post([this, key, result] { EndPreparing(key, *result); });
  });
}

void ApiService::EndPreparing(uint64_t key, ApiResult<PreparedRequest>& result) {
  auto node = preparing_.extract(key);
  if (node.empty()) return;
  if (const auto* error = std::get_if<ApiError>(&result)) {
    deps_.metrics.Add(Counter::kRequests, 1, "rejected");
    return node.mapped().exchange->Respond(ErrorResponse(*error));
  }
  StartGeneration(key, std::move(node.mapped()), std::get<PreparedRequest>(std::move(result)));
}

void ApiService::StartGeneration(uint64_t key, Preparing preparing, PreparedRequest prepared) {
  AnswerFormat::Head head;
  head.endpoint = prepared.api.endpoint;
  head.id = NewId(head.endpoint == Endpoint::kChat ? "chatcmpl-" : "cmpl-");
  head.model = prepared.api.model.empty() ? deps_.model.names[0] : prepared.api.model;
  head.fingerprint = deps_.model.fingerprint;
  head.created = deps_.clock.UnixSeconds();
  head.usage_in_chunks = prepared.api.include_usage;
  const TenantId tenant = prepared.tenant;
  Running& running = running_[key];
  running.generation =
      std::make_unique<Generation>(Generation::Context{deps_.model, deps_.clock, deps_.metrics}, std::move(prepared),
                                   std::move(head), std::move(preparing.exchange), preparing.arrived);
  for (size_t i = 0; i < running.generation->prompt_count(); ++i) {
    const RequestId id(next_request_++);
    running.ids.push_back(id);
    prompts_.emplace(id.value, PromptRef{key, i});
    engine::GenerateRequest request = running.generation->TakeRequest(i, id, seeds_());
    request.tenant = tenant;
    if (request.session) request.session->owner = deps_.keys.NameOf(tenant);
    deps_.generator.Submit(std::move(request));
  }
}

// The client has gone.
void ApiService::Forget(uint64_t key) {
  const auto preparing = preparing_.find(key);
  if (preparing != preparing_.end()) {
    preparing->second.gone->store(true, std::memory_order_relaxed);
    preparing_.erase(preparing);
    deps_.metrics.Add(Counter::kRequests, 1, "cancelled");
  } else if (running_.contains(key)) {
    Remove(key);
    deps_.metrics.Add(Counter::kRequests, 1, "cancelled");
  }
}

// Ends what still runs of it.
void ApiService::Remove(uint64_t key) {
  auto node = running_.extract(key);
  const Running& running = node.mapped();
  for (size_t i = 0; i < running.ids.size(); ++i) {
    prompts_.erase(running.ids[i].value);
    if (running.generation->running(i)) deps_.generator.Cancel(running.ids[i]);
  }
}

// Hands each event to its generation; events of forgotten requests are dropped.
template <class Event, class Consumer>
void ApiService::DeliverEach(const std::vector<Event>& events, Consumer consume) {
  for (const Event& event : events) {
    const auto prompt = prompts_.find(event.id.value);
    if (prompt == prompts_.end()) continue;
    Running& running = running_.at(prompt->second.key);
    if (!std::exchange(running.touched, true)) touched_.push_back(prompt->second.key);
    consume(*running.generation, prompt->second.prompt, event);
  }
}

void ApiService::Deliver(const engine::StepOutput& output) {
  DeliverEach(output.rejections, [](Generation& generation, size_t, const engine::Rejection& event) {
    generation.Fail(RejectionError(event));
  });
  DeliverEach(output.prompts, [](Generation& generation, size_t prompt, const engine::PromptEvent& event) {
    generation.OnPrompt(prompt, event);
  });
  DeliverEach(output.tokens, [](Generation& generation, size_t prompt, const engine::TokenEvent& event) {
    generation.OnToken(prompt, event);
  });
  DeliverEach(output.finishes, [](Generation& generation, size_t prompt, const engine::FinishEvent& event) {
    generation.OnFinish(prompt, event);
  });
}

void ApiService::OnSteps(const std::vector<engine::StepOutput>& outputs) {
  for (const engine::StepOutput& output : outputs) {
    Deliver(output);
    admin_.OnAnswers(output.answers, output.stats);
    sessions_.OnAnswers(output.session_answers);
    UpdateMetrics(output);
  }
  for (const uint64_t key : std::exchange(touched_, {})) {
    Running& running = running_.at(key);
    running.touched = false;
    running.generation->Flush();
    if (running.generation->done()) Remove(key);
  }
}

void ApiService::UpdateMetrics(const engine::StepOutput& output) {
  const engine::EngineStats& stats = output.stats;
  Metrics& metrics = deps_.metrics;
  metrics.Set(Gauge::kRunningSequences, stats.running_sequences);
  metrics.Set(Gauge::kWaitingRequests, stats.waiting_requests);
  metrics.Set(Gauge::kAwaitingRequests, stats.awaiting_requests);
  metrics.Set(Gauge::kCappedRequests, stats.capped_requests);
  metrics.Set(Gauge::kWaitingTenants, stats.waiting_tenants);
  metrics.Set(Gauge::kKvSlots, stats.total_slots);
  metrics.Set(Gauge::kKvFreeSlots, stats.free_slots);
  metrics.Set(Gauge::kKvIdleSlots, stats.idle_slots);
  metrics.Set(Gauge::kKvPromisedSlots, stats.promised_slots);
  metrics.Set(Gauge::kKvPinnedSlots, stats.pinned_slots);
  for (size_t i = 0; i < kStepTerms.size(); ++i) metrics.Set(Gauge::kStepCost, stats.step_curve[i], kStepTerms[i]);
  if (stats.steps != seen_.steps) {
    metrics.Observe(Histogram::kStepTime, ToSeconds(output.duration));
    if (output.predicted_seconds > 0) {
      metrics.Observe(Histogram::kStepTimeRatio,
                      ToSeconds(output.duration - output.stalled) / output.predicted_seconds);
    }
  }
  metrics.Add(Counter::kSteps, stats.steps - seen_.steps);
  metrics.Add(Counter::kStepFailures, stats.step_failures - seen_.step_failures);
  metrics.Add(Counter::kPromptTokensComputed, stats.prompt_tokens_computed - seen_.prompt_tokens_computed);
  metrics.Add(Counter::kPromptTokensCached, stats.prompt_tokens_cached - seen_.prompt_tokens_cached);
  metrics.Add(Counter::kTokensRecomputed, stats.tokens_recomputed - seen_.tokens_recomputed);
  metrics.Add(Counter::kPreemptions, stats.preemptions - seen_.preemptions);
  metrics.Add(Counter::kKvSlotsEvicted, stats.slots_evicted - seen_.slots_evicted);
  metrics.Add(Counter::kKvSlotsExpired, stats.slots_expired - seen_.slots_expired);
  metrics.Add(Counter::kKvSlotsScrubbed, stats.slots_scrubbed - seen_.slots_scrubbed);
  metrics.Add(Counter::kPins, stats.pins_whole - seen_.pins_whole, "whole");
  metrics.Add(Counter::kPins, stats.pins_shortened - seen_.pins_shortened, "shortened");
  metrics.Add(Counter::kPins, stats.pins_refused - seen_.pins_refused, "refused");
  metrics.Add(Counter::kTokensGenerated, stats.tokens_generated - seen_.tokens_generated);
  AddKvMetrics(seen_, stats, &metrics);
  seen_ = stats;
}

void ApiService::Clear() {
  admin_.Forget();
  sessions_.Forget();
  preparing_.clear();
  running_.clear();
  prompts_.clear();
}

std::string ApiService::NewId(std::string_view prefix) {
  return fmt::format("{}{:016x}{:016x}", prefix, ids_(), ids_());
}

}  // namespace cachalot::server
