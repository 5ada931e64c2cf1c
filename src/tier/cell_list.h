// CellList is a queue of cells, linked through an array that several lists of disjoint cells share.
// Threads:   owned by one thread.
// Ownership: none.
// Invariant: a cell is on at most one list of those that share the links.
// Cost:      O(1) per call, no allocation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tier/cell_table.h"

namespace cachalot::tier {

class CellList {
 public:
  struct Link {
    uint32_t before_plus_1 = 0;
    uint32_t after_plus_1 = 0;
  };

  explicit CellList(std::span<Link> links) : links_(links) {}

  uint32_t size() const { return size_; }
  std::optional<CellId> front() const { return CellOf(front_plus_1_); }
  std::optional<CellId> After(CellId cell) const { return CellOf(links_[cell.value].after_plus_1); }

  // Requires that it is on no list.
  void PushBack(CellId cell) {
    links_[cell.value] = {back_plus_1_, 0};
    AfterOf(back_plus_1_) = cell.value + 1;
    back_plus_1_ = cell.value + 1;
    ++size_;
  }
  // Requires that it is on this list.
  void Erase(CellId cell) {
    const Link link = links_[cell.value];
    AfterOf(link.before_plus_1) = link.after_plus_1;
    (link.after_plus_1 == 0 ? back_plus_1_ : links_[link.after_plus_1 - 1].before_plus_1) = link.before_plus_1;
    --size_;
  }

 private:
  static std::optional<CellId> CellOf(uint32_t plus_1) {
    return plus_1 == 0 ? std::nullopt : std::optional(CellId(plus_1 - 1));
  }
  uint32_t& AfterOf(uint32_t plus_1) { return plus_1 == 0 ? front_plus_1_ : links_[plus_1 - 1].after_plus_1; }

  std::span<Link> links_;
  uint32_t front_plus_1_ = 0;
  uint32_t back_plus_1_ = 0;
  uint32_t size_ = 0;
};

}  // namespace cachalot::tier
