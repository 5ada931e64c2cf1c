#include "engine/sessions.h"

#include <algorithm>

#include <fmt/format.h>

namespace cachalot::engine {
namespace {

constexpr Nanos kLookEvery{10'000'000};  // a look takes microseconds for every thousand tokens

constexpr uint64_t kMostSeconds = uint64_t{1} << 31;  // of a record from a file

Nanos Seconds(uint64_t seconds) { return std::chrono::seconds(std::min(seconds, kMostSeconds)); }

Nanos EndOf(const Session& session) { return session.used_at + Seconds(session.record.ttl_seconds); }

}  // namespace

Status CheckName(const SessionName& name) {
  if (!name.id.empty() && std::max(name.id.size(), name.owner.size()) <= kMostSessionNameBytes) return OkStatus();
  return Invalid(fmt::format("a session's id has {} bytes and its owner's name {}; expected 1 to {}", name.id.size(),
                             name.owner.size(), kMostSessionNameBytes));
}

Status NoRoomToHold() {
  return Overloaded(
      "sessions that are suspended or pinned take all the room that they may: delete some, use them, or see "
      "--max-sessions, --max-owner-sessions, --session-memory and --disk-size");
}

Nanos AgeOf(const tier::StoredSession& record, uint64_t unix_seconds) {
  return Seconds(unix_seconds - std::min(unix_seconds, record.last_used));
}

uint64_t BytesOf(const Session& session) {
  constexpr uint64_t kFixed = 512;  // names, nodes of the table
  return kFixed + session.record.tokens.size() * sizeof(TokenId) + session.keys.size() * sizeof(Digest);
}

const Session* Sessions::Find(const SessionName& name) const {
  const auto found = table_.find(name);
  return found == table_.end() ? nullptr : &found->second;
}

std::optional<std::vector<SessionName>> Sessions::RoomFor(const SessionName& name, uint64_t bytes,
                                                          const Keep& keep) const {
  const Session* const old = Find(name);
  const auto owned = of_owner_.find(name.owner);
  const uint64_t added = old == nullptr ? 1 : 0;
  uint64_t all = table_.size() + added, own = (owned == of_owner_.end() ? 0 : owned->second) + added;
  uint64_t total = bytes_ + bytes - (old == nullptr ? 0 : BytesOf(*old));
  std::vector<SessionName> going;
  for (const auto& [use, candidate] : by_use_) {
    const bool too_many = all > options_.most || total > options_.memory.bytes, too_many_own = own > most_of_owner();
    if (!too_many && !too_many_own) break;
    if (candidate == name || (!too_many && candidate.owner != name.owner)) continue;
    const Session& session = table_.at(candidate);
    if (session.record.held() || keep(candidate)) continue;
    going.push_back(candidate);
    --all;
    own -= candidate.owner == name.owner ? 1 : 0;
    total -= BytesOf(session);
  }
  if (all > options_.most || own > most_of_owner() || total > options_.memory.bytes) return std::nullopt;
  return going;
}

bool Sessions::MayHold(const SessionName& name) const {
  const auto share = [](uint64_t room) { return room - room / 4; };
  uint64_t all = 0, own = 0, total = 0;
  for (const auto& [other, session] : table_) {
    if (!session.record.held() && other != name) continue;
    ++all;
    own += other.owner == name.owner;
    total += BytesOf(session);
  }
  return all <= share(options_.most) && own <= share(most_of_owner()) && total <= share(options_.memory.bytes);
}

void Sessions::Unlist(const SessionName& name, const Session& session) {
  by_use_.erase(session.use);
  if (!session.handed_down) awake_.erase({session.hand_down_at, name});
  if (session.record.ttl_seconds > 0) by_expiry_.erase({EndOf(session), name});
  if (--of_owner_[name.owner] == 0) of_owner_.erase(name.owner);
  --seen_[static_cast<size_t>(session.seen)];
  bytes_ -= BytesOf(session);
  pinned_ -= session.record.pinned;
}

void Sessions::List(const SessionName& name, const Session& session) {
  by_use_.emplace(session.use, name);
  if (!session.handed_down) awake_.insert({session.hand_down_at, name});
  if (session.record.ttl_seconds > 0) by_expiry_.insert({EndOf(session), name});
  ++of_owner_[name.owner];
  ++seen_[static_cast<size_t>(session.seen)];
  bytes_ += BytesOf(session);
  pinned_ += session.record.pinned;
}

const Session& Sessions::Put(Session session, Nanos used_at) {
  const SessionName name = NameOf(session.record.key);
  Erase(name);
  session.use = ++last_use_;
  session.used_at = used_at;
  session.hand_down_at = used_at + std::chrono::seconds(options_.idle_seconds);
  const Session& kept = table_.emplace(name, std::move(session)).first->second;
  List(name, kept);
  return kept;
}

void Sessions::Erase(const SessionName& name) {
  const auto found = table_.find(name);
  if (found == table_.end()) return;
  Unlist(name, found->second);
  table_.erase(found);
}

void Sessions::Use(const SessionName& name, uint64_t unix_seconds, Nanos now) {
  Session& session = At(name);
  Unlist(name, session);
  session.use = ++last_use_;
  session.used_at = now;
  session.hand_down_at = now + std::chrono::seconds(options_.idle_seconds);
  session.record.last_used = unix_seconds;
  session.record.suspended = false;
  List(name, session);
}

void Sessions::SetPinned(const SessionName& name, bool pinned) {
  Session& session = At(name);
  Unlist(name, session);
  session.record.pinned = pinned;
  List(name, session);
}

void Sessions::SetSuspended(const SessionName& name, bool suspended) { At(name).record.suspended = suspended; }

void Sessions::SetPin(const SessionName& name, const kv::PinTable::Standing& pin) { At(name).pin = pin; }

void Sessions::SetHandedDown(const SessionName& name, bool handed_down) {
  Session& session = At(name);
  Unlist(name, session);
  session.handed_down = handed_down;
  List(name, session);
}

void Sessions::PutOff(const SessionName& name, Nanos hand_down_at) {
  Session& session = At(name);
  Unlist(name, session);
  session.hand_down_at = hand_down_at;
  List(name, session);
}

void Sessions::SetSeen(const SessionName& name, SessionState state) {
  Session& session = At(name);
  --seen_[static_cast<size_t>(session.seen)];
  session.seen = state;
  ++seen_[static_cast<size_t>(session.seen)];
}

std::optional<Sessions::Due> Sessions::NextIdle() const {
  if (awake_.empty()) return std::nullopt;
  return *awake_.begin();
}

std::optional<Sessions::Due> Sessions::NextExpiry() const {
  if (by_expiry_.empty()) return std::nullopt;
  return *by_expiry_.begin();
}

std::optional<SessionName> Sessions::NextToSee(Nanos now) {
  if (table_.empty() || now < next_look_) return std::nullopt;
  next_look_ = now + kLookEvery;
  const auto next = table_.upper_bound(looked_at_);
  looked_at_ = (next == table_.end() ? table_.begin() : next)->first;
  return looked_at_;
}

}  // namespace cachalot::engine
