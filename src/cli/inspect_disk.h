// InspectDisk prints what a folder of the disk tier holds.
// Threads:   main thread.
// Ownership: none.
// Invariant: the folder is not changed.
// Cost:      reads all footers, and every byte when payloads are checked.
#pragma once

#include <optional>
#include <string>

#include "base/hash.h"
#include "base/status.h"

namespace cachalot::cli {

struct InspectDiskOptions {
  bool check_payloads = false;
  bool json = false;
  std::optional<Digest> reusable_by;  // identity of a model: what it could use is marked
};

// kCorrupt, after printing, when the folder holds damage.
Status InspectDisk(const std::string& folder, const InspectDiskOptions& options);

}  // namespace cachalot::cli
