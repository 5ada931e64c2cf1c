// Sessions is the table of conversations: their histories, in the order of their names and of their last use.
// Threads:   owned by the engine thread.
// Ownership: owns the sessions.
// Invariant: at most as many, of all owners and of one, and as many bytes, as the options say, once whoever puts one in
//            has let go of what RoomFor named; but for held ones that were found under options that were wider. Equal
//            calls give equal tables.
// Cost:      O(log sessions), and copies of what is put in.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "engine/session.h"
#include "engine/session_options.h"
#include "kv/pin_table.h"
#include "tier/stored_session.h"

namespace cachalot::engine {

struct Session {
  tier::StoredSession record;
  std::vector<Digest> keys;  // of the blocks of KvTokensOf

  // Of this process only.
  uint64_t use = 0;                         // counts uses of all sessions
  Nanos used_at{0};                         // by the engine's clock
  kv::PinTable::Standing pin;               // without tokens: there is none
  bool written_down = true;                 // its KV may go to disk
  bool handed_down = true;                  // its KV need not be hot
  Nanos hand_down_at{0};                    // else when it need not be any more
  SessionState seen = SessionState::kCold;  // when it was last looked at
};

// kInvalid, with what is expected.
Status CheckName(const SessionName& name);
// What a client is told that wishes to hold one more than may be.
Status NoRoomToHold();

// How long ago it was used, by the wall clock, which may have jumped: never less than nothing.
Nanos AgeOf(const tier::StoredSession& record, uint64_t unix_seconds);

// Bytes that it is counted with.
uint64_t BytesOf(const Session& session);

inline tier::SessionKey KeyOf(const SessionName& name) { return {name.owner, name.id}; }
inline SessionName NameOf(const tier::SessionKey& key) { return {key.owner, key.id}; }

// Those of its history whose KV there was: the last token of an answer never ran.
inline std::span<const TokenId> KvTokensOf(const Session& session) {
  const std::span<const TokenId> tokens = session.record.tokens;
  return tokens.first(tokens.empty() ? 0 : tokens.size() - 1);
}

class Sessions {
 public:
  using Table = std::map<SessionName, Session>;
  // One that must stay.
  using Keep = std::function<bool(const SessionName&)>;

  explicit Sessions(const SessionOptions& options) : options_(options) {}

  const Session* Find(const SessionName& name) const;
  const Table& all() const { return table_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t pinned() const { return pinned_; }
  // In the state that they were last seen in.
  uint64_t seen(SessionState state) const { return seen_[static_cast<size_t>(state)]; }

  // Those that are to be erased before a session of so many bytes is put in under this name: the least recently used,
  // but for held ones and those that `keep` names. Nothing: there is no room whatever goes.
  std::optional<std::vector<SessionName>> RoomFor(const SessionName& name, uint64_t bytes, const Keep& keep) const;
  // Whether this one may be held beside those that are: they leave a quarter of all room to others. Requires that it is
  // there.
  bool MayHold(const SessionName& name) const;
  // In the place of one of that name, if any; as used at that moment, which may be negative: an earlier process.
  const Session& Put(Session session, Nanos used_at);
  void Erase(const SessionName& name);

  // All of these require that it is there. One that is used is not suspended any more.
  void Use(const SessionName& name, uint64_t unix_seconds, Nanos now);
  void SetPinned(const SessionName& name, bool pinned);
  void SetSuspended(const SessionName& name, bool suspended);
  void SetPin(const SessionName& name, const kv::PinTable::Standing& pin);
  void SetHandedDown(const SessionName& name, bool handed_down);
  // It is not handed down before.
  void PutOff(const SessionName& name, Nanos hand_down_at);
  void SetSeen(const SessionName& name, SessionState state);

  struct Due {
    Nanos at{0};
    SessionName name;
    auto operator<=>(const Due&) const = default;
  };
  // Of those that are not handed down, the first one to be: idle for as long as the options say, or put off until then.
  std::optional<Due> NextIdle() const;
  // The first one to be past its TTL.
  std::optional<Due> NextExpiry() const;
  // Whose state is to be seen next: all in turn, one in 10 ms. Nothing: it is too early, or there are none.
  std::optional<SessionName> NextToSee(Nanos now);

 private:
  Session& At(const SessionName& name) { return table_.at(name); }
  // What else knows of a session: `change` may be made to it between the two.
  void Unlist(const SessionName& name, const Session& session);
  void List(const SessionName& name, const Session& session);
  uint64_t most_of_owner() const { return options_.most_of_owner == 0 ? options_.most : options_.most_of_owner; }

  const SessionOptions options_;
  Table table_;
  std::map<uint64_t, SessionName> by_use_;
  std::set<Due> awake_;      // not handed down
  std::set<Due> by_expiry_;  // with a TTL, which the wall clock, as it may jump, has no part in
  std::map<std::string, uint64_t> of_owner_;
  std::array<uint64_t, 3> seen_{};  // by SessionState
  SessionName looked_at_;
  Nanos next_look_{0};
  uint64_t bytes_ = 0;
  uint64_t pinned_ = 0;
  uint64_t last_use_ = 0;
};

}  // namespace cachalot::engine
