// SessionOptions: how many conversations are remembered, and how soon an idle one leaves the hot pool.
// Threads:   plain data.
// Ownership: none.
// Invariant: each setting is declared once (base/options.h).
// Cost:      none.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace cachalot::engine {

struct SessionOptions {
  uint32_t most = 20000;       // of all owners; 0: none is remembered
  uint32_t most_of_owner = 0;  // 0: as many as of all
  ByteSize memory{uint64_t{512} << 20};
  uint32_t idle_seconds = 0;  // 0: they stay hot until there is need
  template <class F>
  void Visit(F&& f) {
    f("max-sessions", most,
      "Sessions that are remembered; for one more the least recently used idle one is forgotten. 0: none.");
    f("max-owner-sessions", most_of_owner, "Most of them that one tenant has. 0: no cap but --max-sessions.");
    f("session-memory", memory, "Most memory for the token histories of sessions; as with --max-sessions.");
    f("idle-timeout", idle_seconds,
      "Seconds after which an idle session's KV leaves the hot pool for lower tiers. 0: once room is needed.");
  }
};

}  // namespace cachalot::engine
