#include "kv/kv_snapshot.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kv/kv_manager.h"

namespace cachalot::kv {
namespace {

// Two sequences that share two blocks, one with a step open; a full and a sliding group.
KvSnapshot Sound() {
  KvManager manager({.block_tokens = 16, .windows = {0, 32}, .slots = 24});
  const SequenceId a = manager.Create();
  const Growth prompt[] = {{a, 72}};
  Result<StepReservation> first = manager.Reserve(prompt);
  EXPECT_TRUE(first.ok());
  std::move(*first).Commit();
  const SequenceId b = manager.Fork(a);
  const Growth growth[] = {{b, 20}};
  Result<StepReservation> second = manager.Reserve(growth);
  EXPECT_TRUE(second.ok());
  return manager.Snapshot();
}

// Every line of `lines` is part of some violation of the changed snapshot.
void ExpectViolations(const std::function<void(KvSnapshot&)>& change, const std::vector<std::string>& lines) {
  KvSnapshot snapshot = Sound();
  change(snapshot);
  std::string all;
  for (const std::string& violation : Violations(snapshot)) all += violation + "\n";
  for (const std::string& line : lines) EXPECT_NE(all.find(line), std::string::npos) << line << " is not in:\n" << all;
}

TEST(Violations, ASoundSnapshotHasNone) {
  const std::vector<std::string> violations = Violations(Sound());
  EXPECT_TRUE(violations.empty()) << violations[0];
  EXPECT_FALSE(Sound().reserved.empty());
}

TEST(Violations, FindSlotsThatAreCountedWrongly) {
  ExpectViolations([](KvSnapshot& s) { ++s.references[0]; }, {"slot 0 has 3 references; 2 page-table entries name it"});
  ExpectViolations([](KvSnapshot& s) { s.free.push_back(SlotId(0)); }, {"slot 0 is free and has 2 references"});
  ExpectViolations([](KvSnapshot& s) { s.free.push_back(s.free.back()); }, {"is on the free list 2 times"});
  ExpectViolations([](KvSnapshot& s) { s.free.pop_back(); }, {"is neither free nor referenced"});
  ExpectViolations([](KvSnapshot& s) { s.free[0] = SlotId(24); }, {"the free list names slot 24 of 24"});
  ExpectViolations([](KvSnapshot& s) { s.references.pop_back(); }, {"23 reference counts and 24 states for 24 slots"});
}

TEST(Violations, FindTablesThatLackBlocksOrKeepTooMany) {
  ExpectViolations(
      [](KvSnapshot& s) {
        s.references[s.sequences[0].tables[0].slots.back().value] -= 1;
        s.sequences[0].tables[0].slots.pop_back();
      },
      {"sequence 1 group 0 holds blocks 0 to 4; length 72, 0 reserved and window 0 call for 0 to 5"});
  // A block that has left the window by now.
  ExpectViolations([](KvSnapshot& s) { s.sequences[0].length = 79; },
                   {"sequence 1 group 1 holds blocks 2 to 5; length 79, 0 reserved and window 32 call for 3 to 5"});
  // A block that the window still needs is gone.
  ExpectViolations(
      [](KvSnapshot& s) {
        auto& table = s.sequences[0].tables[1];
        table.slots.erase(table.slots.begin());
        ++table.first_block;
      },
      {"sequence 1 group 1 holds blocks 3 to 5; length 72, 0 reserved and window 32 call for 2 to 5"});
  ExpectViolations([](KvSnapshot& s) { s.sequences[1].tables.pop_back(); }, {"sequence 2 has 1 page tables for 2"});
  ExpectViolations([](KvSnapshot& s) { s.sequences[1].tables[0].slots[0] = SlotId(99); }, {"names slot 99 of 24"});
}

TEST(Violations, FindSlotsWithTwoContents) {
  ExpectViolations(
      [](KvSnapshot& s) { std::swap(s.sequences[0].tables[0].slots[0], s.sequences[0].tables[0].slots[1]); },
      {"slot 0 is block 1 of group 0 and block 0 of group 0"});
  ExpectViolations(
      [](KvSnapshot& s) { std::swap(s.sequences[0].tables[0].slots[3], s.sequences[0].tables[1].slots[1]); },
      {"is block 3 of group 0 and block 3 of group 1", "is block 3 of group 1 and block 3 of group 0"});
}

TEST(Violations, FindASharedBlockThatIsAboutToBeWritten) {
  ExpectViolations([](KvSnapshot& s) { s.sequences[0].reserved_tokens = 1, s.references[4] = 2; },
                   {"is about to write slot"});
}

TEST(Violations, FindALoadThatIsNotWhereItShouldBe) {
  ExpectViolations([](KvSnapshot& s) { s.sequences[0].load_end = 96, s.sequences[0].load_low = 4; },
                   {"sequence 1 has 72 tokens, 0 reserved, and loads from block 4 on"});
  ExpectViolations(
      [](KvSnapshot& s) {
        KvSnapshot::Sequence& first = s.sequences[0];
        first.load_end = 96, first.load_low = 5;
        first.above = {{5, {first.tables[0].slots[0]}}, {6, {}}};
      },
      {"sequence 1 loads into slot 0, which has 2 references", "slot 0 is block 0 of group 0 and block 5 of group 0",
       "sequence 1 group 1 loads 0 blocks from 6 on; 5 to 6 are called for"});
}

TEST(Violations, FindWrongReservedSlotsAndOrder) {
  ExpectViolations([](KvSnapshot& s) { s.reserved.push_back(SlotId(0)); }, {"reserved slot 0 has 2 references"});
  ExpectViolations([](KvSnapshot& s) { s.reserved.push_back(s.reserved[0]); }, {"is reserved twice"});
  ExpectViolations([](KvSnapshot& s) { s.sequences[1].reserved_tokens = 0; }, {"and no growing sequence"});
  ExpectViolations([](KvSnapshot& s) { std::swap(s.sequences[0], s.sequences[1]); },
                   {"sequence 1 is listed after sequence 2"});
}

}  // namespace
}  // namespace cachalot::kv
