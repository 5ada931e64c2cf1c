#include "sched/meeting.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::sched {
namespace {

constexpr uint32_t kBlock = 4;

// The caller of a Meeting: what really happened to every block, and to every load that is under way, cancelled or not.
struct World {
  explicit World(const MeetingView& v) : view(v), meeting(v), front(v.first_token) {}

  MeetingView view;
  Meeting meeting;
  uint64_t front;                // tokens that are computed
  uint64_t chunk = 0;            // rows of the open chunk
  std::set<uint64_t> loading;    // wanted loads
  std::set<uint64_t> cancelled;  // loads that nobody wants and that have not ended
  std::set<uint64_t> loaded;
  std::set<uint64_t> begun;  // loads, ever
  int failures = 0, failed_steps = 0;

  bool nothing_in_flight() const { return chunk == 0 && loading.empty(); }
  uint64_t end_block() const { return (view.end_token + kBlock - 1) / kBlock; }
  uint64_t low_token() const { return std::min(meeting.low_block() * kBlock, view.end_token); }
  uint32_t GroupsOf(uint64_t block) const {
    uint32_t groups = 0;
    for (size_t g = 0; g < view.first_read.size(); ++g) groups |= block >= view.first_read[g] ? 1u << g : 0;
    return groups;
  }

  void Load(uint64_t most) {
    const uint64_t before = meeting.low_block();
    const std::vector<BlockLoad> loads = meeting.NextLoads(most);
    EXPECT_LE(loads.size(), most);
    uint64_t next = before;
    for (const BlockLoad& load : loads) {
      while (--next > load.block) EXPECT_EQ(GroupsOf(next), 0u);  // only what nobody reads is passed over
      EXPECT_EQ(load.groups, GroupsOf(load.block));
      EXPECT_NE(load.groups, 0u);
      EXPECT_GE(load.block * kBlock, front);
      EXPECT_TRUE(begun.insert(load.block).second) << "a second load of block " << load.block;
      loading.insert(load.block);
    }
  }
  void Plan(uint64_t rows) {
    const std::vector<uint64_t> taken = meeting.TakeOver(rows);
    EXPECT_EQ(meeting.low_token(), low_token());
    chunk = std::min(rows, low_token() - front);
    for (const uint64_t block : taken) {
      EXPECT_EQ(loading.erase(block), 1u);
      cancelled.insert(block);
      EXPECT_LT(block * kBlock, front + chunk) << "cancelled, but not computed";
    }
    for (uint64_t block = front / kBlock; block * kBlock < front + chunk; ++block) {
      EXPECT_FALSE(loaded.contains(block) || loading.contains(block));
    }
  }
  void Compute() {
    meeting.Computed(chunk);
    front += chunk;
    chunk = 0;
  }
  void FailStep() {
    chunk = 0;
    ++failed_steps;
  }
  void Arrive(uint64_t block) {
    EXPECT_EQ(meeting.Loaded(block), loading.contains(block));
    if (loading.erase(block) > 0) loaded.insert(block);
    cancelled.erase(block);
  }
  void Fail(uint64_t block) {
    const bool wanted = loading.erase(block) > 0;
    cancelled.erase(block);
    const LostBlocks lost = meeting.Failed(block);
    if (!wanted) {
      EXPECT_TRUE(lost.cancelled.empty() && lost.dropped.empty());
      return;
    }
    ++failures;
    for (const uint64_t b : lost.cancelled) {
      EXPECT_EQ(loading.erase(b), 1u);
      cancelled.insert(b);
    }
    for (const uint64_t b : lost.dropped) EXPECT_EQ(loaded.erase(b), 1u);
    for (const uint64_t b : loading) EXPECT_GT(b, block);
    for (const uint64_t b : loaded) EXPECT_GT(b, block);
    EXPECT_EQ(meeting.low_block(), block + 1);
  }

