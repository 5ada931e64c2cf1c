// WaitingOrder says in which order waiting requests are tried.
// Threads:   pure.
// Ownership: none.
// Invariant: requests of one tenant stand together. Among them, one that later ones have overtaken `patience` times
//            comes before all that have not, by arrival; of the others, whose longest prefix is resident comes first,
//            and equals by arrival. Requests of one prefix thus follow each other (SGLang, Theorem 3.1: the order of a
//            depth-first walk of their tree).
// Cost:      O(n log n), no allocation once the sizes were seen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/tenant.h"

namespace cachalot::sched {

struct WaitingView {
  uint64_t resident_tokens = 0;
  uint32_t overtaken = 0;  // how many times one of its tenant that arrived later was admitted before it
  TenantId tenant;
};

class WaitingOrder {
 public:
  // Indices into `waiting`, which is in the order of arrival; tenants ascend. Valid until the next call.
  std::span<const uint32_t> Of(std::span<const WaitingView> waiting, uint32_t patience);

 private:
  struct Key {
    uint32_t tenant;
    uint32_t index;
    uint64_t rank;
  };
  std::vector<Key> keys_;
  std::vector<uint32_t> order_;
};

}  // namespace cachalot::sched
