#include "sim/sim_transfers.h"

#include <gtest/gtest.h>

#include "tier/aligned_bytes.h"

namespace cachalot::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class NothingToDo final : public tier::TransferJob {
 public:
  Status Run(std::span<std::byte>, const std::atomic<bool>& stop) override {
    return stop ? Unavailable("stopped") : OkStatus();
  }
};

struct Rig {
  ManualClock clock;
  tier::AlignedBytes staging;
  SimTransfers transfers{staging.Resize(1 << 20),
                         {.limits = {.in_flight_bytes = {1 << 20, 1 << 20}, .running_jobs = {4, 1}}, .threads = 5},
                         {TierRate{0.001, 1e6}, TierRate{0.002, 5e5}},
                         clock};
  tier::TransferId Start(Direction direction, uint64_t bytes, Nanos deadline = Nanos::max()) {
    return transfers
        .Submit({.link = TierId::kDisk,
                 .direction = direction,
                 .bytes = bytes,
                 .deadline = deadline,
                 .job = std::make_unique<NothingToDo>()})
        .value();
  }
  // Goes on to when something ends.
  std::vector<tier::TransferCompletion> Next() {
    clock.SleepUntil(transfers.WakeAt().value());
    return transfers.Poll();
  }
};

TEST(SimTransfers, ALinkMovesOneJobsBytesAfterAnothersAndTheirLatenciesOverlap) {
  Rig rig;
  const tier::TransferId first = rig.Start(Direction::kUp, 10'000), second = rig.Start(Direction::kUp, 20'000);
  const tier::TransferId down = rig.Start(Direction::kDown, 10'000);
  std::vector<tier::TransferCompletion> ended = rig.Next();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].id, first);
  EXPECT_EQ(ended[0].end, TransferEnd::kDone);
  EXPECT_EQ(rig.clock.Now(), milliseconds(11));
  ended = rig.Next();
  EXPECT_EQ(ended.at(0).id, down);
  EXPECT_EQ(rig.clock.Now(), milliseconds(22));
  ended = rig.Next();
  EXPECT_EQ(ended.at(0).id, second);
  EXPECT_EQ(rig.clock.Now(), milliseconds(31));
  EXPECT_FALSE(rig.transfers.WakeAt());
}

TEST(SimTransfers, WhatIsLateEndsAtItsDeadlineAndTheLinkIsBusyUntilItIsThrough) {
  Rig rig;
  rig.Start(Direction::kUp, 500'000, milliseconds(100));
  const tier::TransferId next = rig.Start(Direction::kUp, 1000);
  std::vector<tier::TransferCompletion> ended = rig.Next();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].end, TransferEnd::kLate);
  EXPECT_EQ(rig.clock.Now(), milliseconds(100));
  do ended = rig.Next();
  while (ended.empty());
  EXPECT_EQ(ended.at(0).id, next);
  EXPECT_EQ(rig.clock.Now(), milliseconds(502));
  EXPECT_TRUE(rig.transfers.Violations().empty());
}

TEST(SimTransfers, WhatEndedLongAgoEndedInItsOwnTime) {
  Rig rig;
  for (int i = 0; i < 8; ++i) rig.Start(Direction::kUp, 10'000);
  rig.clock.SleepUntil(seconds(100));
  const std::vector<tier::TransferCompletion> ended = rig.transfers.Poll();
  ASSERT_EQ(ended.size(), 8u);
  EXPECT_EQ(ended[7].waited + ended[7].ran, milliseconds(81));
}

TEST(SimTransfers, ACancelledJobEndsAtOnce) {
  Rig rig;
  const tier::TransferId id = rig.Start(Direction::kUp, 500'000);
  rig.transfers.Cancel(id);
  const std::vector<tier::TransferCompletion> ended = rig.transfers.Poll();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].end, TransferEnd::kCancelled);
}

}  // namespace
}  // namespace cachalot::sim
