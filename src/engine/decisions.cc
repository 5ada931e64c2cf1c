// What was decided on the way up, from what, and what came of it.
#include <algorithm>
#include <utility>

#include "engine/decision_log.h"
#include "engine/engine_state.h"

namespace cachalot::engine {
namespace {

constexpr size_t kMostDecisions = 1024;

}  // namespace

void Engine::State::NoteDecision(Request& request, const sched::Decision& decision) {
  if (options.decision_log != nullptr) options.decision_log->Decided(request.asked.id, decision);
  if (up.decisions.size() == kMostDecisions) up.decisions.pop_front();
  request.decision = ++up.last_decision;
  request.resident_tokens = decision.view.hot_tokens;
  request.loaded_tokens = request.failed_blocks = 0;
  up.decisions.push_back({up.last_decision, request.asked.id, request.asked.session, now, decision});
}

// The choice has its first token since something was decided for the request.
void Engine::State::NoteFirstToken(Request& request) {
  const uint64_t number = std::exchange(request.decision, 0);
  if (number == 0) return;
  up.decided.push_back({.number = number,
                        .resident_tokens = request.resident_tokens,
                        .outcome = {.loaded_tokens = request.loaded_tokens, .failed_blocks = request.failed_blocks}});
}

// Of the step before this one, which began at `begun` and took so long.
void Engine::State::TellOutcomes(Nanos begun, Nanos duration) {
  for (Decided& one : std::exchange(up.decided, {})) {
    if (up.decisions.empty() || one.number < up.decisions.front().number) continue;
    ResumeRecord& record = up.decisions[one.number - up.decisions.front().number];
    one.outcome.ttft_seconds = ToSeconds((duration > Nanos(0) ? begun + duration : now) - record.at);
    one.outcome.computed_tokens = record.decision.view.prompt_tokens - one.resident_tokens - one.outcome.loaded_tokens;
    record.decision.outcome = one.outcome;
  }
}

Json Engine::State::DecisionsAsJson() const {
  Json::Array all;
  for (const ResumeRecord& record : up.decisions) {
    Json::Object one{{"request", static_cast<int64_t>(record.request.value)},
                     {"seconds_ago", ToSeconds(now - record.at)},
                     {"session", record.session ? Json(record.session->id) : Json()},
                     {"owner", record.session ? Json(record.session->owner) : Json()}};
    const Json decision = sched::DecisionAsJson(record.decision);
    for (const auto& [name, value] : *decision.AsObject()) one.emplace_back(name, value);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace cachalot::engine
