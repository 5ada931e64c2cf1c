#include "tier/host_tier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/testing/allocations.h"
#include "tier/host_arena.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kSlotBytes = 200;
constexpr uint32_t kGroups = 3;

Digest DigestOf(uint64_t content) {
  const std::string text = "block " + std::to_string(content);
  return Sha256Of(std::as_bytes(std::span(text.data(), text.size())));
}
HostKey KeyOf(uint64_t content, uint32_t group = 0) { return {DigestOf(content), group}; }

// A tier with memory of its own.
struct Rig {
  explicit Rig(uint64_t bytes, std::string_view eviction = "lru")
      : arena(HostArena::Claim({.bytes = bytes}, {uint64_t{1} << 40, uint64_t{1} << 40, false}, {}).value()) {
    tier = HostTier::Make(arena.bytes(), {kSlotBytes, kGroups, eviction}).value();
  }
  HostArena arena;
  std::unique_ptr<HostTier> tier;

  void Put(const HostKey& key, uint8_t value) {
    Result<HostReservation> cell = tier->Reserve(std::span(&key, 1));
    ASSERT_TRUE(cell.ok()) << cell.status().message();
    std::memset(cell->bytes(0).data(), value, kSlotBytes);
    std::move(*cell).Commit();
  }
  // The value of every byte, or nothing for a miss.
  std::optional<uint8_t> Get(const HostKey& key) {
    const std::optional<HostPin> pin = tier->Find(key, HostUse::kRequest);
    if (!pin) return std::nullopt;
    const auto first = pin->bytes().front();
    EXPECT_TRUE(std::ranges::all_of(pin->bytes(), [&](std::byte b) { return b == first; }));
    return static_cast<uint8_t>(first);
  }
};

TEST(HostTier, WhatWasCommittedIsFoundByKeyAndGroup) {
  Rig rig(1 << 14);
  rig.Put(KeyOf(1, 0), 10);
  rig.Put(KeyOf(1, 2), 12);
  EXPECT_EQ(rig.Get(KeyOf(1, 0)), 10);
  EXPECT_EQ(rig.Get(KeyOf(1, 2)), 12);
  EXPECT_EQ(rig.Get(KeyOf(1, 1)), std::nullopt);
  EXPECT_EQ(rig.Get(KeyOf(2, 0)), std::nullopt);
}

TEST(HostTier, AnAbandonedReservationLeavesNothing) {
  Rig rig(1 << 14);
  const uint32_t free = rig.tier->free_cells();
  const std::vector<HostKey> keys = {KeyOf(1), KeyOf(2), KeyOf(3)};
  {
    const Result<HostReservation> cells = rig.tier->Reserve(keys);
    ASSERT_TRUE(cells.ok());
    EXPECT_EQ(cells->size(), 3u);
    EXPECT_EQ(rig.tier->free_cells(), free - 3);
    EXPECT_EQ(rig.tier->ledger().reserved_bytes, 3 * kSlotBytes);
    EXPECT_EQ(rig.Get(KeyOf(2)), std::nullopt);
  }
  EXPECT_EQ(rig.tier->free_cells(), free);
  EXPECT_EQ(rig.Get(KeyOf(1)), std::nullopt);
}

TEST(HostTier, ReservingIsAllOrNothing) {
  Rig rig(1 << 14);
  const uint32_t cells = rig.tier->cells();
  std::vector<HostKey> keys(cells + 1);
  const Status status = rig.tier->Reserve(keys).status();
  EXPECT_EQ(status.code(), Code::kOverloaded);
  EXPECT_NE(status.message().find("needed " + std::to_string(cells + 1)), std::string::npos) << status.message();
  EXPECT_EQ(rig.tier->free_cells(), cells);
}

