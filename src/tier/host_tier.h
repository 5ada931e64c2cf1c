// HostTier keeps KV blocks in host memory: cells of one slot's bytes, found by block key and layer group.
// Threads:   owned by the engine thread, which also drops the handles; the bytes behind a pin may be read, and those
//            behind a reservation written, by any one thread that the holder gives them to.
// Ownership: handles must not outlive the tier, nor the tier the memory that it was given.
// Invariant: all it ever uses is the memory given to it, tables included, and the ledger says for what to the byte. A
//            pinned cell is neither evicted nor written; an entry that was erased is not found again, even where it was
//            being written when it was erased.
// Cost:      O(1) per cell and call; no allocation but for the lists that calls return.
//
//          Reserve            Commit              MakeRoom, Erase            last pin dropped
//   free ───────────► reserved ─────► cached ──────────────────────► leaving ──────────────► free
//                        │ dropped      └── Erase, not pinned: free
//                        └────────► free
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/hash.h"
#include "base/status.h"
#include "tier/cell_eviction.h"
#include "tier/cell_list.h"
#include "tier/cell_table.h"

namespace cachalot::tier {

class HostTier;

struct HostKey {
  Digest key{};  // of the block
  uint32_t group = 0;
  auto operator<=>(const HostKey&) const = default;
};

// What a look-up means for the order in which cells go.
enum class HostUse : uint8_t { kRequest, kCopy };

// Read access to one cell.
class HostPin {
 public:
  HostPin() = default;
  HostPin(HostPin&& other) noexcept : tier_(std::exchange(other.tier_, nullptr)), cell_(other.cell_) {}
  HostPin& operator=(HostPin&& other) noexcept {
    std::swap(tier_, other.tier_);
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~HostPin();
  // Requires a pin that holds a cell.
  std::span<const std::byte> bytes() const;

 private:
  friend class HostTier;
  HostPin(HostTier* tier, CellId cell) : tier_(tier), cell_(cell) {}
  HostTier* tier_ = nullptr;
  CellId cell_;
};

// An evicted cell. It is found no longer, and free once the pin is dropped: until then it can be handed down.
struct HostVictim {
  HostKey key;
  HostPin pin;
};

// Cells to write into.
class HostReservation {
 public:
  HostReservation() = default;
  HostReservation(HostReservation&& other) noexcept
      : tier_(std::exchange(other.tier_, nullptr)), cells_(std::exchange(other.cells_, {})) {}
  HostReservation& operator=(HostReservation&& other) noexcept {
    std::swap(tier_, other.tier_);
    std::swap(cells_, other.cells_);
    return *this;
  }
  ~HostReservation();

  size_t size() const { return cells_.size(); }
  // Of the i-th key that was asked for.
  std::span<std::byte> bytes(size_t i) const;
  // All are found from now on, but those erased meanwhile; where a key is there already, that cell stays.
  void Commit() &&;

 private:
  friend class HostTier;
  HostReservation(HostTier* tier, std::vector<CellId> cells) : tier_(tier), cells_(std::move(cells)) {}
  HostTier* tier_ = nullptr;
  std::vector<CellId> cells_;
};

// What the memory is used for; the parts add up to limit_bytes.
struct HostLedger {
  uint64_t limit_bytes = 0;
  uint64_t cached_bytes = 0;
  uint64_t reserved_bytes = 0;
  uint64_t leaving_bytes = 0;  // erased or evicted, and still read
  uint64_t free_bytes = 0;
  uint64_t metadata_bytes = 0;
  uint64_t spare_bytes = 0;  // too little for one more cell
  uint64_t Sum() const {
    return cached_bytes + reserved_bytes + leaving_bytes + free_bytes + metadata_bytes + spare_bytes;
  }
};

// Since the start, in cells.
struct HostCounts {
  uint64_t committed = 0;
  uint64_t found = 0;  // by requests
  uint64_t evicted = 0;
};

struct HostTierOptions {
  uint64_t slot_bytes = 0;
  uint32_t groups = 1;  // layer groups: keys have smaller ones
  std::string_view eviction = CellEvictionNames().front();
};

class HostTier {
 public:
  // kInvalid when the options are wrong or the memory, which begins at a page, does not hold one cell.
  static Result<std::unique_ptr<HostTier>> Make(std::span<std::byte> memory, const HostTierOptions& options);
  // How many cells `bytes` of memory hold beside their tables. Requires valid options.
  static uint32_t CellsFor(uint64_t bytes, const HostTierOptions& options);

