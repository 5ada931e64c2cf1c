#include "kv/page_table.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "kv/slot_pool.h"

namespace cachalot::kv {
namespace {

std::vector<uint32_t> SlotsOf(const PageTable& table) {
  const PageTableRef ref = table.Ref();
  return {ref.slots, ref.slots + ref.slot_count};
}

std::vector<SlotId> FreeList(const SlotPool& pool) { return {pool.free_list().begin(), pool.free_list().end()}; }

TEST(PageTable, TakesSlotsFromZeroUpAndGivesThemBackWhenItEnds) {
  SlotPool pool(5);
  {
    PageTable table(pool);
    for (int i = 0; i < 3; ++i) table.Append();
    EXPECT_EQ(SlotsOf(table), (std::vector<uint32_t>{0, 1, 2}));
    EXPECT_EQ(pool.free_count(), 2u);
    EXPECT_EQ(table.end_block(), 3u);
  }
  EXPECT_EQ(pool.free_count(), 5u);
}

TEST(PageTable, TheLastSlotFreedIsTheNextTaken) {
  SlotPool pool(5);
  PageTable table(pool);
  table.Append();
  table.Append();
  table.PopBack();
  PageTable other(pool);
  other.Append();
  EXPECT_EQ(other.tail(), SlotId(1));
}

TEST(PageTable, SharedSlotsAreFreeOnlyWhenTheLastHolderDropsThem) {
  SlotPool pool(4);
  PageTable parent(pool);
  parent.Append();
  parent.Append();
  PageTable child(pool);
  child.ShareAll(parent);
  EXPECT_EQ(SlotsOf(child), SlotsOf(parent));
  EXPECT_EQ(pool.references(SlotId(0)), 2u);
  parent.Clear();
  EXPECT_EQ(pool.free_count(), 2u);
  child.Clear();
  EXPECT_EQ(pool.free_count(), 4u);
}

TEST(PageTable, UnsharingATailAndUndoingItRestoresPoolAndTable) {
  SlotPool pool(4);
  PageTable parent(pool);
  parent.Append();
  PageTable child(pool);
  child.ShareAll(parent);
  const std::vector<SlotId> free_before = FreeList(pool);
  const BlockCopy copy = child.UnshareTail();
  EXPECT_EQ(copy.from, SlotId(0));
  EXPECT_EQ(copy.to, SlotId(1));
  EXPECT_EQ(child.tail(), copy.to);
  EXPECT_EQ(parent.tail(), copy.from);
  EXPECT_EQ(pool.references(copy.from), 1u);
  child.ShareTailAgain(copy.from);
  EXPECT_EQ(child.tail(), copy.from);
  EXPECT_EQ(pool.references(copy.from), 2u);
  EXPECT_EQ(FreeList(pool), free_before);
}

TEST(PageTable, DroppingTheFrontKeepsLogicalNumbersAndReusesItsRoom) {
  SlotPool pool(8);
  PageTable table(pool);
  for (uint64_t block = 0; block < 1000; ++block) {
    table.Append();
    if (block >= 3) table.DropBefore(block - 2);
    const PageTableRef ref = table.Ref();
    EXPECT_EQ(ref.first_block + ref.slot_count, block + 1);
    EXPECT_LE(ref.slot_count, 3u);
  }
  EXPECT_EQ(table.first_block(), 997u);
  EXPECT_EQ(pool.free_count(), 5u);
  table.DropBefore(1000);
  EXPECT_EQ(table.count(), 0u);
  EXPECT_EQ(table.end_block(), 1000u);
}

TEST(PageTable, MovingLeavesNothingBehind) {
  SlotPool pool(2);
  PageTable table(pool);
  table.Append();
  PageTable moved(std::move(table));
  EXPECT_EQ(table.count(), 0u);  // NOLINT: a moved-from table is empty
  EXPECT_EQ(moved.count(), 1u);
  EXPECT_EQ(pool.references(SlotId(0)), 1u);
}

TEST(PageTableDeathTest, MisuseStops) {
  SlotPool pool(1);
  PageTable table(pool);
  EXPECT_DEATH(table.PopBack(), "check failed");
  table.Append();
  EXPECT_DEATH(table.Append(), "check failed");
  EXPECT_DEATH(table.UnshareTail(), "check failed");
  EXPECT_DEATH(table.DropBefore(2), "check failed");
}

}  // namespace
}  // namespace cachalot::kv