TEST(HostTier, VictimsAreNotFoundAndKeepTheirBytesUntilDropped) {
  Rig rig(1 << 14);
  const uint32_t cells = rig.tier->cells();
  for (uint32_t i = 0; i < cells; ++i) rig.Put(KeyOf(i), static_cast<uint8_t>(i));
  EXPECT_EQ(rig.Get(KeyOf(0)), 0);  // used: 1 is the oldest now
  std::vector<HostVictim> victims = rig.tier->MakeRoom(2);
  ASSERT_EQ(victims.size(), 2u);
  EXPECT_EQ(victims[0].key, KeyOf(1));
  EXPECT_EQ(victims[1].key, KeyOf(2));
  EXPECT_EQ(rig.Get(KeyOf(1)), std::nullopt);
  EXPECT_EQ(rig.tier->free_cells(), 0u);
  EXPECT_EQ(rig.tier->ledger().leaving_bytes, 2 * kSlotBytes);
  EXPECT_EQ(victims[1].pin.bytes().front(), std::byte{2});
  victims.erase(victims.begin());
  EXPECT_EQ(rig.tier->free_cells(), 1u);
  EXPECT_EQ(rig.tier->MakeRoom(1).size(), 0u);  // it is there
  victims.clear();
  EXPECT_EQ(rig.tier->free_cells(), 2u);
}

TEST(HostTier, APinnedCellIsNeitherEvictedNorOverwritten) {
  Rig rig(1 << 14);
  const uint32_t cells = rig.tier->cells();
  for (uint32_t i = 0; i < cells; ++i) rig.Put(KeyOf(i), static_cast<uint8_t>(i));
  std::optional<HostPin> pin = rig.tier->Find(KeyOf(0), HostUse::kCopy);
  ASSERT_TRUE(pin);
  EXPECT_EQ(rig.tier->MakeRoom(cells).size(), cells - 1);
  EXPECT_EQ(rig.tier->Erase(DigestOf(0)), 1u);
  EXPECT_EQ(rig.Get(KeyOf(0)), std::nullopt);
  for (uint32_t i = 0; i < cells - 1; ++i) rig.Put(KeyOf(1000 + i), 77);
  EXPECT_EQ(rig.tier->free_cells(), 0u);
  EXPECT_TRUE(std::ranges::all_of(pin->bytes(), [](std::byte b) { return b == std::byte{0}; }));
  pin.reset();
  EXPECT_EQ(rig.tier->free_cells(), 1u);
}

TEST(HostTier, CopyingDownDoesNotCountAsUse) {
  Rig rig(1 << 14);
  const uint32_t cells = rig.tier->cells();
  for (uint32_t i = 0; i < cells; ++i) rig.Put(KeyOf(i), 1);
  (void)rig.tier->Find(KeyOf(0), HostUse::kCopy);
  EXPECT_EQ(rig.tier->MakeRoom(1).at(0).key, KeyOf(0));
}

TEST(HostTier, WhatSomebodyWaitsForGoesLast) {
  for (const std::string_view eviction : CellEvictionNames()) {
    Rig rig(1 << 14, eviction);
    const uint32_t cells = rig.tier->cells();
    for (uint32_t i = 0; i < cells; ++i) rig.Put(KeyOf(i), 1);
    const std::set<Digest> expected = {DigestOf(0), DigestOf(1), DigestOf(cells / 2)};
    const auto is_expected = [&](const Digest& key) { return expected.contains(key); };
    for (uint32_t i = 3; i < cells; ++i) {
      const std::vector<HostVictim> victims = rig.tier->MakeRoom(i - 2, is_expected);
      ASSERT_EQ(victims.size(), 1u);
      EXPECT_FALSE(is_expected(victims.front().key.key)) << eviction << ' ' << i;
    }
    EXPECT_EQ(rig.tier->MakeRoom(cells, is_expected).size(), 3u);
  }
}

TEST(HostTier, WhereSomebodyWaitsForAllThereIsRoomAllTheSame) {
  for (const std::string_view eviction : CellEvictionNames()) {
    Rig rig(1 << 14, eviction);
    const uint32_t cells = rig.tier->cells();
    for (uint32_t i = 0; i < cells; ++i) rig.Put(KeyOf(i), 1);
    EXPECT_EQ(rig.tier->MakeRoom(1, [](const Digest&) { return true; }).size(), 1u);
    EXPECT_EQ(rig.tier->Violations(), std::vector<std::string>());
  }
}

