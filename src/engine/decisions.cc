// What was decided on the way up and on the way down, from what, and what came of it.
#include "engine/decisions.h"

#include <utility>

#include "engine/decision_log.h"
#include "engine/engine_state.h"

namespace cachalot::engine {

void Engine::State::NoteDecision(Request& request, const sched::Decision& decision) {
  EndDecision(request, sched::ResumeEnd::kDecidedAgain);
  if (options.decision_log != nullptr) options.decision_log->Decided(request.asked.id, decision);
  request.decision = up.decisions.Add({request.asked.id, request.asked.session, now, decision});
  request.loaded_tokens = request.computed_tokens = request.failed_blocks = 0;
}

// What came of the last decision about it is known, if that is not told yet; a first token has its time once its step
// has ended.
void Engine::State::EndDecision(Request& request, sched::ResumeEnd end) {
  const uint64_t number = std::exchange(request.decision, 0);
  if (number == 0) return;
  const sched::ResumeOutcome outcome{.end = end,
                                     .loaded_tokens = request.loaded_tokens,
                                     .computed_tokens = request.computed_tokens,
                                     .failed_blocks = request.failed_blocks};
  if (end == sched::ResumeEnd::kFirstToken) {
    up.decided.push_back({number, outcome});
  } else if (ResumeRecord* const record = up.decisions.Find(number)) {
    record->decision.outcome = outcome;
  }
}

// Of the step before this one, which began at `begun` and took so long.
void Engine::State::TellOutcomes(Nanos begun, Nanos duration) {
  for (Decided& one : std::exchange(up.decided, {})) {
    ResumeRecord* const record = up.decisions.Find(one.number);
    if (record == nullptr) continue;
    one.outcome.ttft_seconds = ToSeconds((duration > Nanos(0) ? begun + duration : now) - record->at);
    record->decision.outcome = one.outcome;
  }
}

// Returns its number.
uint64_t Engine::State::NoteDown(DownRecord record) {
  if (options.decision_log != nullptr) options.decision_log->Decided(record.decision);
  record.at = now;
  return down.decisions.Add(std::move(record));
}

namespace {

Json AsJson(const auto& records, Nanos now) {
  Json::Array all;
  for (const auto& record : records) {
    const std::optional<RequestId> request = record.request;
    Json::Object one{{"request", request ? Json(static_cast<int64_t>(request->value)) : Json()},
                     {"seconds_ago", ToSeconds(now - record.at)},
                     {"session", record.session ? Json(record.session->id) : Json()},
                     {"owner", record.session ? Json(record.session->owner) : Json()}};
    const Json decision = sched::DecisionAsJson(record.decision);
    for (const auto& [name, value] : *decision.AsObject()) one.emplace_back(name, value);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

Json DecisionsAsJson(const Latest<ResumeRecord>& records, Nanos now) { return AsJson(records, now); }
Json DecisionsAsJson(const Latest<DownRecord>& records, Nanos now) { return AsJson(records, now); }

}  // namespace cachalot::engine
