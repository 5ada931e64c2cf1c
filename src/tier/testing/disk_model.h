// DiskModel does random things to a disk tier on a faulty disk and compares it with plain maps.
// Threads:   belongs to one.
// Ownership: owns the tier and its disk.
// Invariant: a violation is a gtest failure that names the step.
// Cost:      each step that of one call; a crash copies the disk.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "base/random.h"
#include "tier/testing/disk_rig.h"

namespace cachalot::tier {

struct DiskModelOptions {
  uint64_t seed = 1;
  uint64_t limit_bytes = 4 << 20;
  uint64_t segment_bytes = 128 << 10;
  uint64_t chains = 20;
  uint64_t chain_blocks = 24;
  double crashes = 0.01;  // per step
  double faults = 0;      // per step: one operation of the file system fails
  double flips = 0;       // per step: one bit of one segment is flipped
};

class DiskModel {
 public:
  explicit DiskModel(const DiskModelOptions& options);
  void Step();
  uint64_t crashes() const { return crashes_; }
  uint64_t read_blocks() const { return read_blocks_; }
  const DiskTier& tier() const { return *rig_.tier; }

 private:
  struct BlockId {
    uint64_t chain;
    uint64_t block;
    auto operator<=>(const BlockId&) const = default;
  };

  ChainShape ShapeOf(uint64_t chain) const;
  Digest KeyOf(const BlockId& id) const { return TestKey(ShapeOf(id.chain), id.chain, id.block); }
  BlockId AnyBlock();
  void Put();
  void Read();
  void Erase();
  void Clear();
  void Flush();
  void Reopen();
  void FlipBit();
  void CheckBlock(const BlockId& id);
  void CheckAll();
  // Blocks may be missing for no fault of the tier's: it reclaimed, or the disk failed.
  bool MayMiss() const;

  DiskModelOptions options_;
  SplitMix64 random_;
  DiskRig rig_;
  uint64_t step_ = 0;
  uint64_t crashes_ = 0;
  uint64_t read_blocks_ = 0;
  bool damaged_ = false;
  bool reclaimed_ = false;
  std::set<BlockId> put_;      // since its last deletion
  std::set<BlockId> durable_;  // flushed
  std::set<BlockId> deleted_;  // for certain
};

}  // namespace cachalot::tier
