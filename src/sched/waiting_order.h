// OrderWaiting says in which order waiting requests are tried.
// Threads:   pure.
// Ownership: none.
// Invariant: a request that later ones have overtaken `patience` times comes before all that have not, by arrival;
//            among the others, whose longest prefix is resident comes first, and equals by arrival. Requests of one
//            prefix thus follow each other (SGLang, Theorem 3.1: the order of a depth-first walk of their tree).
// Cost:      O(n log n).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cachalot::sched {

struct WaitingView {
  uint64_t resident_tokens = 0;
  uint32_t overtaken = 0;  // how many that arrived later were admitted before it
};

// Indices into `waiting`, which is in the order of arrival.
std::vector<uint32_t> OrderWaiting(std::span<const WaitingView> waiting, uint32_t patience);

}  // namespace cachalot::sched
