// What a KvStore answers an engine in one step, as an input log holds it.
// Threads:   plain data.
// Ownership: values.
// Invariant: a transfer is named as the store named it; ids ascend.
// Cost:      16 bytes per block of which something else is found than before, 9 per transfer that begins or ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/tier_rate.h"
#include "engine/changed_answers.h"

namespace cachalot::engine {

// What stats() and queued_load_bytes() say after a Poll or Clear; until the next, each start adds its own.
struct StoreLevels {
  bool well = true;
  uint32_t transfers = 0;
  uint64_t queued_load_bytes = 0;
  bool operator==(const StoreLevels&) const = default;
};

struct StoreEnd {
  uint64_t transfer = 0;
  bool well = false;
};

// What a store may refuse: keys of `refusals`.
enum class StoreConsent : uint8_t { kStaging = 0, kClear = 1 };

// Of rates and levels there is one key, 0.
struct StoreAnswers {
  std::vector<ChangedAnswer<uint32_t>> groups;
  std::vector<ChangedAnswer<Nanos>> deadlines;
  std::vector<ChangedAnswer<TierRate>> load_rates;
  std::vector<ChangedAnswer<StoreLevels>> levels;
  std::vector<ChangedAnswer<bool>> refusals;
  std::vector<uint64_t> starts;  // of transfers, in order; 0: refused
  std::vector<StoreEnd> ends;

  bool empty() const {
    return groups.empty() && deadlines.empty() && load_rates.empty() && levels.empty() && refusals.empty() &&
           starts.empty() && ends.empty();
  }
};

// Those that are asked again and again, on the side that writes them down or on the one that reads them.
template <template <class> class Side>
struct StoreQuestions {
  Side<uint32_t> groups{0};
  Side<Nanos> deadlines{Nanos::max()};
  Side<TierRate> load_rates{TierRate{}};
  Side<StoreLevels> levels{StoreLevels{}};
  Side<bool> refusals{false};
};

// Those of a step that is under way.
struct StoreNotes {
  StoreQuestions<AnswerWriter> asked;
  std::vector<uint64_t> starts;
  std::vector<StoreEnd> ends;

  // All of the step, which ends; nothing where there is nothing new.
  std::optional<StoreAnswers> Take();
};

// Of a block in `groups` and `deadlines`.
inline uint64_t AnswerKey(const Digest& block) {
  uint64_t key = 0;
  for (size_t i = 0; i < sizeof(key); ++i) key |= uint64_t{block[i]} << (8 * i);
  return key;
}

}  // namespace cachalot::engine
