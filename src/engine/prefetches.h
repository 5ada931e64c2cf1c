// Prefetch brings KV up before a request asks for it: for a conversation whose client will be back, or for one that
// waits.
// Threads:   plain data of the engine thread.
// Ownership: owns its promise and its load; its sequence ends with it, and leaves what came up to whoever finds it.
// Invariant: a prefetch ends exactly once, whatever becomes of its transfers. It takes no slot that is promised to a
//            request, gives way where one finds no room beside it, and is awaited by none: whoever needs what is on its
//            way up takes the load over, or does without.
// Cost:      none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/prefix_scope.h"
#include "engine/loading.h"
#include "kv/slot_budget.h"

namespace cachalot::engine {

using PrefetchId = Id<struct PrefetchTag, uint64_t>;

// Whether anybody is told of its end.
enum class PrefetchFor : uint8_t { kCommand, kQueue };

struct Prefetch {
  PrefetchId id;
  PrefixScope scope;
  std::vector<TokenId> tokens;
  Nanos start{0};    // of its load
  Nanos give_up{0};  // where there was no room until then, or requests came in between
  Nanos retry{0};    // the next time that there is no room, until it looks again
  bool yielded = false;
  PrefetchFor whom = PrefetchFor::kCommand;
  SequenceId sequence{0};
  kv::SlotPromise promise;
  uint64_t most_slots = 0;  // that it takes in all
  uint64_t own_slots = 0;   // of them: that nobody else has use for
  std::unique_ptr<Loading> loading;
  uint64_t loaded_tokens = 0;
};

struct PrefetchEnd {
  PrefetchId id;
  uint64_t tokens = 0;  // leading ones that are resident now
  uint64_t loaded_tokens = 0;
  bool whole = false;  // all that lower tiers had is up
};

}  // namespace cachalot::engine
