// PageTable lists a sequence's blocks in one layer group, in position order.
// Threads:   owned by the engine thread.
// Ownership: holds one reference on each slot that it names; its destruction gives them back.
// Invariant: it names the logical blocks first_block() to end_block() - 1 and no others.
// Cost:      Append and DropBefore are amortised O(1) per block; a table that has had its size allocates nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "base/block_copy.h"
#include "base/ids.h"
#include "base/page_view.h"
#include "kv/slot_pool.h"

namespace cachalot::kv {

class PageTable {
 public:
  explicit PageTable(SlotPool& pool, SlotUse use = SlotUse::kFull) : pool_(&pool), use_(use) {}
  PageTable(PageTable&& other) noexcept;
  PageTable& operator=(PageTable&&) = delete;
  ~PageTable();

  uint32_t first_block() const { return first_block_; }
  uint32_t end_block() const { return first_block_ + count(); }
  uint32_t count() const { return static_cast<uint32_t>(slots_.size() - head_); }
  // The slot of the last block. Requires count() > 0.
  SlotId tail() const;
  // Of logical block `block`, which it names.
  uint32_t slot(uint32_t block) const;
  // Valid until the next change.
  PageTableRef Ref() const { return {slots_.data() + head_, count(), first_block_}; }

  // Adds a block in a fresh slot. Requires a free slot.
  void Append();
  // The next block appended is this logical block. Requires an empty table.
  void StartAt(uint32_t block);
  // Adds a block that is in `slot` already, shared.
  void AppendShared(SlotId slot);
  // Drops the last block.
  void PopBack();
  // Logical block `block`, which it names, lies in `slot` from now on, shared: both slots hold the same.
  void Replace(uint32_t block, SlotId slot);
  // Moves the last block to a fresh slot, which must be filled from the old one. Requires that the old slot has other
  // references, and a free slot.
  BlockCopy UnshareTail();
  // Undoes UnshareTail, whose copy was from `original`.
  void ShareTailAgain(SlotId original);
  // Drops the blocks before logical block `block`. Requires block <= end_block().
  void DropBefore(uint64_t block);
  // Names the blocks of `other`, shared. Requires an empty table.
  void ShareAll(const PageTable& other);
  // Drops all blocks; the next one is logical block 0. Keeps its capacity.
  void Clear();

 private:
  void Push(SlotId slot);

  SlotPool* pool_;
  SlotUse use_;
  std::vector<uint32_t> slots_;  // from head_ on; before it: dropped entries, not yet reused
  size_t head_ = 0;
  uint32_t first_block_ = 0;
};

}  // namespace cachalot::kv
