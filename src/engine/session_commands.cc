// What is asked of sessions: what is answered at once, and what begins.
#include <algorithm>

#include <fmt/format.h>

#include "engine/engine_state.h"

namespace cachalot::engine {
namespace {

bool IsOfOneSession(SessionVerb verb) {
  return verb != SessionVerb::kList && verb != SessionVerb::kPrefetch && verb != SessionVerb::kRestore;
}

}  // namespace

void Engine::State::TakeSessionCommands(std::vector<SessionCommand> commands, StepOutput* out) {
  for (const SessionCommand& command : commands) {
    SessionMove move{.name = command.name, .answer = {.id = command.id, .verb = command.verb}};
    if (IsOfOneSession(command.verb) && sessions.Find(command.name) == nullptr) {
      move.answer.found = false;
    } else {
      BeginCommand(command, &move);
    }
    if (move.is_over()) {
      EndMove(std::move(move), out);
    } else {
      moves.push_back(std::move(move));
    }
  }
}

void Engine::State::BeginCommand(const SessionCommand& command, SessionMove* move) {
  switch (command.verb) {
    case SessionVerb::kList: return ListSessions(command, &move->answer);
    case SessionVerb::kShow: return;
    case SessionVerb::kSuspend: return BeginSuspend(move);
    case SessionVerb::kResume:
    case SessionVerb::kPrefetch: return BeginResume(command, move);
    case SessionVerb::kPin: return BeginPin(command.pinned, move);
    case SessionVerb::kFork: return BeginFork(command.other, move);
    case SessionVerb::kDelete: {
      Result<std::optional<tier::TransferId>> erasure = DeleteSession(command.name);
      move->Fail(erasure.status());
      if (erasure.ok()) move->erasure = *erasure;
      return AwaitSync(move);
    }
    case SessionVerb::kSave: return BeginSave(command.other, move);
    case SessionVerb::kRestore: return BeginRestore(command, move);
  }
}

void Engine::State::ListSessions(const SessionCommand& command, SessionAnswer* answer) const {
  const uint32_t limit = std::clamp(command.limit, 1u, kMostListedSessions);
  const SessionName first = command.every_owner ? SessionName{} : SessionName{command.name.owner, {}};
  const auto& all = sessions.all();
  for (auto at = std::max(first, command.after) == command.after ? all.upper_bound(command.after)
                                                                 : all.lower_bound(first);
       at != all.end() && (command.every_owner || at->first.owner == command.name.owner); ++at) {
    answer->more = answer->sessions.size() == limit;
    if (answer->more) return;
    answer->sessions.push_back(ViewOf(at->first, at->second));
  }
}

void Engine::State::BeginFork(const std::string& id, SessionMove* move) {
  const SessionName forked{move->name.owner, id};
  if (const Status named = CheckName(forked); !named.ok()) return move->Fail(named);
  if (sessions.Find(forked) != nullptr) return move->Fail(Invalid(fmt::format("session '{}' exists already", id)));
  const Session& original = *sessions.Find(move->name);
  Session session{.record = original.record, .handed_down = original.handed_down, .seen = original.seen};
  session.record.key = KeyOf(forked);
  session.record.created = session.record.last_used = unix_seconds;
  session.record.pinned = session.record.suspended = false;
  if (!PutSession(std::move(session), now)) {
    return move->Fail(Overloaded("there is no room for another session: see --max-sessions and --session-memory"));
  }
  if (session_store != nullptr) session_store->NotePut(KeyOf(forked));
  move->name = forked;
  AwaitSync(move);
}

void Engine::State::BeginPin(bool pinned, SessionMove* move) {
  if (pinned && pins.most_slots() == 0) {
    return move->Fail(Invalid("nothing can be pinned: --pin-budget is 0"));
  }
  if (pinned && !sessions.MayHold(move->name)) return move->Fail(NoRoomToHold());
  sessions.SetPinned(move->name, pinned);
  PinSession(move->name);
  move->answer.moved_tokens = sessions.Find(move->name)->pin.tokens;
  if (session_store != nullptr) session_store->NoteHeld(KeyOf(move->name));
  AwaitSync(move);
}

}  // namespace cachalot::engine
