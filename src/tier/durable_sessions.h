// DurableSessions is what the engine sees of the place where its sessions last: it says which ones changed, and is told
// when that is on disk.
// Threads:   belongs to the engine thread.
// Ownership: that of the implementation; the table of sessions is the caller's.
// Invariant: every Sync() ends exactly once. One that ended well: all that was noted before it survives a crash, and
//            what was deleted before it never comes back.
// Cost:      no call waits for the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "tier/stored_session.h"

namespace cachalot::tier {

class DurableSessions {
 public:
  using SyncId = Id<struct SessionSyncTag, uint64_t>;  // 1, 2, ... in the order of the calls
  struct Ended {
    SyncId id;
    Status status;
  };
  // The session as it is now; null: there is none.
  using Lookup = std::function<const StoredSession*(const SessionKey&)>;

  virtual ~DurableSessions() = default;

  // Those of an earlier process, by key; nothing the second time.
  virtual std::vector<StoredSession> TakeFound() = 0;

  // It is new, or another one in its place, or something else about it changed.
  virtual void NotePut(const SessionKey& key) = 0;
  // Its tokens from `from_position` on, which is no more than it had or has, are others, and it was used.
  virtual void NoteExtended(const SessionKey& key, uint64_t from_position) = 0;
  virtual void NoteUsed(const SessionKey& key) = 0;
  virtual void NoteHeld(const SessionKey& key) = 0;  // pinned or suspended, or no longer
  virtual void NoteDeleted(const SessionKey& key) = 0;

  virtual SyncId Sync() = 0;
  // What ended since the last call. Begins to write what was noted, if nothing is being written.
  virtual std::vector<Ended> Poll(const Lookup& find) = 0;
  // Called from any thread whenever there is something to Poll, until it is replaced; not under way once this returns.
  virtual void OnEnd(std::function<void()> call) = 0;
  // When Poll will have something to do without a call.
  virtual std::optional<Nanos> WakeAt() const = 0;
  // All that was noted is on disk.
  virtual bool idle() const = 0;
  // OK, or why nothing is written for the time being. As of the last Poll.
  virtual Status health() const = 0;
};

}  // namespace cachalot::tier