  void Check() {
    EXPECT_EQ(meeting.front_token(), front);
    EXPECT_EQ(meeting.loading(), loading.size());
    EXPECT_LE(front + chunk, low_token());
    for (uint64_t b = 0; b < end_block(); ++b) {
      const BlockFate fate = meeting.FateOf(b);
      EXPECT_EQ(fate == BlockFate::kLoading, loading.contains(b)) << b;
      EXPECT_EQ(fate == BlockFate::kFront, b * kBlock < front) << b;
      EXPECT_EQ(fate == BlockFate::kLoaded && GroupsOf(b) != 0, loaded.contains(b)) << b;
    }
    if (meeting.done() && chunk == 0) CheckEnd();
  }
  // All blocks once: computed below, loaded above, as far as anybody reads them.
  void CheckEnd() {
    EXPECT_TRUE(nothing_in_flight());
    EXPECT_EQ(front, low_token());
    for (uint64_t b = 0; b < end_block(); ++b) {
      const bool computed = std::min((b + 1) * kBlock, view.end_token) <= front;
      EXPECT_EQ(computed, !loaded.contains(b) && (b < meeting.low_block() || GroupsOf(b) != 0)) << b;
    }
  }

  std::string Key() const {
    std::string key = std::to_string(front) + "/" + std::to_string(chunk) + "/" + std::to_string(meeting.low_block()) +
                      "/" + std::to_string(failures) + std::to_string(failed_steps);
    for (const auto* set : {&loading, &cancelled, &loaded, &begun}) {
      key += "/";
      for (const uint64_t b : *set) key += std::to_string(b) + ",";
    }
    return key;
  }
};

// Goes through every order of events that there is: each state is visited once.
class Explorer {
 public:
  void Explore(const World& world) {
    if (!seen_.insert(world.Key()).second || testing::Test::HasFailure()) return;
    if (world.meeting.done() && world.chunk == 0) {
      ++ends_;
      meeting_points_.insert(world.meeting.low_block());
    } else if (world.nothing_in_flight()) {
      World copy = world;
      copy.Plan(1);
      EXPECT_GT(copy.chunk, 0u) << "stuck at " << world.Key();
    }
    if (world.chunk == 0) {
      for (const uint64_t most : {1, 2}) {
        Try(world, [&](World& w) { w.Load(most); });
      }
      for (const uint64_t rows : {uint64_t{kBlock}, uint64_t{kBlock} + 2, uint64_t{1000}}) {
        Try(world, [&](World& w) { w.Plan(rows); });
      }
    } else {
      Try(world, [](World& w) { w.Compute(); });
      if (world.failed_steps < 1) Try(world, [](World& w) { w.FailStep(); });
    }
    for (const auto* set : {&world.loading, &world.cancelled}) {
      for (const uint64_t block : *set) {
        Try(world, [&](World& w) { w.Arrive(block); });
        Try(world, [&](World& w) { w.Fail(block); });
      }
    }
  }

  size_t states() const { return seen_.size(); }
  size_t ends() const { return ends_; }
  const std::set<uint64_t>& meeting_points() const { return meeting_points_; }

 private:
  template <class Event>
  void Try(const World& world, Event event) {
    World next = world;
    event(next);
    next.Check();
    Explore(next);
  }

