#include "tier/host_tier.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"
#include "base/entropy.h"
#include "base/units.h"

namespace cachalot::tier {
namespace {

// The same in every process: what is evicted must not depend on a secret.
uint64_t NameOf(const HostKey& key) { return Hash64(std::as_bytes(std::span(key.key)), key.group); }

uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

HostPin::~HostPin() {
  if (tier_ != nullptr) tier_->Unpin(cell_);
}

std::span<const std::byte> HostPin::bytes() const {
  CACHALOT_CHECK(tier_ != nullptr);
  return tier_->BytesOf(cell_);
}

HostReservation::~HostReservation() {
  for (const CellId cell : cells_) tier_->GiveBack(cell);
}

std::span<std::byte> HostReservation::bytes(size_t i) const { return tier_->BytesOf(cells_.at(i)); }

void HostReservation::Commit() && {
  for (const CellId cell : std::exchange(cells_, {})) tier_->Commit(cell);
}

uint64_t HostTier::MetadataBytes(uint32_t cells, const HostTierOptions& options) {
  return Carver::BytesFor<Cell>(cells) + Carver::BytesFor<CellList::Link>(cells) + CellTable::BytesFor(cells) +
         CellEvictionBytes(options.eviction, cells);
}

uint32_t HostTier::CellsFor(uint64_t bytes, const HostTierOptions& options) {
  // The most cells that fit; tables grow with them.
  uint64_t fits = 0;
  uint64_t too_many = std::min<uint64_t>(bytes / options.slot_bytes, std::numeric_limits<uint32_t>::max() / 4) + 1;
  while (too_many - fits > 1) {
    const uint64_t cells = fits + (too_many - fits) / 2;
    const uint64_t data = RoundUp(cells * options.slot_bytes, Carver::kAlignment);
    const uint64_t needed = data + MetadataBytes(static_cast<uint32_t>(cells), options);
    (needed <= bytes ? fits : too_many) = cells;
  }
  return static_cast<uint32_t>(fits);
}

Result<std::unique_ptr<HostTier>> HostTier::Make(std::span<std::byte> memory, const HostTierOptions& options) {
  CACHALOT_RETURN_IF_ERROR(CheckCellEviction(options.eviction));
  if (options.slot_bytes == 0 || options.groups == 0) {
    return Invalid(fmt::format("host tier: slots of {} bytes in {} groups; expected at least one of each",
                               options.slot_bytes, options.groups));
  }
  const uint32_t cells = CellsFor(memory.size(), options);
  if (cells == 0) {
    return Invalid(fmt::format("host tier: {} hold no block of {} beside its tables", FormatBytes(memory.size()),
                               FormatBytes(options.slot_bytes)));
  }
  const uint64_t data = RoundUp(cells * options.slot_bytes, Carver::kAlignment);
  return std::unique_ptr<HostTier>(new HostTier(memory, options, cells, Carver(memory.subspan(data))));
}

HostTier::HostTier(std::span<std::byte> memory, const HostTierOptions& options, uint32_t cells, Carver carver)
    : memory_(memory),
      slot_bytes_(options.slot_bytes),
      groups_(options.groups),
      secret_(SystemEntropy()),
      metadata_bytes_(MetadataBytes(cells, options)),
      cells_(carver.Take<Cell>(cells)),
      table_(cells, carver),
      links_(carver.Take<CellList::Link>(cells)),
      free_(links_),
      reserved_(links_),
      eviction_(MakeCellEviction(options.eviction, cells, carver)) {
  for (uint32_t i = 0; i < cells; ++i) free_.PushBack(CellId(i));
  counts_[static_cast<size_t>(State::kFree)] = cells;
}

HostTier::~HostTier() {
  CACHALOT_CHECK(reserved_.size() == 0 && count(State::kLeaving) == 0);
  CACHALOT_CHECK(std::ranges::all_of(cells_, [](const Cell& cell) { return cell.pins == 0; }));
}

std::vector<HostVictim> HostTier::MakeRoom(uint32_t wanted, FunctionRef<bool(const Digest&)> is_expected) {
  std::vector<HostVictim> victims;
  uint32_t spares = cells() / 2;
  while (free_cells() + victims.size() < wanted) {
    const auto cell = eviction_->Evict([this](CellId candidate) { return At(candidate).pins == 0; });
    if (!cell) break;
    if (spares > 0 && is_expected(At(*cell).key.key)) {
      --spares;
      eviction_->Insert(*cell, NameOf(At(*cell).key));
      continue;
    }
    table_.Erase(HashOf(At(*cell).key), *cell);
    SetState(*cell, State::kLeaving);
    ++totals_.evicted;
    victims.push_back({At(*cell).key, Pin(*cell)});
  }
  return victims;
}

Result<HostReservation> HostTier::Reserve(std::span<const HostKey> keys, Nanos deadline) {
  if (keys.size() > free_cells()) {
    return Overloaded(fmt::format("host tier: needed {} cells, free {}", keys.size(), free_cells()));
  }
  std::vector<CellId> cells;
  cells.reserve(keys.size());
  for (const HostKey& key : keys) {
    CACHALOT_CHECK(key.group < groups_);
    const CellId cell = *free_.front();
    free_.Erase(cell);
    reserved_.PushBack(cell);
    At(cell).key = key;
    At(cell).deadline = deadline == Nanos::max() ? deadline : std::chrono::floor<std::chrono::seconds>(deadline);
    SetState(cell, State::kReserved);
    cells.push_back(cell);
  }
  return HostReservation(this, std::move(cells));
}

std::optional<HostPin> HostTier::Find(const HostKey& key, HostUse use) {
  const std::optional<CellId> cell = Lookup(key);
  if (!cell) return std::nullopt;
  if (use == HostUse::kRequest) {
    eviction_->Touch(*cell);
    ++totals_.found;
  }
  return Pin(*cell);
}

uint32_t HostTier::GroupsOf(const Digest& key) const {
  uint32_t groups = 0;
  for (uint32_t group = 0; group < groups_; ++group) {
    if (Lookup({key, group})) groups |= 1u << group;
  }
  return groups;
}

Nanos HostTier::DeadlineOf(const Digest& key) const {
  Nanos first = Nanos::max();
  for (uint32_t group = 0; group < groups_; ++group) {
    if (const auto cell = Lookup({key, group})) first = std::min(first, cells_[cell->value].deadline);
  }
  return first;
}

void HostTier::EraseExpired(Nanos now) {
  if (now < next_expiry_) return;
  next_expiry_ = Nanos::max();
  for (uint32_t i = 0; i < cells(); ++i) {
    const CellId cell(i);
    if (At(cell).state != State::kCached) continue;
    if (At(cell).deadline > now) {
      next_expiry_ = std::min(next_expiry_, At(cell).deadline);
    } else {
      eviction_->Remove(cell);
      Unlist(cell);
    }
  }
}

void HostTier::Erase(const HostKey& key) {
  const std::optional<CellId> cell = Lookup(key);
  if (!cell) return;
  eviction_->Remove(*cell);
  Unlist(*cell);
}

uint32_t HostTier::Erase(const Digest& key) {
  uint32_t found = 0;
  for (uint32_t group = 0; group < groups_; ++group) {
    if (!Lookup({key, group})) continue;
    ++found;
    Erase(HostKey{key, group});
  }
  for (auto cell = reserved_.front(); cell; cell = reserved_.After(*cell)) {
    if (At(*cell).key.key == key) SetState(*cell, State::kRevoked);
  }
  return found;
}

void HostTier::EraseAll() {
  for (uint32_t i = 0; i < cells(); ++i) {
    const CellId cell(i);
    if (At(cell).state == State::kReserved) SetState(cell, State::kRevoked);
    if (At(cell).state != State::kCached) continue;
    eviction_->Remove(cell);
    Unlist(cell);
  }
}

uint64_t HostTier::HashOf(const HostKey& key) const {
  return Hash64(std::as_bytes(std::span(key.key)), secret_ + key.group);
}

std::optional<CellId> HostTier::Lookup(const HostKey& key) const {
  return table_.Find(HashOf(key), [&](CellId cell) { return cells_[cell.value].key == key; });
}

void HostTier::SetState(CellId cell, State state) {
  --counts_[static_cast<size_t>(At(cell).state)];
  ++counts_[static_cast<size_t>(state)];
  At(cell).state = state;
}

void HostTier::Free(CellId cell) {
  SetState(cell, State::kFree);
  free_.PushBack(cell);
}

HostPin HostTier::Pin(CellId cell) {
  ++At(cell).pins;
  return HostPin(this, cell);
}

void HostTier::Unpin(CellId cell) {
  if (--At(cell).pins == 0 && At(cell).state == State::kLeaving) Free(cell);
}

void HostTier::Unlist(CellId cell) {
  table_.Erase(HashOf(At(cell).key), cell);
  if (At(cell).pins > 0) {
    SetState(cell, State::kLeaving);
  } else {
    Free(cell);
  }
}

void HostTier::Commit(CellId cell) {
  if (At(cell).state == State::kRevoked || Lookup(At(cell).key)) return GiveBack(cell);
  reserved_.Erase(cell);
  SetState(cell, State::kCached);
  next_expiry_ = std::min(next_expiry_, At(cell).deadline);
  ++totals_.committed;
  table_.Insert(HashOf(At(cell).key), cell);
  eviction_->Insert(cell, NameOf(At(cell).key));
}

void HostTier::GiveBack(CellId cell) {
  reserved_.Erase(cell);
  Free(cell);
}

HostLedger HostTier::ledger() const {
  HostLedger ledger;
  ledger.limit_bytes = memory_.size();
  ledger.cached_bytes = count(State::kCached) * slot_bytes_;
  ledger.reserved_bytes = (count(State::kReserved) + uint64_t{count(State::kRevoked)}) * slot_bytes_;
  ledger.leaving_bytes = count(State::kLeaving) * slot_bytes_;
  ledger.free_bytes = count(State::kFree) * slot_bytes_;
  ledger.metadata_bytes = metadata_bytes_;
  ledger.spare_bytes = memory_.size() - metadata_bytes_ - cells() * slot_bytes_;
  return ledger;
}

std::vector<std::string> HostTier::Violations() const {
  std::vector<std::string> out;
  std::array<uint32_t, kStates> counts{};
  for (uint32_t i = 0; i < cells(); ++i) {
    const Cell& cell = cells_[i];
    ++counts[static_cast<size_t>(cell.state)];
    if (cell.state == State::kCached && Lookup(cell.key) != CellId(i)) {
      out.push_back(fmt::format("cell {}: cached, and not found", i));
    }
    if (cell.state == State::kLeaving && cell.pins == 0) out.push_back(fmt::format("cell {}: leaving, not pinned", i));
    if (cell.pins > 0 && cell.state != State::kCached && cell.state != State::kLeaving) {
      out.push_back(fmt::format("cell {}: {} pins on what is not there", i, cell.pins));
    }
  }
  if (counts != counts_) out.push_back("cells by state differ from their counts");
  if (free_.size() != count(State::kFree)) out.push_back("the free list differs from the count of free cells");
  if (reserved_.size() != count(State::kReserved) + count(State::kRevoked)) {
    out.push_back("the list of reserved cells differs from their count");
  }
  if (ledger().Sum() != ledger().limit_bytes) out.push_back("the ledger's parts do not add up to its limit");
  return out;
}

}  // namespace cachalot::tier
