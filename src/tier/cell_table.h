// CellTable finds cells by the hash of their key: open addressing with linear probing, no tombstones, of fixed size.
// Threads:   owned by one thread.
// Ownership: its places lie in memory that the owner carves.
// Invariant: at most half of the places are taken; hashes are spread in their low bits, and nobody can choose them.
// Cost:      O(1) expected; no allocation.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "base/function_ref.h"
#include "base/ids.h"
#include "tier/carver.h"

namespace cachalot::tier {

using CellId = Id<struct CellTag>;  // a place for one slot's bytes in the host tier

class CellTable {
 public:
  static uint64_t BytesFor(uint32_t cells) { return Carver::BytesFor<Place>(PlacesFor(cells)); }

  CellTable(uint32_t cells, Carver& carver) : places_(carver.Take<Place>(PlacesFor(cells))) {}

  // The cell with this hash that `is_it` accepts.
  std::optional<CellId> Find(uint64_t hash, FunctionRef<bool(CellId)> is_it) const {
    for (size_t i = hash & mask(); places_[i].taken(); i = Next(i)) {
      if (places_[i].hash == static_cast<uint32_t>(hash) && is_it(places_[i].cell())) return places_[i].cell();
    }
    return std::nullopt;
  }
  // Requires that no equal key is there, and fewer cells than the table is for.
  void Insert(uint64_t hash, CellId cell) {
    size_t i = hash & mask();
    while (places_[i].taken()) i = Next(i);
    places_[i] = {static_cast<uint32_t>(hash), cell.value + 1};
  }
  // Requires that the cell is there, with this hash.
  void Erase(uint64_t hash, CellId cell) {
    size_t hole = hash & mask();
    while (places_[hole].cell_plus_1 != cell.value + 1) hole = Next(hole);
    // Whatever had to step over the hole moves back into it.
    for (size_t i = Next(hole); places_[i].taken(); i = Next(i)) {
      if (((i - places_[i].hash) & mask()) < ((i - hole) & mask())) continue;
      places_[hole] = places_[i];
      hole = i;
    }
    places_[hole] = {};
  }

 private:
  struct Place {
    uint32_t hash = 0;  // low bits; they tell the place where it would be put, since there are fewer places than 2^32
    uint32_t cell_plus_1 = 0;
    bool taken() const { return cell_plus_1 != 0; }
    CellId cell() const { return CellId(cell_plus_1 - 1); }
  };

  static uint64_t PlacesFor(uint32_t cells) { return std::bit_ceil(2 * uint64_t{cells} + 2); }
  size_t mask() const { return places_.size() - 1; }
  size_t Next(size_t i) const { return (i + 1) & mask(); }

  std::span<Place> places_;
};

}  // namespace cachalot::tier
