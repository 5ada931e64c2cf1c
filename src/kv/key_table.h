// KeyTable maps hashes to numbers: open addressing with linear probing, no tombstones.
// Threads:   owned by one thread.
// Ownership: owns its cells.
// Invariant: at most half of the cells are taken. Where a key lies depends on a secret, so that nobody can choose
//            tokens whose hashes crowd into few cells; what is found does not.
// Cost:      O(1) expected; doubles when it is half full, and never grows past twice what it held at most.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/entropy.h"

namespace cachalot::kv {

class KeyTable {
 public:
  explicit KeyTable(uint64_t secret = SystemEntropy()) : multiplier_(secret | 1) {}

  // Null when the key is not there. Valid until the next change.
  uint32_t* Find(uint64_t key) {
    Cell& cell = cells_[CellOf(key)];
    return cell.taken ? &cell.value : nullptr;
  }
  // Requires that the key is not there.
  void Insert(uint64_t key, uint32_t value) {
    if (2 * ++size_ > cells_.size()) Grow();
    cells_[CellOf(key)] = {key, value, true};
  }
  // Requires that the key is there.
  void Erase(uint64_t key) {
    size_t hole = CellOf(key);
    --size_;
    // Whatever had to step over the hole moves back into it.
    for (size_t i = Next(hole); cells_[i].taken; i = Next(i)) {
      if (((i - Home(cells_[i].key)) & mask()) < ((i - hole) & mask())) continue;
      cells_[hole] = cells_[i];
      hole = i;
    }
    cells_[hole].taken = false;
  }
  size_t size() const { return size_; }

 private:
  struct Cell {
    uint64_t key = 0;
    uint32_t value = 0;
    bool taken = false;
  };

  size_t mask() const { return cells_.size() - 1; }
  size_t Next(size_t i) const { return (i + 1) & mask(); }
  // Multiply-shift (Dietzfelbinger et al., 1997): two keys share it by a chance of at most 2 in so many cells.
  size_t Home(uint64_t key) const { return key * multiplier_ >> (64 - std::countr_zero(cells_.size())); }
  // Where it is, or would be put.
  size_t CellOf(uint64_t key) const {
    size_t i = Home(key);
    while (cells_[i].taken && cells_[i].key != key) i = Next(i);
    return i;
  }
  void Grow() {
    std::vector<Cell> old(2 * cells_.size());
    old.swap(cells_);
    for (const Cell& cell : old) {
      if (cell.taken) cells_[CellOf(cell.key)] = cell;
    }
  }

  uint64_t multiplier_;
  std::vector<Cell> cells_ = std::vector<Cell>(64);  // a power of two
  size_t size_ = 0;
};

}  // namespace cachalot::kv
