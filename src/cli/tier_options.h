// TierOptions: where KV goes that the hot pool has no room for, and that outlives the process.
// Threads:   plain data.
// Ownership: none.
// Invariant: each setting is declared once (base/options.h).
// Cost:      none.
#pragma once

#include <string>

#include "base/units.h"

namespace cachalot::cli {

struct TierOptions {
  std::string disk_path;
  ByteSize disk_size;
  ByteSize disk_min_free{uint64_t{1} << 30};
  template <class F>
  void Visit(F&& f) {
    f("disk-path", disk_path,
      "Folder that keeps KV of earlier requests, also over restarts; one process at a time. Empty: none.");
    f("disk-size", disk_size, "Most that the files in --disk-path may occupy, e.g. 20GiB.");
    f("disk-min-free", disk_min_free, "Room on that disk that is left to others.");
  }
};

}  // namespace cachalot::cli