TEST(HostTier, EraseTakesAllGroupsAndWhatIsBeingWritten) {
  Rig rig(1 << 14);
  for (uint32_t group = 0; group < kGroups; ++group) rig.Put(KeyOf(1, group), 5);
  rig.Put(KeyOf(2), 6);
  const std::vector<HostKey> keys = {KeyOf(1, 1), KeyOf(3)};
  Result<HostReservation> loading = rig.tier->Reserve(keys);
  EXPECT_EQ(rig.tier->Erase(DigestOf(1)), kGroups);
  std::move(*loading).Commit();
  EXPECT_EQ(rig.Get(KeyOf(1, 1)), std::nullopt);
  EXPECT_TRUE(rig.Get(KeyOf(3)).has_value());
  loading = rig.tier->Reserve(keys);
  rig.tier->EraseAll();
  std::move(*loading).Commit();
  EXPECT_EQ(rig.Get(KeyOf(2)), std::nullopt);
  EXPECT_EQ(rig.Get(KeyOf(3)), std::nullopt);
  EXPECT_EQ(rig.tier->free_cells(), rig.tier->cells());
}

TEST(HostTier, OfTwoThatLoadTheSameTheFirstStays) {
  Rig rig(1 << 14);
  const HostKey key = KeyOf(1);
  Result<HostReservation> first = rig.tier->Reserve(std::span(&key, 1));
  rig.Put(key, 9);
  std::memset(first->bytes(0).data(), 9, kSlotBytes);
  std::move(*first).Commit();
  EXPECT_EQ(rig.Get(key), 9);
  EXPECT_EQ(rig.tier->free_cells(), rig.tier->cells() - 1);
}

TEST(HostTier, WhatCannotHoldABlockIsRefused) {
  const HostArena arena = HostArena::Claim({.bytes = 4096}, {uint64_t{1} << 40, uint64_t{1} << 40, false}, {}).value();
  EXPECT_EQ(HostTier::Make(arena.bytes(), {4096, 1}).status().code(), Code::kInvalid);
  EXPECT_EQ(HostTier::Make(arena.bytes(), {0, 1}).status().code(), Code::kInvalid);
  EXPECT_EQ(HostTier::Make(arena.bytes(), {64, 0}).status().code(), Code::kInvalid);
  EXPECT_EQ(HostTier::Make(arena.bytes(), {64, 1, "mru"}).status().code(), Code::kInvalid);
  EXPECT_EQ(HostTier::Make({}, {64, 1}).status().code(), Code::kInvalid);
  EXPECT_TRUE(HostTier::Make(arena.bytes(), {64, 1}).ok());
}

TEST(HostTier, TheLedgerGivesTheWholeLimitForEverySizeAndPolicy) {
  for (const std::string_view eviction : CellEvictionNames()) {
    for (const uint64_t slot_bytes : {uint64_t{1}, uint64_t{100}, uint64_t{4096}, uint64_t{5000}}) {
      for (uint64_t bytes = 8192; bytes < (1 << 17); bytes += 1237) {
        const HostArena arena =
            HostArena::Claim({.bytes = bytes}, {uint64_t{1} << 40, uint64_t{1} << 40, false}, {}).value();
        const auto tier = HostTier::Make(arena.bytes(), {slot_bytes, 1, eviction});
        if (!tier.ok()) continue;
        const HostLedger ledger = (*tier)->ledger();
        ASSERT_EQ(ledger.Sum(), bytes);
        ASSERT_EQ(ledger.limit_bytes, bytes);
        ASSERT_EQ(ledger.free_bytes, (*tier)->cells() * slot_bytes);
        ASSERT_LT(HostTier::CellsFor(bytes, {slot_bytes, 1, eviction}), bytes);
      }
    }
  }
}

TEST(HostTier, TablesTakeLittleBesideLargeBlocks) {
  const uint64_t slot = 360 << 10;
  for (const std::string_view eviction : CellEvictionNames()) {
    const uint64_t bytes = uint64_t{8} << 30;
    EXPECT_GT(HostTier::CellsFor(bytes, {slot, 1, eviction}) * slot, bytes - bytes / 1000 - slot);
  }
}

