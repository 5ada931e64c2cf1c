// ReturnRates learns how often KV that somebody leaves behind is asked for again, by what left it.
// Threads:   owned by the engine thread.
// Ownership: owns what it remembers: keys of blocks.
// Invariant: deterministic: equal calls give equal rates. A rate begins at its prior, forgets the old by and by, and
//            lies between 0 and 1. What is remembered is bounded.
// Cost:      O(log keys) per key.
//
// Of each class two sums are kept, of what was left and of what was asked for again; both lose a 256th with each that
// is left. What is not asked for again counts against the rate from the beginning: so it errs on the side of less
// writing while little is known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>

#include "base/hash.h"

namespace cachalot::sched {

enum class Leaver : uint8_t {
  kSession = 0,  // the end of a session's history
  kHistory = 1,  // of any other
  kPrompt = 2,   // of a prompt that is no session's: others may begin alike
  kBlock = 3,    // a block that the hot pool had no room for
};
inline constexpr size_t kLeavers = 4;

class ReturnRates {
 public:
  // Somebody left this block, and all before it in its chain. No effect while it is remembered.
  void Left(Leaver leaver, const Digest& key);
  // A prompt came that these blocks begin.
  void Seen(std::span<const Digest> keys);
  // That what is left is asked for again.
  double Of(Leaver leaver) const;

 private:
  struct Class {
    double left = 0;
    double returned = 0;
    std::map<Digest, uint64_t> waiting;                // when it was left, by a count
    std::deque<std::pair<Digest, uint64_t>> in_order;  // of leaving; those that were seen since included
    uint64_t count = 0;
  };
  std::array<Class, kLeavers> classes_;
};

}  // namespace cachalot::sched
