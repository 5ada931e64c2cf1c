// Session commands that take time: what they wait for, and what is then true.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/engine_state.h"

namespace cachalot::engine {
namespace {

constexpr uint32_t kHandedDownPerStep = 4;  // sessions, so that a step stays short
constexpr Nanos kHandDownAgain = std::chrono::seconds(10);
constexpr Nanos kLongestAhead = std::chrono::hours(24);

}  // namespace

// What ended since the last step lets moves go on.
void Engine::State::PollSessions(StepOutput* out) {
  if (session_store != nullptr) {
    const auto find = [&](const tier::SessionKey& key) {
      const Session* const session = sessions.Find(NameOf(key));
      return session == nullptr ? nullptr : &session->record;
    };
    for (const tier::DurableSessions::Ended& ended : session_store->Poll(find)) NoteSynced(ended);
    NoteSessionHealth();
  }
  for (const PrefetchEnd& ended : std::exchange(up.ended_prefetches, {})) NotePrefetched(ended);
  PollFile();
  for (size_t i = 0; i < moves.size();) {
    if (moves[i].write) NoteWritten(moves[i]);
    if (moves[i].copies && memory.Done(*moves[i].copies)) {
      EndCopies();
      moves[i].copies.reset();
    }
    if (!moves[i].waits() && !moves[i].is_over()) EndSuspend(&moves[i]);
    if (!moves[i].is_over()) {
      ++i;
      continue;
    }
    SessionMove move = std::move(moves[i]);
    moves.erase(moves.begin() + static_cast<ptrdiff_t>(i));
    EndMove(std::move(move), out);
  }
  if (const std::optional<SessionName> next = sessions.NextToSee(now)) {
    sessions.SetSeen(*next, ViewOf(*next, *sessions.Find(*next)).state);
  }
}

void Engine::State::NoteSessionHealth() {
  const Status health = session_store->health();
  if (health.ok() == sessions_were_well) return;
  sessions_were_well = health.ok();
  if (sessions_were_well) {
    LogInfo("sessions are written again");
  } else {
    LogWarning(fmt::format("sessions are not written for the time being, and suspends fail: {}", health.message()));
  }
}

void Engine::State::NoteSynced(const tier::DurableSessions::Ended& ended) {
  const auto move = std::ranges::find(moves, std::optional(ended.id), &SessionMove::sync);
  if (move == moves.end()) return;  // nobody waits for it any more
  move->sync.reset();
  move->answer.durable = ended.status.ok();
  move->Fail(ended.status);
}

void Engine::State::NoteWritten(SessionMove& move) {
  const std::optional<Status> ended = WriteFirstEnded(*move.write);
  if (!ended) return;
  move.write.reset();
  if (!ended->ok()) move.Fail(ended->Annotate("its KV stays hot, as it could not be written"));
}

// Of what was given to the disk tier, and was no load.
void Engine::State::NoteErased(const tier::KvStore::Ended& ended) {
  const auto move = std::ranges::find(moves, std::optional(ended.id), &SessionMove::erasure);
  if (move == moves.end()) return;
  move->erasure.reset();
  move->Fail(ended.status);
}

// All that was changed so far is to be durable before the answer.
void Engine::State::AwaitSync(SessionMove* move) {
  if (session_store != nullptr) move->sync = session_store->Sync();
}

// Nothing more comes of what is under way for this session but its answers.
void Engine::State::FailMoves(const SessionName& name, const Status& status) {
  for (SessionMove& move : moves) {
    if (move.name == name) move.Fail(status);
  }
}

void Engine::State::BeginSuspend(SessionMove* move) {
  const Session& session = *sessions.Find(move->name);
  if (InUse(move->name)) return move->Fail(Invalid("a request of the session waits or runs"));
  if (IsMoving(move->name)) return move->Fail(Invalid("the session is being suspended or resumed already"));
  if (session.record.pinned) return move->Fail(Invalid("the session is pinned"));
  if (move->commanded && !sessions.MayHold(move->name)) return move->Fail(NoRoomToHold());
  move->use = session.use;
  if (store != nullptr && session.written_down && session.record.identity == identity) {
    move->write = WriteFirst(move->name, session.record.scope, KvTokensOf(session));
  }
  if (move->commanded) SetSuspended(move->name, true);
  AwaitSync(move);
}

// From then until it is used again nothing but its end makes it forgotten.
void Engine::State::SetSuspended(const SessionName& name, bool suspended) {
  sessions.SetSuspended(name, suspended);
  if (session_store != nullptr) session_store->NoteHeld(KeyOf(name));
}

// It is durable: what nobody else has of it leaves the hot pool.
void Engine::State::EndSuspend(SessionMove* move) {
  move->handed_down = true;
  const Session* const session = sessions.Find(move->name);
  if (session == nullptr) return;
  if (session->use != move->use) return move->Fail(Invalid("a request of the session came meanwhile"));
  sessions.SetHandedDown(move->name, true);
  if (session->record.identity != identity) return;
  const std::span<const TokenId> tokens = KvTokensOf(*session);
  const uint64_t shared = SharedTokens(move->name, *session, /*hot_only=*/true);
  HandDown(session->record.scope, tokens, std::min<uint64_t>(shared, tokens.size()));
  if (!slot_copies.empty() && !slot_copies.back().tickets.empty()) move->copies = slot_copies.back().tickets.back();
  ++totals.sessions.suspended;
}

// Those that have been idle for long, if there is somewhere to go. One that cannot be handed down now, or whose KV then
// cannot be written, is tried again.
void Engine::State::HandDownIdle() {
  if (options.sessions.idle_seconds == 0 || (store == nullptr && host == nullptr)) return;
  for (uint32_t begun = 0; begun < kHandedDownPerStep; ++begun) {
    const std::optional<Sessions::Due> idle = sessions.NextIdle();
    if (!idle || idle->at > now) return;
    if (InUse(idle->name)) {
      UseSession(idle->name);
      continue;
    }
    SessionMove move{.name = idle->name, .answer = {.verb = SessionVerb::kSuspend}, .commanded = false};
    BeginSuspend(&move);
    sessions.PutOff(idle->name, now + kHandDownAgain);
    if (move.answer.status.ok()) moves.push_back(std::move(move));
  }
}

void Engine::State::EndMove(SessionMove move, StepOutput* out) {
  SessionAnswer& answer = move.answer;
  const bool of_one = answer.verb != SessionVerb::kList && answer.verb != SessionVerb::kPrefetch;
  const Session* const session = of_one ? sessions.Find(move.name) : nullptr;
  const bool suspends = move.commanded && answer.verb == SessionVerb::kSuspend && move.use > 0;
  if (session != nullptr && suspends && !answer.status.ok() && session->use == move.use) {
    SetSuspended(move.name, false);
  }
  if (session != nullptr) {
    const SessionView view = ViewOf(move.name, *session);
    sessions.SetSeen(move.name, view.state);
    if (answer.verb == SessionVerb::kSuspend) answer.moved_tokens = std::max(view.host.tokens, view.disk.tokens);
    answer.sessions.push_back(view);
  }
  if (!move.commanded) return;
  totals.sessions.failed_commands += !answer.status.ok();
  out->session_answers.push_back(std::move(answer));
}

void Engine::State::BeginResume(const SessionCommand& command, SessionMove* move) {
  const Nanos due = now + std::clamp(command.when, Nanos(0), kLongestAhead);
  if (command.verb == SessionVerb::kPrefetch) {
    move->prefetch = BeginPrefetch(command.scope, command.prompt, due, PrefetchFor::kCommand);
    return;
  }
  const Session& session = *sessions.Find(move->name);
  if (session.record.identity != identity) return;  // its KV is of no use
  move->prefetch = BeginPrefetch(session.record.scope, KvTokensOf(session), due, PrefetchFor::kCommand);
}

// What was asked for is hot, as far as there was room.
void Engine::State::NotePrefetched(const PrefetchEnd& ended) {
  const auto move = std::ranges::find(moves, std::optional(ended.id), &SessionMove::prefetch);
  if (move == moves.end()) return;
  move->prefetch.reset();
  if (move->answer.verb != SessionVerb::kPrefetch && sessions.Find(move->name) == nullptr) return;
  if (move->answer.verb == SessionVerb::kSave) return StartSave(&*move);
  move->answer.moved_tokens = ended.loaded_tokens;
  if (move->answer.verb != SessionVerb::kResume) return;
  UseSession(move->name);
  PinSession(move->name);
  ++totals.sessions.resumed;
}

void Engine::State::AddSessionStats(SessionStats* stats) const {
  stats->sessions = sessions.all().size();
  stats->hot = sessions.seen(SessionState::kHot);
  stats->warm = sessions.seen(SessionState::kWarm);
  stats->cold = sessions.seen(SessionState::kCold);
  stats->pinned = sessions.pinned();
  stats->degraded = session_store != nullptr && !session_store->health().ok();
}

std::optional<Nanos> Engine::State::NextSessionDue() const {
  std::optional<Nanos> due;
  const auto sooner = [&](Nanos moment) { due = due ? std::min(*due, moment) : moment; };
  const std::optional<Sessions::Due> idle = sessions.NextIdle();
  if (idle && options.sessions.idle_seconds > 0 && (store != nullptr || host != nullptr)) sooner(idle->at);
  if (const std::optional<Sessions::Due> expiry = sessions.NextExpiry()) sooner(expiry->at);
  if (session_store != nullptr) {
    if (!found_taken) sooner(now);
    if (const std::optional<Nanos> wake = session_store->WakeAt()) sooner(*wake);
  }
  if (archive != nullptr) {
    if (const std::optional<Nanos> wake = archive->WakeAt()) sooner(*wake);
  }
  return due;
}

}  // namespace cachalot::engine