// Cells by what a plain map says about them.
class Model {
 public:
  Model(std::string_view eviction, uint64_t seed) : rig_(6000, eviction), random_(seed) {}

  void Step() {
    switch (random_.Below(10)) {
      case 0:
      case 1: return Reserve();
      case 2: return Commit();
      case 3: return Abandon();
      case 4:
      case 5: return Find();
      case 6: return Unpin();
      case 7: return random_.Below(4) == 0 ? Erase() : Find();
      case 8: return MakeRoom();
      default: return random_.Below(200) == 0 ? EraseAll() : DropVictim();
    }
  }

  void Check(bool thoroughly) {
    const HostLedger ledger = rig_.tier->ledger();
    ASSERT_EQ(ledger.Sum(), ledger.limit_bytes);
    ASSERT_EQ(ledger.limit_bytes, rig_.arena.bytes().size());
    ASSERT_EQ(ledger.cached_bytes, cached_.size() * kSlotBytes);
    uint64_t reserved = 0;
    for (const Loading& loading : loading_) reserved += loading.keys.size();
    ASSERT_EQ(ledger.reserved_bytes, reserved * kSlotBytes);
    if (!thoroughly) return;
    ASSERT_EQ(rig_.tier->Violations(), std::vector<std::string>());
    for (const auto& [key, value] : cached_) {
      const auto pin = rig_.tier->Find(key, HostUse::kCopy);
      ASSERT_TRUE(pin);
      ExpectValue(*pin, value);
    }
    for (const auto& [pin, value] : pins_) ExpectValue(pin, value);
  }

  void Finish() {
    pins_.clear();
    loading_.clear();
    rig_.tier->EraseAll();
    EXPECT_EQ(rig_.tier->free_cells(), rig_.tier->cells());
  }
  uint64_t evicted() const { return evicted_; }

 private:
  struct Loading {
    HostReservation cells;
    std::vector<HostKey> keys;
    std::vector<bool> revoked;
    uint8_t value;
  };

  HostKey RandomKey() { return {digests_[random_.Below(kContents)], static_cast<uint32_t>(random_.Below(kGroups))}; }
  static void ExpectValue(const HostPin& pin, uint8_t value) {
    ASSERT_TRUE(std::ranges::all_of(pin.bytes(), [&](std::byte b) { return b == std::byte{value}; }));
  }

  void Reserve() {
    std::vector<HostKey> keys;
    for (uint64_t i = 1 + random_.Below(4); i > 0; --i) keys.push_back(RandomKey());
    const uint32_t free = rig_.tier->free_cells();
    Result<HostReservation> cells = rig_.tier->Reserve(keys);
    ASSERT_EQ(cells.ok(), keys.size() <= free);
    if (!cells.ok()) return;
    const auto value = static_cast<uint8_t>(random_.Below(256));
    for (size_t i = 0; i < keys.size(); ++i) std::memset(cells->bytes(i).data(), value, kSlotBytes);
    loading_.push_back({std::move(cells).value(), keys, std::vector<bool>(keys.size(), false), value});
  }

  void Commit() {
    if (loading_.empty()) return;
    Loading loading = TakeOne(loading_);
    std::move(loading.cells).Commit();
    for (size_t i = 0; i < loading.keys.size(); ++i) {
      if (!loading.revoked[i]) cached_.try_emplace(loading.keys[i], loading.value);
    }
  }
  void Abandon() {
    if (!loading_.empty() && random_.Below(3) == 0) TakeOne(loading_);
  }

  void Find() {
    const HostKey key = RandomKey();
    std::optional<HostPin> pin = rig_.tier->Find(key, random_.Below(2) == 0 ? HostUse::kRequest : HostUse::kCopy);
    const auto expected = cached_.find(key);
    ASSERT_EQ(pin.has_value(), expected != cached_.end());
    if (!pin) return;
    ExpectValue(*pin, expected->second);
    if (random_.Below(3) == 0 && pins_.size() < 8) pins_.emplace_back(std::move(*pin), expected->second);
  }
  void Unpin() {
    if (!pins_.empty()) TakeOne(pins_);
  }

