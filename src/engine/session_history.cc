// What the engine remembers of conversations: their histories as requests end, who still uses them, and when one is
// over.
#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/engine_state.h"
#include "kv/identity.h"

namespace cachalot::engine {
namespace {

constexpr uint32_t kEndedPerStep = 16;  // sessions, so that a step stays short

}  // namespace

std::optional<Rejection> Engine::State::RefuseBySession(const GenerateRequest& asked) const {
  if (!asked.session) return std::nullopt;
  const Status named = CheckName(*asked.session);
  if (named.ok()) return std::nullopt;
  return Rejection{asked.id, RejectReason::kInvalid, named.message()};
}

// Those of an earlier process, the least recently used first: where there are too many, they go, but for held ones.
// What is left of their time is known by the wall clock.
void Engine::State::TakeFoundSessions() {
  if (session_store == nullptr || std::exchange(found_taken, true)) return;
  std::vector<tier::StoredSession> found = session_store->TakeFound();
  std::ranges::stable_sort(found, {}, &tier::StoredSession::last_used);
  for (tier::StoredSession& record : found) {
    const tier::SessionKey key = record.key;
    const Nanos used_at = now - AgeOf(record, unix_seconds);
    const bool must = record.held();
    if (!PutSession({.record = std::move(record)}, used_at, must)) session_store->NoteDeleted(key);
  }
}

// The session that it names is in use from now on.
void Engine::State::BeginSession(Request& request) {
  if (!request.asked.session) return;
  request.session.emplace();
  const Session* const session = sessions.Find(*request.asked.session);
  if (session == nullptr) return;
  const std::vector<TokenId>& history = session->record.tokens;
  request.session->history_tokens = history.size();
  if (session->record.identity == identity) {
    request.session->extended_tokens = CommonTokens(history, request.asked.prompt);
  }
  totals.sessions.history_tokens += request.session->history_tokens;
  totals.sessions.extended_tokens += request.session->extended_tokens;
  UseSession(*request.asked.session);
}

void Engine::State::UseSession(const SessionName& name) {
  const bool suspended = sessions.Find(name)->record.suspended;
  sessions.Use(name, unix_seconds, now);
  sessions.SetHandedDown(name, false);
  if (session_store == nullptr) return;
  session_store->NoteUsed(KeyOf(name));
  if (suspended) session_store->NoteHeld(KeyOf(name));
}

// Of those that wait and run.
bool Engine::State::InUse(const SessionName& name) const {
  const auto uses = [&](const Request& request) { return request.asked.session == name; };
  return std::ranges::any_of(waiting, uses) || std::ranges::any_of(running, [&](const Request& request) {
           return uses(request) && request.open_choices() > 0;
         });
}

bool Engine::State::IsMoving(const SessionName& name) const {
  return std::ranges::any_of(moves, [&](const SessionMove& move) {
    return move.name == name && (move.answer.verb == SessionVerb::kSuspend || move.answer.verb == SessionVerb::kResume);
  });
}

// The choice, which was answered to its end, is what the session is from now on.
void Engine::State::KeepHistory(Request& request, const Choice& choice) {
  if (!request.asked.session) return;
  const SessionName& name = *request.asked.session;
  const Session* const old = sessions.Find(name);
  const std::span<const TokenId> tokens = HistoryOf(request, choice);
  Session session;
  session.record = {.key = KeyOf(name),
                    .identity = identity,
                    .scope = request.asked.scope,
                    .tokens = {tokens.begin(), tokens.end()},
                    .created = old == nullptr ? unix_seconds : old->record.created,
                    .last_used = unix_seconds,
                    .ttl_seconds = request.asked.session_ttl_seconds,
                    .pinned = old != nullptr && old->record.pinned};
  const bool extends = old != nullptr && old->record.identity == identity &&
                       old->record.scope == session.record.scope &&
                       old->record.ttl_seconds == session.record.ttl_seconds;
  const uint64_t common = extends ? CommonTokens(old->record.tokens, tokens) : 0;
  session.handed_down = false;
  const RetentionHints hints = HintsOf(request.asked);
  session.written_down = !hints.scrub;
  session.seen = options.prefix_cache ? SessionState::kHot : SessionState::kCold;
  request.session->kept = PutSession(std::move(session), now);
  if (!request.session->kept || session_store == nullptr) return;
  extends ? session_store->NoteExtended(KeyOf(name), common) : session_store->NotePut(KeyOf(name));
}

// False: there is no room for it, and it need not be put all the same. What it takes the place of is then as it was.
bool Engine::State::PutSession(Session session, Nanos used_at, bool must) {
  const SessionName name = NameOf(session.record.key);
  session.keys = kv::BlockKeys(session.record.identity, session.record.scope, kv.geometry().block_tokens,
                               KvTokensOf(session), kv::Tail::kShortToo);
  const auto keep = [&](const SessionName& other) { return InUse(other) || IsMoving(other); };
  const std::optional<std::vector<SessionName>> going = sessions.RoomFor(name, BytesOf(session), keep);
  if (!going && !must) {
    ++totals.sessions.refused;
    return false;
  }
  for (const SessionName& other : going.value_or(std::vector<SessionName>())) {
    EraseSession(other);
    ++totals.sessions.forgotten;
  }
  if (sessions.Find(name) == nullptr) ++totals.sessions.begun;
  LetGoOfPin(name);
  sessions.Put(std::move(session), used_at);
  PinSession(name);
  return true;
}

// What is hot of a pinned session stays so, as far as there is room among pins.
void Engine::State::PinSession(const SessionName& name) {
  LetGoOfPin(name);
  const Session& session = *sessions.Find(name);
  if (session.record.pinned && session.record.identity == identity) {
    sessions.SetPin(name, pins.Stand(session.record.scope, KvTokensOf(session)));
  }
}

void Engine::State::LetGoOfPin(const SessionName& name) {
  const Session* const session = sessions.Find(name);
  if (session == nullptr || session->pin.tokens == 0) return;
  pins.LetGo(session->pin);
  sessions.SetPin(name, {});
}

// Its history is gone; its KV is a cache like any other from now on.
void Engine::State::EraseSession(const SessionName& name) {
  LetGoOfPin(name);
  sessions.Erase(name);
  if (session_store != nullptr) session_store->NoteDeleted(KeyOf(name));
}

// All KV is to go: what was pinned is pinned again when it is there again.
void Engine::State::EndSessionPins() {
  for (const auto& [name, session] : sessions.all()) LetGoOfPin(name);
}

// Those whose time is over.
void Engine::State::EndSessions() {
  for (uint32_t ended = 0; ended < kEndedPerStep; ++ended) {
    const std::optional<Sessions::Due> expiry = sessions.NextExpiry();
    if (!expiry || expiry->at > now) return;
    if (InUse(expiry->name)) {
      UseSession(expiry->name);
    } else {
      const Status erased = DeleteSession(expiry->name).status();
      if (!erased.ok())
        LogWarning(fmt::format("KV of a session whose time is over stays on disk: {}", erased.message()));
    }
  }
}

// With its KV, but for what others have as well. Requests of it that wait or run are of no session any more.
Result<std::optional<tier::TransferId>> Engine::State::DeleteSession(const SessionName& name) {
  for (std::deque<Request>* requests : {&waiting, &running}) {
    for (Request& request : *requests) {
      if (request.asked.session == name) request.asked.session.reset();
    }
  }
  FailMoves(name, Invalid("the session was deleted meanwhile"));
  const Session& session = *sessions.Find(name);
  LetGoOfPin(name);
  pins.EndDue(now, UINT32_MAX);
  Result<std::optional<tier::TransferId>> erasure = std::optional<tier::TransferId>();
  if (session.record.identity == identity) {
    const uint64_t shared =
        std::max(SharedTokens(name, session, /*hot_only=*/false), session.record.scope.public_tokens);
    erasure =
        ForgetKv(session.record.scope, KvTokensOf(session), std::min<uint64_t>(shared, KvTokensOf(session).size()));
  }
  EraseSession(name);
  ++totals.sessions.ended;
  return erasure;
}

// Leading tokens, in whole blocks, that the history of another session has, too. `hot_only`: of one that is not handed
// down. Keys say so without tokens: each is that of a chain.
uint64_t Engine::State::SharedTokens(const SessionName& name, const Session& session, bool hot_only) const {
  uint64_t most = 0;
  for (const auto& [other_name, other] : sessions.all()) {
    if (other_name == name || (hot_only && other.handed_down)) continue;
    const uint64_t limit = std::min(session.keys.size(), other.keys.size());
    if (most >= limit || session.keys[most] != other.keys[most]) continue;
    for (uint64_t end = limit; most < end;) {
      const uint64_t middle = most + (end - most) / 2;
      (session.keys[middle] == other.keys[middle] ? most = middle + 1 : end = middle);
    }
  }
  return most * kv.geometry().block_tokens;
}

}  // namespace cachalot::engine
