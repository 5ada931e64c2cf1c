// CellEviction decides which cell of the host tier goes first.
// Threads:   owned by the engine thread.
// Ownership: its tables lie in memory that the owner carves.
// Invariant: ranks exactly the cells that were inserted and neither evicted nor removed; the same calls give the same
//            answers.
// Cost:      O(1) amortised per call, and one step per cell that is older than the answer and may not go.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/function_ref.h"
#include "base/status.h"
#include "tier/cell_table.h"

namespace cachalot::tier {

class CellEviction {
 public:
  virtual ~CellEviction() = default;

  // `hash` names what the cell holds, in the next life of the same content too.
  virtual void Insert(CellId cell, uint64_t hash) = 0;
  virtual void Touch(CellId cell) = 0;
  // It is there no longer, for a reason of the owner's.
  virtual void Remove(CellId cell) = 0;
  // Takes out the one that goes next among those that may.
  virtual std::optional<CellId> Evict(FunctionRef<bool(CellId)> may_go) = 0;
};

// Names of policies, the default first.
std::span<const std::string_view> CellEvictionNames();
// kInvalid, with the names, for any other. A known name stays valid.
Status CheckCellEviction(std::string_view name);
// What MakeCellEviction carves. Both require a known name.
uint64_t CellEvictionBytes(std::string_view name, uint32_t cells);
std::unique_ptr<CellEviction> MakeCellEviction(std::string_view name, uint32_t cells, Carver& carver);

}  // namespace cachalot::tier
