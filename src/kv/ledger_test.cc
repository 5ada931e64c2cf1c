#include "kv/kv_manager.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "base/kv_layout.h"
#include "base/random.h"
#include "kv/eviction.h"

namespace cachalot::kv {
namespace {

KvLayout Layout(std::vector<uint32_t> windows) {
  KvShape shape;
  for (const uint32_t window : windows)
    shape.layers.push_back({.kv_heads = 2, .k_dim = 8, .v_dim = 8, .window = window});
  return PlanKvLayout(shape, 1000).value();
}

// Grows by tokens that no other sequence has.
void Grow(KvManager& manager, SequenceId id, uint32_t tokens) {
  static TokenId next = 0;
  std::vector<TokenId> ids(tokens);
  std::iota(ids.begin(), ids.end(), next);
  next += tokens;
  const Growth growth{id, tokens, ids};
  std::move(manager.Reserve({&growth, 1})).value().Commit();
}

TEST(Ledger, TellsLiveSharedIdleAndWasteApart) {
  const KvLayout layout = Layout({0});
  const uint64_t token = KvBytesPerToken(layout.shape);
  KvManager manager(GeometryOf(layout, 10), MakeEvictionPolicy("lru").value());
  const SequenceId a = manager.Create();
  Grow(manager, a, 40);
  const SequenceId b = manager.Fork(a);
  KvLedger ledger = manager.Ledger(layout);
  EXPECT_EQ(ledger.live_bytes, 40 * token);
  EXPECT_EQ(ledger.shared_bytes, 40 * token);
  EXPECT_EQ(ledger.waste_bytes, 8 * token);
  EXPECT_EQ(ledger.free_bytes, 7 * layout.slot_bytes);
  Grow(manager, b, 3);
  ledger = manager.Ledger(layout);
  EXPECT_EQ(ledger.live_bytes, (32 + 8 + 11) * token);
  EXPECT_EQ(ledger.shared_bytes, 32 * token);
  manager.Free(a);
  manager.Free(b);
  ledger = manager.Ledger(layout);
  EXPECT_EQ(ledger.live_bytes, 0u);
  EXPECT_EQ(ledger.idle_bytes, (32 + 11) * token);  // the longer tail tells all that the shorter one did
  EXPECT_EQ(ledger.Sum(), ledger.total_bytes);
}

TEST(Ledger, TokensThatLeftTheirWindowAreWaste) {
  const KvLayout layout = Layout({20});
  const uint64_t token = KvBytesPerToken(layout.shape);
  KvManager manager(GeometryOf(layout, 10));
  const SequenceId a = manager.Create();
  Grow(manager, a, 60);
  // Row 60 sees 41 to 59: blocks 2 and 3.
  const KvLedger ledger = manager.Ledger(layout);
  EXPECT_EQ(ledger.live_bytes, 19 * token);
  EXPECT_EQ(ledger.waste_bytes, (9 + 4) * token);
}

TEST(Ledger, AStepInProgressReservesItsPlacesAndCopiesTails) {
  const KvLayout layout = Layout({0});
  const uint64_t token = KvBytesPerToken(layout.shape);
  KvManager manager(GeometryOf(layout, 10), MakeEvictionPolicy("lru").value());
  const SequenceId a = manager.Create();
  Grow(manager, a, 20);
  const SequenceId b = manager.Fork(a);
  const TokenId ids[] = {900, 901, 902};
  const Growth growth[] = {{a, 3, ids}, {b, 1, std::span(ids).first(1)}};
  {
    const StepReservation open = manager.Reserve(growth).value();
    const KvLedger ledger = manager.Ledger(layout);
    EXPECT_EQ(ledger.live_bytes, 20 * token);
    EXPECT_EQ(ledger.shared_bytes, 16 * token);
    EXPECT_EQ(ledger.transit_bytes, 4 * token);
    EXPECT_EQ(ledger.reserved_bytes, (3 + 1) * token);
    EXPECT_EQ(ledger.Sum(), ledger.total_bytes);
  }
  const KvLedger ledger = manager.Ledger(layout);
  EXPECT_EQ(ledger.transit_bytes + ledger.reserved_bytes, 0u);
  EXPECT_EQ(ledger.Sum(), ledger.total_bytes);
}

// Sequences of 400 tokens on average, running and ended, in at least 90 % of the pool.
TEST(Ledger, AFullPoolWastesLittle) {
  const KvLayout layout = Layout({0, 0, 0});
  KvManager manager(GeometryOf(layout, 3000), MakeEvictionPolicy("lru").value());
  SplitMix64 random(1);
  uint64_t tokens = 0;
  for (int i = 0; i < 500; ++i) {
    const SequenceId id = manager.Create();
    const auto length = static_cast<uint32_t>(200 + random.Below(401));
    tokens += length;
    Grow(manager, id, length);
    if (random.Below(4) > 0 || manager.available_slots() < 600) manager.Free(id);
    const KvLedger ledger = manager.Ledger(layout);
    ASSERT_EQ(ledger.Sum(), ledger.total_bytes);
    if (ledger.free_bytes > ledger.total_bytes / 10) continue;
    ASSERT_LE(ledger.waste_bytes + ledger.padding_bytes, ledger.total_bytes / 25) << i;
  }
  EXPECT_NEAR(static_cast<double>(tokens) / 500, 400, 10);
  EXPECT_LE(manager.Ledger(layout).free_bytes, 3000 * layout.slot_bytes / 10);
}

}  // namespace
}  // namespace cachalot::kv
