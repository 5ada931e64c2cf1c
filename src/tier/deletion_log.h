// DeletionLog remembers, durably, which keys were deleted and when: records written before that are never found again.
// Threads:   belongs to one.
// Ownership: owns its file, <folder>/cachalot.deletions.
// Invariant: what Store returned OK for survives a crash at any moment and one damaged page anywhere. A log that lost
//            anything does not load: whoever meets one has to take every key for deleted.
// Cost:      Store appends two pages per 100 keys and syncs once; now and then it writes the file anew.
//
// The file also holds the number of the present opening of its folder. Sequence numbers begin with it, so that no
// record, not even one that a crash lost from sight, ever has a number that is given again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/hash.h"
#include "base/status.h"
#include "tier/disk_index.h"

namespace cachalot::tier {

inline constexpr const char* kDeletionFile = "cachalot.deletions";
inline constexpr const char* kNewDeletionFile = "cachalot.deletions.new";
inline constexpr uint64_t kMaxDeletionLogBytes = uint64_t{1} << 28;

using Deletions = std::unordered_map<Digest, uint64_t, DigestHash>;  // key to sequence

struct LoadedDeletions {
  uint32_t opening = 0;
  Deletions deleted;
};

// kUnavailable when it cannot be read, kCorrupt when damaged, kInvalid when a newer version wrote it.
Result<LoadedDeletions> LoadDeletions(FileSystem& files, const std::string& folder);

class DeletionLog {
 public:
  // The file stays within `limit_bytes`, and twice that while it is written anew.
  DeletionLog(FileSystem& files, std::string folder, uint64_t limit_bytes, LoadedDeletions loaded)
      : files_(files), folder_(std::move(folder)), limit_bytes_(limit_bytes), state_(std::move(loaded)) {}

  // When the key was deleted, 0: never.
  uint64_t SequenceOf(const Digest& key) const;
  uint64_t size() const { return state_.deleted.size(); }

  // In memory only: Store makes it durable.
  void Add(std::span<const Digest> keys, uint64_t sequence);
  // Forgets all other keys.
  void KeepOnly(const std::unordered_set<Digest, DigestHash>& needed);
  // False: Store needs some to be forgotten first.
  bool Fits() const;
  Status Store();
  // False when Store has nothing to do.
  bool unstored() const { return rewrite_ || !unstored_.empty(); }

 private:
  Status Append();
  Status Rewrite();

  FileSystem& files_;
  const std::string folder_;
  const uint64_t limit_bytes_;
  LoadedDeletions state_;
  std::vector<std::pair<Digest, uint64_t>> unstored_;
  std::unique_ptr<File> file_;
  uint64_t pages_ = 0;   // in the file, each counted once
  bool rewrite_ = true;  // what is on disk cannot be appended to
};

}  // namespace cachalot::tier
