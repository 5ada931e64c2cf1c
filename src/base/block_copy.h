// BlockCopy asks for one slot's bytes in another slot of the same pool.
// Threads:   plain data.
// Ownership: none.
// Invariant: from != to; within one list no `to` is also a `from`.
// Cost:      none.
#pragma once

#include "base/ids.h"

namespace cachalot {

struct BlockCopy {
  SlotId from;
  SlotId to;
};

}  // namespace cachalot
