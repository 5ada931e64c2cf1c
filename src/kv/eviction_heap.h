// CandidateHeap is a binary heap of entries by key from which any entry can be taken.
// Threads:   owned by its ranker.
// Ownership: shares the table of places with the other heaps of its ranker: an entry is in one of them at most.
// Invariant: Min() has the least key; equal keys go by number.
// Cost:      O(log size) for Push and Erase.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kv/eviction.h"

namespace cachalot::kv {

class CandidateHeap {
 public:
  struct Key {
    uint64_t major = 0, minor = 0;
    auto operator<=>(const Key&) const = default;
  };

  explicit CandidateHeap(std::vector<uint32_t>* places) : places_(places) {}

  bool empty() const { return items_.empty(); }
  EntryId Min() const { return items_.front().entry; }
  uint64_t steps() const { return steps_; }

  void Push(EntryId entry, Key key) {
    if (entry >= places_->size()) places_->resize(entry + size_t{1});
    items_.push_back({key, entry});
    Up(items_.size() - 1);
  }
  void Erase(EntryId entry) {
    const size_t hole = (*places_)[entry];
    const Item last = items_.back();
    items_.pop_back();
    if (hole == items_.size()) return;
    items_[hole] = last;
    Up(hole);
    Down((*places_)[last.entry]);
  }

 private:
  struct Item {
    Key key;
    EntryId entry;
    auto operator<=>(const Item&) const = default;
  };
  void Place(size_t at, const Item& item) {
    ++steps_;
    items_[at] = item;
    (*places_)[item.entry] = static_cast<uint32_t>(at);
  }
  void Up(size_t at) {
    const Item item = items_[at];
    for (; at > 0 && item < items_[(at - 1) / 2]; at = (at - 1) / 2) Place(at, items_[(at - 1) / 2]);
    Place(at, item);
  }
  void Down(size_t at) {
    const Item item = items_[at];
    for (size_t child = 2 * at + 1; child < items_.size(); child = 2 * at + 1) {
      if (child + 1 < items_.size() && items_[child + 1] < items_[child]) ++child;
      if (item < items_[child]) break;
      Place(at, items_[child]);
      at = child;
    }
    Place(at, item);
  }

  std::vector<uint32_t>* places_;
  std::vector<Item> items_;
  uint64_t steps_ = 0;
};

}  // namespace cachalot::kv
