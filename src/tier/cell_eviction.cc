#include "tier/cell_eviction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "tier/cell_list.h"

namespace cachalot::tier {
namespace {

constexpr std::string_view kS3Fifo = "s3fifo";
constexpr std::string_view kLru = "lru";
constexpr std::array<std::string_view, 2> kNames = {kLru, kS3Fifo};

std::optional<CellId> OldestOf(const CellList& list, FunctionRef<bool(CellId)> may_go) {
  std::optional<CellId> cell = list.front();
  while (cell && !may_go(*cell)) cell = list.After(*cell);
  return cell;
}

class LruCells final : public CellEviction {
 public:
  static uint64_t BytesFor(uint32_t cells) { return Carver::BytesFor<CellList::Link>(cells); }
  LruCells(uint32_t cells, Carver& carver) : list_(carver.Take<CellList::Link>(cells)) {}

  void Insert(CellId cell, uint64_t) override { list_.PushBack(cell); }
  void Touch(CellId cell) override {
    list_.Erase(cell);
    list_.PushBack(cell);
  }
  void Remove(CellId cell) override { list_.Erase(cell); }
  std::optional<CellId> Evict(FunctionRef<bool(CellId)> may_go) override {
    const std::optional<CellId> oldest = OldestOf(list_, may_go);
    if (oldest) list_.Erase(*oldest);
    return oldest;
  }

 private:
  CellList list_;
};

// Remembers which contents left lately. Buckets of eight hold the newest of what falls into them.
class Ghosts {
 public:
  static uint64_t BytesFor(uint32_t cells) { return Carver::BytesFor<Bucket>(BucketsFor(cells)); }
  Ghosts(uint32_t cells, Carver& carver) : buckets_(carver.Take<Bucket>(BucketsFor(cells))) {}

  void Remember(uint64_t hash) {
    Bucket& bucket = BucketOf(hash);
    Ghost* const place =
        std::ranges::min_element(bucket, {}, [&](const Ghost& g) { return g.tag == 0 ? 0 : g.number; });
    *place = {TagOf(hash), ++left_};
  }
  // Whether it is one of the last `newest` that were remembered. It is forgotten.
  bool Recall(uint64_t hash, uint64_t newest) {
    Bucket& bucket = BucketOf(hash);
    const auto found = std::ranges::find_if(bucket, [&](const Ghost& g) { return g.tag == TagOf(hash); });
    if (found == bucket.end()) return false;
    const bool is_new = left_ - found->number < newest;
    *found = {};
    return is_new;
  }

 private:
  struct Ghost {
    uint64_t tag : 24 = 0;  // 0: empty
    uint64_t number : 40 = 0;
  };
  using Bucket = std::array<Ghost, 8>;

  static uint64_t BucketsFor(uint32_t cells) { return std::bit_ceil((uint64_t{cells} + 7) / 8); }
  static uint64_t TagOf(uint64_t hash) { return std::max<uint64_t>(1, hash >> 40); }
  Bucket& BucketOf(uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  std::span<Bucket> buckets_;
  uint64_t left_ = 0;
};

// Yang et al., "FIFO queues are all you need for cache eviction" (SOSP 2023): newcomers wait in a small queue; those
// used again there, or that come back soon after they left, enter the main one. What is taken up into the hot pool was
// used.
class S3FifoCells final : public CellEviction {
 public:
  static uint64_t BytesFor(uint32_t cells) {
    return Carver::BytesFor<State>(cells) + Carver::BytesFor<CellList::Link>(cells) + Ghosts::BytesFor(cells);
  }
  S3FifoCells(uint32_t cells, Carver& carver)
      : S3FifoCells(carver.Take<State>(cells), carver.Take<CellList::Link>(cells), Ghosts(cells, carver)) {}

  void Insert(CellId cell, uint64_t hash) override {
    const uint64_t main_cells = states_.size() - states_.size() / kSmallShare;
    const bool left_lately = ghosts_.Recall(hash, main_cells);
    states_[cell.value] = {.hash = hash, .is_main = left_lately, .uses = 0};
    ListOf(cell).PushBack(cell);
  }
  void Touch(CellId cell) override {
    uint8_t& uses = states_[cell.value].uses;
    uses = std::min<uint8_t>(kMostUses, static_cast<uint8_t>(uses + 1));
  }
  void Remove(CellId cell) override {
    ListOf(cell).Erase(cell);
    if (states_[cell.value].uses > 0) ghosts_.Remember(states_[cell.value].hash);
  }
  std::optional<CellId> Evict(FunctionRef<bool(CellId)> may_go) override {
    for (;;) {
      const bool small_is_full = uint64_t{small_.size()} * kSmallShare >= uint64_t{small_.size()} + main_.size();
      std::optional<CellId> oldest = OldestOf(small_is_full ? small_ : main_, may_go);
      if (!oldest) oldest = OldestOf(small_is_full ? main_ : small_, may_go);
      if (!oldest) return std::nullopt;
      ListOf(*oldest).Erase(*oldest);
      if (Spare(*oldest)) continue;
      if (!states_[oldest->value].is_main) ghosts_.Remember(states_[oldest->value].hash);
      return oldest;
    }
  }

 private:
  static constexpr uint64_t kSmallShare = 10;  // the small queue may hold one in so many cells
  static constexpr uint8_t kMostUses = 3;
  static constexpr uint8_t kUsesToEnterMain = 2;

  struct State {
    uint64_t hash = 0;
    bool is_main = false;
    uint8_t uses = 0;  // since it entered its queue
  };

  S3FifoCells(std::span<State> states, std::span<CellList::Link> links, Ghosts ghosts)
      : states_(states), small_(links), main_(links), ghosts_(ghosts) {}

  CellList& ListOf(CellId cell) { return states_[cell.value].is_main ? main_ : small_; }

  // Moves the cell, which is on no list, to the end of the main one, if it was used often enough to stay.
  bool Spare(CellId cell) {
    State& state = states_[cell.value];
    if (state.uses < (state.is_main ? 1 : kUsesToEnterMain)) return false;
    state.uses = static_cast<uint8_t>(state.is_main ? state.uses - 1 : 0);
    state.is_main = true;
    main_.PushBack(cell);
    return true;
  }

  std::span<State> states_;
  CellList small_;
  CellList main_;
  Ghosts ghosts_;
};

}  // namespace

std::span<const std::string_view> CellEvictionNames() { return kNames; }

Status CheckCellEviction(std::string_view name) {
  if (std::ranges::find(kNames, name) != kNames.end()) return OkStatus();
  return Invalid(fmt::format("host eviction policy '{}': expected one of {}", name, fmt::join(kNames, ", ")));
}

uint64_t CellEvictionBytes(std::string_view name, uint32_t cells) {
  CACHALOT_CHECK(CheckCellEviction(name).ok());
  return name == kLru ? LruCells::BytesFor(cells) : S3FifoCells::BytesFor(cells);
}

std::unique_ptr<CellEviction> MakeCellEviction(std::string_view name, uint32_t cells, Carver& carver) {
  CACHALOT_CHECK(CheckCellEviction(name).ok());
  if (name == kLru) return std::make_unique<LruCells>(cells, carver);
  return std::make_unique<S3FifoCells>(cells, carver);
}

}  // namespace cachalot::tier