  void Erase() {
    const Digest key = RandomKey().key;
    EXPECT_EQ(rig_.tier->Erase(key), std::erase_if(cached_, [&](const auto& entry) { return entry.first.key == key; }));
    for (Loading& loading : loading_) {
      for (size_t i = 0; i < loading.keys.size(); ++i) {
        if (loading.keys[i].key == key) loading.revoked[i] = true;
      }
    }
  }
  void EraseAll() {
    rig_.tier->EraseAll();
    cached_.clear();
    for (Loading& loading : loading_) loading.revoked.assign(loading.keys.size(), true);
  }

  void MakeRoom() {
    const auto wanted = static_cast<uint32_t>(random_.Below(5));
    const uint32_t free = rig_.tier->free_cells();
    const Digest expected = RandomKey().key;
    for (HostVictim& victim : rig_.tier->MakeRoom(wanted, [&](const Digest& key) { return key == expected; })) {
      ASSERT_LT(free, wanted);
      ++evicted_;
      const auto cached = cached_.find(victim.key);
      ASSERT_NE(cached, cached_.end());
      ExpectValue(victim.pin, cached->second);
      // Some are handed down, the rest is dropped.
      if (random_.Below(2) == 0 && pins_.size() < 8) pins_.emplace_back(std::move(victim.pin), cached->second);
      cached_.erase(cached);
    }
  }
  void DropVictim() { Unpin(); }

  template <class T>
  T TakeOne(std::vector<T>& all) {
    std::swap(all[random_.Below(all.size())], all.back());
    T taken = std::move(all.back());
    all.pop_back();
    return taken;
  }

  static constexpr uint64_t kContents = 20;
  std::vector<Digest> digests_ = [] {
    std::vector<Digest> digests;
    for (uint64_t i = 0; i < kContents; ++i) digests.push_back(DigestOf(i));
    return digests;
  }();
  Rig rig_;
  SplitMix64 random_;
  std::map<HostKey, uint8_t> cached_;
  std::vector<std::pair<HostPin, uint8_t>> pins_;
  std::vector<Loading> loading_;
  uint64_t evicted_ = 0;
};

class HostTierModel : public testing::TestWithParam<std::string_view> {};

TEST_P(HostTierModel, RandomOperationsAgreeWithAPlainMap) {
  constexpr int kOperations = 150'000;
  uint64_t evicted = 0;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    Model model(GetParam(), seed);
    for (int op = 0; op < kOperations / 3; ++op) {
      model.Step();
      model.Check(op % 64 == 0);
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", operation " << op;
    }
    evicted += model.evicted();
    model.Finish();
  }
  EXPECT_GT(evicted, 1000u);
}

INSTANTIATE_TEST_SUITE_P(Policies, HostTierModel,
                         testing::ValuesIn(CellEvictionNames().begin(), CellEvictionNames().end()),
                         [](const auto& info) { return std::string(info.param); });

TEST(HostTier, UseAllocatesNothingButTheListsItReturns) {
  Rig rig(1 << 20, "s3fifo");
  const uint32_t cells = rig.tier->cells();
  for (uint32_t i = 0; i < cells; ++i) rig.Put(KeyOf(i), 1);
  std::vector<HostKey> keys;
  for (uint32_t i = 0; i < cells; ++i) keys.push_back(KeyOf(cells + i));
  const uint64_t before = AllocationsSoFar();
  TakeLargestAllocation();
  for (const HostKey& key : keys) {
    rig.tier->MakeRoom(1);
    Result<HostReservation> cell = rig.tier->Reserve(std::span(&key, 1));
    std::move(*cell).Commit();
    (void)rig.tier->Find(key, HostUse::kRequest);
  }
  EXPECT_LE(AllocationsSoFar() - before, 2 * uint64_t{cells});
  EXPECT_LE(TakeLargestAllocation(), sizeof(HostVictim));
}

}  // namespace
}  // namespace cachalot::tier
