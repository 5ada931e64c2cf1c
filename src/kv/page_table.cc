#include "kv/page_table.h"

#include <utility>

#include "base/check.h"

namespace cachalot::kv {

PageTable::PageTable(PageTable&& other) noexcept
    : pool_(other.pool_),
      use_(other.use_),
      slots_(std::exchange(other.slots_, {})),
      head_(std::exchange(other.head_, 0)),
      first_block_(std::exchange(other.first_block_, 0)) {}

PageTable::~PageTable() { Clear(); }

SlotId PageTable::tail() const {
  CACHALOT_CHECK(count() > 0);
  return SlotId(slots_.back());
}

uint32_t PageTable::slot(uint32_t block) const {
  CACHALOT_CHECK(block >= first_block_ && block < end_block());
  return slots_[head_ + (block - first_block_)];
}

void PageTable::StartAt(uint32_t block) {
  CACHALOT_CHECK(count() == 0);
  Clear();
  first_block_ = block;
}

void PageTable::Append() { Push(pool_->Take(use_)); }

void PageTable::AppendShared(SlotId slot) {
  pool_->Share(slot);
  Push(slot);
}

void PageTable::Push(SlotId slot) {
  // Moving the live entries to the front costs no more than what was dropped since the last move.
  if (slots_.size() == slots_.capacity() && head_ > 0 && head_ >= count()) {
    slots_.erase(slots_.begin(), slots_.begin() + static_cast<ptrdiff_t>(head_));
    head_ = 0;
  }
  slots_.push_back(slot.value);
}

void PageTable::PopBack() {
  pool_->Release(tail());
  slots_.pop_back();
}

void PageTable::Replace(uint32_t block, SlotId slot) {
  CACHALOT_CHECK(block >= first_block_ && block < end_block());
  uint32_t& named = slots_[head_ + (block - first_block_)];
  if (named == slot.value) return;
  pool_->Share(slot);
  pool_->Release(SlotId(named));
  named = slot.value;
}

BlockCopy PageTable::UnshareTail() {
  const SlotId from = tail();
  CACHALOT_CHECK(pool_->references(from) > 1);
  const SlotId to = pool_->Take(use_);
  pool_->Release(from);
  slots_.back() = to.value;
  return {from, to};
}

void PageTable::ShareTailAgain(SlotId original) {
  pool_->Share(original);
  pool_->Release(tail());
  slots_.back() = original.value;
}

void PageTable::DropBefore(uint64_t block) {
  CACHALOT_CHECK(block <= end_block());
  for (; first_block_ < block; ++first_block_, ++head_) pool_->Release(SlotId(slots_[head_]));
  if (head_ == slots_.size()) {
    slots_.clear();
    head_ = 0;
  }
}

void PageTable::ShareAll(const PageTable& other) {
  CACHALOT_CHECK(count() == 0 && first_block_ == 0);
  slots_.assign(other.slots_.begin() + static_cast<ptrdiff_t>(other.head_), other.slots_.end());
  head_ = 0;
  first_block_ = other.first_block_;
  for (const uint32_t slot : slots_) pool_->Share(SlotId(slot));
}

void PageTable::Clear() {
  while (count() > 0) PopBack();
  slots_.clear();
  head_ = 0;
  first_block_ = 0;
}

}  // namespace cachalot::kv
