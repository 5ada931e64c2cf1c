// SessionMove is a session command under way: what it waits for, and what will be answered.
// Threads:   plain data of the engine thread.
// Ownership: owns its answer.
// Invariant: it is complete once it waits for nothing.
// Cost:      none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/status.h"
#include "engine/prefetches.h"
#include "engine/session.h"
#include "engine/way_down.h"
#include "exec/device_memory.h"
#include "tier/durable_sessions.h"

namespace cachalot::engine {

struct SessionMove {
  SessionName name;
  SessionAnswer answer;   // so far
  bool commanded = true;  // else nobody is told: it has been idle for long
  uint64_t use = 0;       // the session's last one, when it began

  // What it waits for.
  std::optional<WriteTicket> write;         // of its KV to disk
  std::optional<tier::TransferId> erasure;  // of its KV on disk
  std::optional<tier::DurableSessions::SyncId> sync;

  std::optional<PrefetchId> prefetch;
  bool file = false;      // it is being saved or restored
  std::string file_name;  // of kSave

  std::optional<exec::CopyTicket> copies;  // to host memory, the last of them
  bool handed_down = false;                // of kSuspend: it has let go of its KV

  bool waits() const { return write || erasure || sync || prefetch || file || copies; }
  // It has done all that it was to do.
  bool is_over() const {
    return !waits() && (handed_down || answer.verb != SessionVerb::kSuspend || !answer.found || !answer.status.ok());
  }
  void Fail(Status status) {
    if (answer.status.ok()) answer.status = std::move(status);
  }
};

}  // namespace cachalot::engine