  std::set<std::string> seen_;
  std::set<uint64_t> meeting_points_;
  size_t ends_ = 0;
};

// `lacks`: tokens of the last block.
MeetingView View(uint64_t blocks, std::vector<uint64_t> first_read = {0}, uint64_t first_token = 0,
                 uint64_t lacks = 0) {
  return {.first_token = first_token,
          .end_token = blocks * kBlock - lacks,
          .block_tokens = kBlock,
          .first_read = std::move(first_read)};
}

TEST(Meeting, EveryOrderOfEventsEndsWithEachBlockOnce) {
  for (uint64_t blocks = 0; blocks <= 4; ++blocks) {
    Explorer explorer;
    explorer.Explore(World(View(blocks)));
    EXPECT_EQ(explorer.meeting_points().size(), blocks + 1) << "some cut was never tried";
    EXPECT_GT(explorer.states(), blocks == 4 ? 1000u : 0u);
    EXPECT_GT(explorer.ends(), 0u);
  }
}

TEST(Meeting, EveryOrderOfEventsWithWindowsAndAPartOfABlock) {
  for (const uint64_t first_token : {0, 1, 4, 6}) {
    Explorer mixed;  // full attention, a window of the last block, one of the last two
    mixed.Explore(World(View(4, {0, 3, 2}, first_token)));
    EXPECT_EQ(mixed.meeting_points().size(), 5 - (first_token + kBlock - 1) / kBlock);
  }
  Explorer tail;  // sealed short
  tail.Explore(World(View(3, {0, 2}, 2, 3)));
  EXPECT_EQ(tail.meeting_points().size(), 3u);
  Explorer sliding;  // nobody reads the first blocks
  sliding.Explore(World(View(4, {2})));
  EXPECT_TRUE(sliding.meeting_points().contains(0));  // the window alone will do
  EXPECT_TRUE(sliding.meeting_points().contains(4));  // and so will no load at all
}

TEST(Meeting, RandomOrdersOfManyBlocks) {
  SplitMix64 random(1);
  for (int run = 0; run < 300; ++run) {
    const uint64_t blocks = 1 + random.Below(40);
    const uint64_t lacks = random.Below(kBlock);
    World world(View(blocks, {0, random.Below(blocks)}, random.Below(blocks * kBlock - lacks + 1), lacks));
    int steps = 0;
    while (!(world.meeting.done() && world.chunk == 0) && !HasFailure()) {
      ASSERT_LT(++steps, 2000) << "no progress";
      const uint64_t kind = random.Below(10);
      const std::set<uint64_t>& ending =
          random.Below(2) == 0 && !world.cancelled.empty() ? world.cancelled : world.loading;
      const auto any = [&] {
        return *std::next(ending.begin(), static_cast<std::ptrdiff_t>(random.Below(ending.size())));
      };
      if (kind < 2 && world.chunk == 0) {
        world.Load(random.Below(4));
      } else if (kind < 5) {
        world.chunk == 0 ? world.Plan(1 + random.Below(12)) : random.Below(8) == 0 ? world.FailStep() : world.Compute();
      } else if (!ending.empty()) {
        random.Below(12) == 0 ? world.Fail(any()) : world.Arrive(any());
      }
      world.Check();
    }
  }
}

TEST(Meeting, ChunksEndAtTheLowestClaimedBlock) {
  Meeting meeting(View(10));
  EXPECT_EQ(meeting.NextLoads(3), (std::vector<BlockLoad>{{9, 1}, {8, 1}, {7, 1}}));
  EXPECT_EQ(meeting.low_token(), 7u * kBlock);
  EXPECT_TRUE(meeting.TakeOver(1000).empty()) << "before the front is there";
  meeting.Computed(7 * kBlock);
  EXPECT_TRUE(meeting.NextLoads(3).empty());  // all is claimed
}

TEST(Meeting, LoadsThatTheFrontReachesAreCancelledAsFarAsItsChunk) {
  Meeting meeting(View(6));
  meeting.NextLoads(4);
  meeting.Computed(2 * kBlock);
  EXPECT_TRUE(meeting.Loaded(5));
  EXPECT_EQ(meeting.TakeOver(kBlock + 1), (std::vector<uint64_t>{2, 3}));  // it has a row in block 3
  EXPECT_FALSE(meeting.Loaded(2));                                         // too late
  EXPECT_TRUE(meeting.Loaded(4));
  meeting.Computed(kBlock + 1);
  EXPECT_FALSE(meeting.done());
  EXPECT_TRUE(meeting.TakeOver(1000).empty());
  meeting.Computed(kBlock - 1);
  EXPECT_TRUE(meeting.done());
  EXPECT_EQ(meeting.low_block(), 4u);
}

TEST(Meeting, AFailedBlockMovesTheLoadedPartUp) {
  Meeting meeting(View(6));
  meeting.NextLoads(4);
  EXPECT_TRUE(meeting.Loaded(5));
  EXPECT_TRUE(meeting.Loaded(3));
  const LostBlocks lost = meeting.Failed(4);
  EXPECT_EQ(lost.cancelled, std::vector<uint64_t>{2});
  EXPECT_EQ(lost.dropped, std::vector<uint64_t>{3});
  EXPECT_TRUE(meeting.NextLoads(4).empty());
  EXPECT_EQ(meeting.low_token(), 5u * kBlock);
  meeting.Computed(5 * kBlock);
  EXPECT_TRUE(meeting.done());
}

TEST(Meeting, ALoaderWithoutRoomClaimsNoMore) {
  Meeting meeting(View(6));
  meeting.NextLoads(2);
  meeting.StopLoading();
  EXPECT_TRUE(meeting.NextLoads(2).empty());
  EXPECT_EQ(meeting.low_token(), 4u * kBlock);
}

TEST(Meeting, OfSlidingGroupsOnlyTheLastWindowIsLoaded) {
  Meeting mixed(View(6, {0, 4}));
  EXPECT_EQ(mixed.NextLoads(6), (std::vector<BlockLoad>{{5, 3}, {4, 3}, {3, 1}, {2, 1}, {1, 1}, {0, 1}}));
  Meeting sliding(View(6, {4}));
  EXPECT_EQ(sliding.NextLoads(6), (std::vector<BlockLoad>{{5, 1}, {4, 1}}));
  EXPECT_TRUE(sliding.Loaded(5) && sliding.Loaded(4));
  EXPECT_TRUE(sliding.done());  // without a row
}

// Steps of a chunk take `row` per token, loads `block` each, one after the other: how long it takes.
uint64_t Makespan(uint64_t blocks, uint64_t chunk_rows, uint64_t row, uint64_t block) {
  World world(View(blocks));
  world.Load(UINT64_MAX);
  uint64_t now = 0, computed_at = UINT64_MAX, loaded_at = block;
  while (!world.meeting.done() || world.chunk > 0) {
    if (world.chunk == 0) {
      world.Plan(chunk_rows);
      computed_at = world.chunk == 0 ? UINT64_MAX : now + world.chunk * row;
    }
    if (world.loading.empty()) loaded_at = UINT64_MAX;
    now = std::min(computed_at, loaded_at);
    if (now == computed_at) {
      world.Compute();
    } else {
      world.Arrive(*world.loading.rbegin());
      loaded_at = now + block;
    }
  }
  return now;
}

TEST(Meeting, TakesAsLongAsTheBestCutGivesOrAChunkMore) {
  constexpr uint64_t kBlocks = 100, kRow = 10;
  for (const uint64_t chunk_rows : {kBlock, 4 * kBlock, 10 * kBlock}) {
    for (const uint64_t block : {1, 10, 40, 100, 1000}) {
      uint64_t best = UINT64_MAX;
      for (uint64_t cut = 0; cut <= kBlocks; ++cut) {
        best = std::min(best, std::max(cut * kBlock * kRow, (kBlocks - cut) * block));
      }
      EXPECT_LE(Makespan(kBlocks, chunk_rows, kRow, block), best + (chunk_rows + 2 * kBlock) * kRow + 2 * block)
          << chunk_rows << " " << block;
    }
  }
}

TEST(Meeting, TheFrontTakesOverWhatItIsThroughWithWhenTheLoaderGetsThere) {
  EXPECT_EQ(RowsToTakeOver(100, 1, 1, 1000), 50u);
  EXPECT_EQ(RowsToTakeOver(100, 3, 1, 1000), 25u);  // computing is slow
  EXPECT_EQ(RowsToTakeOver(100, 1, 3, 1000), 75u);
  EXPECT_EQ(RowsToTakeOver(100, 1, 3, 64), 64u);
  EXPECT_EQ(RowsToTakeOver(100, 1, 0, 64), 1u);  // it goes on in any case
  EXPECT_EQ(RowsToTakeOver(100, 0, 0, 64), 64u);
}

}  // namespace
}  // namespace cachalot::sched
