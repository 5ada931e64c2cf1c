// Sessions are conversations that outlive their requests: what a client may ask of one, and what it is told.
// Threads:   plain values; they cross threads by value.
// Ownership: each owns what it holds.
// Invariant: a command has exactly one answer, with its id; some come many steps later. A session changes what is kept
//            and how soon it is back, never an answer: a request's prompt is a function of the request alone.
// Cost:      none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/prefix_scope.h"
#include "base/status.h"

namespace cachalot::engine {

inline constexpr size_t kMostSessionNameBytes = 128;  // of an owner or an id

// Names a conversation, for one owner.
struct SessionName {
  std::string owner;  // name of the tenant; empty where there are no keys
  std::string id;     // chosen by the client
  auto operator<=>(const SessionName&) const = default;
};

// Where most of a session's KV is found now.
enum class SessionState : uint8_t { kHot = 0, kWarm = 1, kCold = 2 };

enum class SessionVerb : uint8_t {
  kList = 0,
  kShow = 1,
  kSuspend = 2,  // its KV goes to a lower tier and leaves the hot pool; answered once that and its history are durable
  kResume = 3,   // its KV comes up; answered once it is there
  kPin = 4,      // or unpin
  kFork = 5,
  kDelete = 6,  // with its KV in lower tiers, as far as nobody else has it; durable once answered
  kSave = 7,    // into a file
  kRestore = 8,
  kPrefetch = 9,  // as kResume, for a prompt that is no session
};

inline constexpr uint32_t kMostListedSessions = 1000;  // in one answer

struct SessionCommand {
  Id<struct SessionCommandTag, uint64_t> id;
  SessionVerb verb = SessionVerb::kList;
  SessionName name;  // kList: of this owner, or of all where `every_owner`
  bool every_owner = false;
  SessionName after;            // kList: those whose names follow it
  uint32_t limit = 100;         // kList: so many at most; see kMostListedSessions
  bool pinned = false;          // kPin
  std::string other;            // kFork: the new session's id; kSave and kRestore: a file's name, without folder
  std::vector<TokenId> prompt;  // kPrefetch
  PrefixScope scope;            // kPrefetch
  Nanos when{0};                // kResume, kPrefetch: from now, when its client is thought to return
};

// Leading tokens of a history that a tier has, and their bytes.
struct TierShare {
  uint64_t tokens = 0;
  uint64_t bytes = 0;
};

struct SessionView {
  SessionName name;
  SessionState state = SessionState::kCold;
  uint64_t tokens = 0;   // of its history
  uint64_t created = 0;  // wall time in seconds, as is last_used
  uint64_t last_used = 0;
  uint64_t ttl_seconds = 0;  // after last_used; 0: none
  bool pinned = false;
  bool in_use = false;  // a request of it waits or runs
  TierShare hot, host, disk;
  uint64_t reusable_tokens = 0;        // that the next request which continues it would not compute
  double recompute_seconds = 0;        // until its history's KV is there
  std::optional<double> load_seconds;  // nothing: no lower tier has more than is hot
  bool other_model = false;            // its KV was computed with another identity and is of no use
};

struct SessionAnswer {
  Id<struct SessionCommandTag, uint64_t> id;
  SessionVerb verb = SessionVerb::kList;
  bool found = true;  // false: there is no such session, or file to restore, and nothing was done
  Status status;      // kInvalid: it exists already, or is in use; kUnavailable: the disk fails; else what is said
  std::vector<SessionView> sessions;  // kList: by name; else the one, as it is afterwards; none after kDelete
  bool more = false;                  // kList: others follow
  uint64_t moved_tokens =
      0;  // kSuspend: that lower tiers have; kResume, kRestore, kPrefetch: that came up; kPin: pinned
  uint64_t moved_bytes = 0;  // kSave, kRestore: of the file
  bool durable = false;      // kSuspend, kDelete, kFork, kPin: it survives a crash
};

using SessionCommandId = decltype(SessionCommand::id);

// What a request's session was to it.
struct SessionReport {
  uint64_t history_tokens = 0;   // before
  uint64_t extended_tokens = 0;  // of them, those that the prompt begins with
  bool kept = false;             // its history is now what the request and its answer are
};

// Of all owners together.
struct SessionStats {
  uint64_t sessions = 0;  // now
  uint64_t hot = 0;       // of them, by state
  uint64_t warm = 0;
  uint64_t cold = 0;
  uint64_t pinned = 0;
  uint64_t begun = 0;      // since the start, as is all that follows; forks and restored ones included
  uint64_t ended = 0;      // deleted, or past their TTL
  uint64_t forgotten = 0;  // to make room for others
  uint64_t refused = 0;    // that there was no room for
  uint64_t suspended = 0;
  uint64_t resumed = 0;          // by command or hint
  uint64_t history_tokens = 0;   // of the sessions of requests, before these
  uint64_t extended_tokens = 0;  // of them, those that the prompts began with
  uint64_t failed_commands = 0;  // that ended with an error
  bool degraded = false;         // changes are not written for the time being
};

}  // namespace cachalot::engine
