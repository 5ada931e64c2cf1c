#include "kv/ledger.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "base/random.h"
#include "kv/eviction.h"
#include "kv/kv_manager.h"

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
  KvLedger ledger = LedgerOf(manager.Snapshot(), layout);
  EXPECT_EQ(ledger.live_bytes, 40 * token);
  EXPECT_EQ(ledger.shared_bytes, 40 * token);
  EXPECT_EQ(ledger.waste_bytes, 8 * token);
  EXPECT_EQ(ledger.free_bytes, 7 * layout.slot_bytes);
  Grow(manager, b, 3);
  ledger = LedgerOf(manager.Snapshot(), layout);
  EXPECT_EQ(ledger.live_bytes, (32 + 8 + 11) * token);
  EXPECT_EQ(ledger.shared_bytes, 32 * token);
  manager.Free(a);
  manager.Free(b);
  ledger = LedgerOf(manager.Snapshot(), layout);
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
  const KvLedger ledger = LedgerOf(manager.Snapshot(), layout);
  EXPECT_EQ(ledger.live_bytes, 19 * token);
  EXPECT_EQ(ledger.waste_bytes, (9 + 4) * token);
}

TEST(Ledger, AFullPoolWastesLittle) {
  const KvLayout layout = Layout({0, 0, 0});
  KvManager manager(GeometryOf(layout, 3000), MakeEvictionPolicy("lru").value());
  SplitMix64 random(1);
  for (int i = 0; i < 500; ++i) {
    const SequenceId id = manager.Create();
    Grow(manager, id, static_cast<uint32_t>(200 + random.Below(400)));
    if (random.Below(4) > 0 || manager.available_slots() < 600) manager.Free(id);
  }
  const KvLedger ledger = LedgerOf(manager.Snapshot(), layout);
  EXPECT_EQ(ledger.Sum(), ledger.total_bytes);
  EXPECT_LT(ledger.free_bytes, ledger.total_bytes / 10);
  EXPECT_LE(ledger.waste_bytes + ledger.padding_bytes, (ledger.total_bytes - ledger.free_bytes) / 25);
}

}  // namespace
}  // namespace cachalot::kv
