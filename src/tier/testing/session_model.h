// SessionModel is what a session journal ought to hold: plain maps, one for every moment since the last sync.
// Threads:   one.
// Ownership: owns its maps.
// Invariant: moments().front() is what is surely on disk, moments().back() what was last asked for.
// Cost:      a copy of the table per change.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/random.h"
#include "tier/session_journal.h"
#include "tier/stored_session.h"

namespace cachalot::tier {

using SessionTable = std::map<SessionKey, StoredSession>;

SessionTable TableOf(const std::vector<StoredSession>& sessions);

class SessionModel {
 public:
  // Makes one random change to the journal and to the model, out of a dozen sessions of three owners.
  void ChangeBoth(SessionJournal& journal, SplitMix64& random);
  // The journal's Sync() succeeded.
  void Synced() { moments_.erase(moments_.begin(), moments_.end() - 1); }
  // After a crash: false unless this is one of the moments.
  bool Recovered(const std::vector<StoredSession>& sessions);

  const std::vector<SessionTable>& moments() const { return moments_; }

 private:
  std::vector<SessionTable> moments_{1};
};

}  // namespace cachalot::tier
