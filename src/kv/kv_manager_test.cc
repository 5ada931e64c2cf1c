#include "kv/kv_manager.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "kv/kv_snapshot.h"

namespace cachalot::kv {
namespace {

KvGeometry Full(uint32_t slots, uint32_t groups = 1) {
  return {.block_tokens = 16, .windows = std::vector<uint32_t>(groups, 0), .slots = slots};
}

std::vector<uint32_t> SlotsOf(const KvManager& manager, SequenceId sequence, uint32_t group = 0) {
  const PageTableRef pages = manager.Pages(sequence, group);
  return {pages.slots, pages.slots + pages.slot_count};
}

StepReservation Must(Result<StepReservation> step) {
  EXPECT_TRUE(step.ok()) << step.status().message();
  return std::move(step).value();
}

StepReservation ReserveFor(KvManager& manager, std::vector<Growth> growth) { return Must(manager.Reserve(growth)); }

void Grow(KvManager& manager, std::vector<Growth> growth) { ReserveFor(manager, std::move(growth)).Commit(); }

void ExpectSound(const KvManager& manager) {
  for (const std::string& violation : Violations(manager.Snapshot())) ADD_FAILURE() << violation;
}

TEST(KvManager, AReservedStepShowsItsBlocksAndCommitKeepsThem) {
  KvManager manager(Full(10));
  const SequenceId id = manager.Create();
  EXPECT_EQ(manager.SlotsToGrow(id, 17), 2u);
  StepReservation step = ReserveFor(manager, {{id, 17}});
  EXPECT_TRUE(step.copies().empty());
  EXPECT_EQ(SlotsOf(manager, id), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(manager.Length(id), 0u);
  EXPECT_EQ(manager.free_slots(), 8u);
  ExpectSound(manager);
  std::move(step).Commit();
  EXPECT_EQ(manager.Length(id), 17u);
  EXPECT_EQ(SlotsOf(manager, id), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(manager.SlotsToGrow(id, 15), 0u);
  EXPECT_EQ(manager.SlotsToGrow(id, 16), 1u);
  ExpectSound(manager);
}

TEST(KvManager, AStepThatIsNotCommittedLeavesEverythingAsItWas) {
  KvManager manager(Full(10, 2));
  const SequenceId a = manager.Create();
  Grow(manager, {{a, 20}});
  const SequenceId b = manager.Fork(a);
  const KvSnapshot before = manager.Snapshot();
  {
    const StepReservation step = ReserveFor(manager, {{a, 13}, {b, 1}});
    EXPECT_EQ(step.copies().size(), 2u);
    EXPECT_EQ(manager.free_slots(), 10u - 4 - 2 - 2);
    ExpectSound(manager);
  }
  const KvSnapshot after = manager.Snapshot();
  EXPECT_EQ(after.free, before.free);  // the order too, so that a repeated step takes the same slots
  EXPECT_EQ(after.references, before.references);
  EXPECT_TRUE(after.reserved.empty());
  for (size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(after.sequences[s].length, 20u);
    for (size_t g = 0; g < 2; ++g) EXPECT_EQ(after.sequences[s].tables[g].slots, before.sequences[s].tables[g].slots);
  }
}

TEST(KvManager, AMovedReservationEndsOnce) {
  KvManager manager(Full(4));
  const SequenceId id = manager.Create();
  {
    StepReservation step = ReserveFor(manager, {{id, 1}});
    const StepReservation moved(std::move(step));
    EXPECT_EQ(manager.free_slots(), 3u);
  }
  EXPECT_EQ(manager.free_slots(), 4u);
}

TEST(KvManager, AStepThatDoesNotFitTakesNothingAndSaysWhatIsMissing) {
  KvManager manager(Full(3));
  const SequenceId a = manager.Create();
  const SequenceId b = manager.Create();
  const Growth growth[] = {{a, 33}, {b, 1}};
  const Result<StepReservation> refused = manager.Reserve(growth);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kOverloaded);
  EXPECT_NE(refused.status().message().find("needs 4 slots; 3 of 3 are free"), std::string::npos)
      << refused.status().message();
  EXPECT_EQ(manager.free_slots(), 3u);
  Grow(manager, {{a, 32}, {b, 16}});  // exactly all
  EXPECT_EQ(manager.free_slots(), 0u);
  Grow(manager, {{a, 0}, {b, 0}});
}

TEST(KvManager, AForkSharesAllAndCopiesOnlyTheTailThatItWrites) {
  KvManager manager(Full(20, 3));
  const SequenceId parent = manager.Create();
  Grow(manager, {{parent, 40}});
  const SequenceId fork = manager.Fork(parent);
  EXPECT_EQ(manager.Length(fork), 40u);
  EXPECT_EQ(manager.free_slots(), 11u);
  EXPECT_EQ(SlotsOf(manager, fork, 1), SlotsOf(manager, parent, 1));

  EXPECT_EQ(manager.SlotsToGrow(fork, 1), 3u);
  StepReservation step = ReserveFor(manager, {{fork, 1}});
  ASSERT_EQ(step.copies().size(), 3u);  // one per group
  for (uint32_t group = 0; group < 3; ++group) {
    const std::vector<uint32_t> theirs = SlotsOf(manager, parent, group);
    const std::vector<uint32_t> own = SlotsOf(manager, fork, group);
    EXPECT_EQ(own[0], theirs[0]);
    EXPECT_EQ(own[1], theirs[1]);
    EXPECT_EQ(step.copies()[group].from.value, theirs[2]);
    EXPECT_EQ(step.copies()[group].to.value, own[2]);
    EXPECT_NE(own[2], theirs[2]);
  }
  std::move(step).Commit();
  // The parent is now the tail's only owner and writes in place.
  EXPECT_EQ(manager.SlotsToGrow(parent, 1), 0u);
  EXPECT_TRUE(ReserveFor(manager, {{parent, 1}}).copies().empty());
  ExpectSound(manager);
}

TEST(KvManager, AForkAtABlockBoundaryCopiesNothing) {
  KvManager manager(Full(10));
  const SequenceId parent = manager.Create();
  Grow(manager, {{parent, 32}});
  const SequenceId fork = manager.Fork(parent);
  const StepReservation step = ReserveFor(manager, {{parent, 1}, {fork, 1}});
  EXPECT_TRUE(step.copies().empty());
  EXPECT_EQ(manager.free_slots(), 10u - 2 - 2);
}

TEST(KvManager, TheLastOwnerOfASharedTailKeepsIt) {
  KvManager manager(Full(4));
  const SequenceId a = manager.Create();
  Grow(manager, {{a, 5}});
  const SequenceId b = manager.Fork(a);
  const SequenceId c = manager.Fork(a);
  const SequenceId d = manager.Fork(b);
  // Four owners, three copies: exactly the three free slots.
  StepReservation step = ReserveFor(manager, {{c, 1}, {a, 1}, {d, 1}, {b, 1}});
  ASSERT_EQ(step.copies().size(), 3u);
  EXPECT_EQ(SlotsOf(manager, b), (std::vector<uint32_t>{0}));
  for (const BlockCopy& copy : step.copies()) EXPECT_EQ(copy.from, SlotId(0));
  std::move(step).Commit();
  EXPECT_EQ(manager.free_slots(), 0u);
  ExpectSound(manager);
}

TEST(KvManager, FreeingDropsOnlyTheSequencesOwnReferences) {
  KvManager manager(Full(10));
  const SequenceId parent = manager.Create();
  Grow(manager, {{parent, 20}});
  const SequenceId fork = manager.Fork(parent);
  Grow(manager, {{fork, 30}});
  manager.Free(parent);
  EXPECT_EQ(SlotsOf(manager, fork).size(), 4u);
  EXPECT_EQ(manager.free_slots(), 6u);
  ExpectSound(manager);
  manager.Free(fork);
  EXPECT_EQ(manager.free_slots(), 10u);
}

TEST(KvManager, BlocksLeaveTheWindowAtCommitAndNoSooner) {
  KvManager manager({.block_tokens = 16, .windows = {0, 32}, .slots = 100});
  const SequenceId id = manager.Create();
  Grow(manager, {{id, 46}});
  // The next row, at 46, sees positions 15 to 46: block 0 is needed for one more row.
  EXPECT_EQ(manager.Pages(id, 1).first_block, 0u);
  Grow(manager, {{id, 1}});
  EXPECT_EQ(manager.Pages(id, 1).first_block, 1u);
  EXPECT_EQ(manager.Pages(id, 1).slot_count, 2u);
  EXPECT_EQ(manager.Pages(id, 0).slot_count, 3u);
  {
    // A step of many rows needs the window of its first row, and what it writes.
    const StepReservation step = ReserveFor(manager, {{id, 100}});
    EXPECT_EQ(manager.Pages(id, 1).first_block, 1u);
    EXPECT_EQ(manager.Pages(id, 1).slot_count, 9u);
  }
  Grow(manager, {{id, 100}});
  EXPECT_EQ(manager.Pages(id, 1).first_block, 7u);  // the row at 147 sees 116 to 147
  EXPECT_EQ(manager.Pages(id, 1).slot_count, 3u);
  ExpectSound(manager);
}

TEST(KvManager, AForkKeepsWindowBlocksThatItsParentLeaves) {
  KvManager manager({.block_tokens = 16, .windows = {32}, .slots = 20});
  const SequenceId parent = manager.Create();
  Grow(manager, {{parent, 48}});
  const SequenceId fork = manager.Fork(parent);
  const std::vector<uint32_t> shared = SlotsOf(manager, fork);
  Grow(manager, {{parent, 64}});
  EXPECT_EQ(SlotsOf(manager, fork), shared);
  ExpectSound(manager);
  manager.Free(parent);
  EXPECT_EQ(manager.free_slots(), 20u - shared.size());
}

TEST(KvManager, SequenceIdsAreNeverGivenTwice) {
  KvManager manager(Full(10));
  SequenceId last{0};
  for (int i = 0; i < 100; ++i) {
    const SequenceId id = i % 2 == 0 ? manager.Create() : manager.Fork(last);
    EXPECT_GT(id, last);
    if (i % 3 == 0 && i % 2 == 1) manager.Free(last);
    last = id;
  }
}

// What Attach copies from may have gone by the time of the step.
TEST(KvManager, AStepNamesItsOwnCopiesOnly) {
  KvManager manager(Full(10), MakeEvictionPolicy("lru").value());
  const std::vector<TokenId> tokens = {1, 2, 3, 4, 5, 6};
  const SequenceId first = manager.Create();
  manager.Attach(first, tokens, 0);
  const Growth prompt[] = {{first, 6, tokens}};
  std::move(manager.Reserve(prompt)).value().Commit();
  manager.Free(first);
  const SequenceId second = manager.Create();
  ASSERT_EQ(manager.Attach(second, tokens, 5).copies.size(), 1u);
  const Growth rest[] = {{second, 1, std::span(tokens).subspan(5)}};
  Result<StepReservation> step = manager.Reserve(rest);
  ASSERT_TRUE(step.ok());
  EXPECT_TRUE(step->copies().empty());
}

TEST(KvManagerDeathTest, MisuseStops) {
  KvManager manager(Full(10));
  const SequenceId id = manager.Create();
  const SequenceId gone = manager.Create();
  manager.Free(gone);
  EXPECT_DEATH(manager.Length(gone), "check failed");
  EXPECT_DEATH(manager.Free(gone), "check failed");
  EXPECT_DEATH(manager.Fork(SequenceId(99)), "check failed");
  EXPECT_DEATH(manager.SlotsToGrow(SequenceId(0), 1), "check failed");
  EXPECT_DEATH(manager.Pages(id, 1), "check failed");
  EXPECT_DEATH(Grow(manager, {{gone, 1}}), "check failed");
  EXPECT_DEATH(Grow(manager, {{id, 1}, {id, 1}}), "check failed");
  const StepReservation step = ReserveFor(manager, {{id, 1}});
  EXPECT_DEATH(ReserveFor(manager, {{id, 1}}), "check failed");
  EXPECT_DEATH(manager.Free(id), "check failed");
  EXPECT_DEATH(manager.Fork(id), "check failed");
  EXPECT_DEATH(manager.SlotsToGrow(id, 1), "check failed");
}

}  // namespace
}  // namespace cachalot::kv