  HostTier(const HostTier&) = delete;
  HostTier& operator=(const HostTier&) = delete;
  // Requires that no handle is left.
  ~HostTier();

  uint32_t cells() const { return static_cast<uint32_t>(cells_.size()); }
  uint32_t free_cells() const { return count(State::kFree); }

  // Evicts until `wanted` cells are free or will be once the victims are dropped, which is up to the caller; fewer
  // where others are pinned or being written. Blocks that `is_expected` names go last: cells of theirs that are met
  // count as new again, at most half of all in a call.
  std::vector<HostVictim> MakeRoom(uint32_t wanted, FunctionRef<bool(const Digest&)> is_expected);
  std::vector<HostVictim> MakeRoom(uint32_t wanted) {
    return MakeRoom(wanted, [](const Digest&) { return false; });
  }
  // One cell per key, all or none: kOverloaded, with needed and free, while too few are free. What is written there
  // stays until the deadline at most, to the second before.
  Result<HostReservation> Reserve(std::span<const HostKey> keys, Nanos deadline = Nanos::max());
  // Bit g: group g of the block is there. Nobody counts it as a use.
  uint32_t GroupsOf(const Digest& key) const;
  // An empty optional is a miss.
  std::optional<HostPin> Find(const HostKey& key, HostUse use);

  // Nanos::max(): it has none, or is not there; the first of its groups' otherwise.
  Nanos DeadlineOf(const Digest& key) const;
  // What has had its time. O(cells), where there is any: no more often than once a second.
  void EraseExpired(Nanos now);
  // When that has something to do next; Nanos::max(): never, as things are.
  Nanos NextExpiry() const { return next_expiry_; }

  // All groups of the block; returns how many were found.
  uint32_t Erase(const Digest& key);
  // That cell, if it is there.
  void Erase(const HostKey& key);
  void EraseAll();

  HostLedger ledger() const;
  const HostCounts& counts() const { return totals_; }
  // One line per broken invariant; empty when all hold. O(cells).
  std::vector<std::string> Violations() const;

 private:
  friend class HostPin;
  friend class HostReservation;

  enum class State : uint8_t { kFree, kReserved, kRevoked, kCached, kLeaving };  // kRevoked: erased while reserved
  static constexpr size_t kStates = 5;
  struct Cell {
    HostKey key;
    uint32_t pins = 0;
    State state = State::kFree;
    Nanos deadline = Nanos::max();
  };

  static uint64_t MetadataBytes(uint32_t cells, const HostTierOptions& options);
  HostTier(std::span<std::byte> memory, const HostTierOptions& options, uint32_t cells, Carver carver);

  Cell& At(CellId cell) { return cells_[cell.value]; }
  std::span<std::byte> BytesOf(CellId cell) const { return memory_.subspan(cell.value * slot_bytes_, slot_bytes_); }
  uint32_t count(State state) const { return counts_[static_cast<size_t>(state)]; }
  uint64_t HashOf(const HostKey& key) const;
  std::optional<CellId> Lookup(const HostKey& key) const;
  void SetState(CellId cell, State state);
  void Free(CellId cell);
  HostPin Pin(CellId cell);
  void Unpin(CellId cell);
  // Out of the table; free, or leaving while it is pinned.
  void Unlist(CellId cell);
  void Commit(CellId cell);
  void GiveBack(CellId cell);  // reserved or revoked

  const std::span<std::byte> memory_;
  const uint64_t slot_bytes_;
  const uint32_t groups_;
  const uint64_t secret_;  // so that nobody can choose blocks that lie in one place of the table
  const uint64_t metadata_bytes_;
  const std::span<Cell> cells_;
  CellTable table_;
  const std::span<CellList::Link> links_;
  CellList free_;
  CellList reserved_;  // revoked ones too
  std::unique_ptr<CellEviction> eviction_;
  std::array<uint32_t, kStates> counts_{};
  HostCounts totals_;
  Nanos next_expiry_ = Nanos::max();  // no cached cell has one before
};

}  // namespace cachalot::tier
