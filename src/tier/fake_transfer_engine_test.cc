#include "tier/testing/fake_transfer_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tier/host_arena.h"
#include "tier/testing/transfer_rig.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kPage = StagingPool::kPage;

struct Told {
  uint64_t id;
  TransferEnd end;
  Nanos at;
  bool operator==(const Told&) const = default;
};

struct Outcome {
  std::vector<Told> told;
  int started = 0;
  int delivered = 0;
};

// Forty jobs, each third of them cancelled after half a millisecond.
Outcome RunWith(const FakeTransferFaults& faults) {
  ManualClock clock;
  const HostArena arena =
      HostArena::Claim({.bytes = 8 * kPage}, {uint64_t{1} << 40, uint64_t{1} << 40, false}, {}).value();
  FakeTransferEngine engine(arena.bytes(), {.limits = {{1 << 20, 1 << 20}, 100}, .threads = 6}, faults, clock);
  auto log = std::make_shared<JobLog>();
  std::vector<TransferId> ids;
  for (int i = 0; i < 40; ++i) {
    TransferRequest request;
    request.bytes = 1000;
    request.staging_bytes = kPage;
    request.job = std::make_unique<ScriptedJob>(log);
    ids.push_back(engine.Submit(std::move(request)).value());
  }
  clock.Advance(Nanos(500'000));
  for (size_t i = 0; i < ids.size(); i += 3) engine.Cancel(ids[i]);
  Outcome outcome;
  while (const std::optional<Nanos> wake = engine.WakeAt()) {
    clock.SleepUntil(*wake);
    for (const TransferCompletion& completion : engine.Poll()) {
      outcome.told.push_back({completion.id.value, completion.end, clock.Now()});
    }
    EXPECT_EQ(engine.Violations(), std::vector<std::string>());
  }
  outcome.started = log->started;
  outcome.delivered = log->delivered;
  return outcome;
}

int Count(const Outcome& outcome, TransferEnd end) {
  return static_cast<int>(std::ranges::count(outcome.told, end, &Told::end));
}

TEST(FakeTransferEngine, TheSameSeedGivesTheSameRun) {
  const FakeTransferFaults faults{.seed = 5, .fail_share = 0.2, .hold_share = 0.3};
  const Outcome first = RunWith(faults);
  EXPECT_EQ(first.told.size(), 40u);
  EXPECT_EQ(first.told, RunWith(faults).told);
  EXPECT_NE(first.told, RunWith({.seed = 6, .fail_share = 0.2, .hold_share = 0.3}).told);
}

TEST(FakeTransferEngine, JobsEndOutOfOrder) {
  const Outcome outcome = RunWith({.seed = 1});
  EXPECT_FALSE(std::ranges::is_sorted(outcome.told, {}, &Told::id));
}

TEST(FakeTransferEngine, SomeJobsFailBeforeTheyTouchedBytesAndSomeAfter) {
  const Outcome outcome = RunWith({.seed = 2, .fail_share = 1});
  EXPECT_EQ(Count(outcome, TransferEnd::kDone), 0);
  EXPECT_EQ(outcome.delivered, 0);
  EXPECT_GT(Count(outcome, TransferEnd::kFailed), outcome.started / 2);
  EXPECT_GT(outcome.started, 0);
}

TEST(FakeTransferEngine, SomeJobsAreDoneThoughTheyWereCancelled) {
  int done_after_cancel = 0, cancelled = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Outcome outcome = RunWith({.seed = seed, .most_latency = Nanos(400'000)});
    for (const Told& told : outcome.told) {
      if (told.id % 3 != 1) continue;
      (told.end == TransferEnd::kDone ? done_after_cancel : cancelled) += 1;
    }
  }
  EXPECT_GT(done_after_cancel, 0);
  EXPECT_GT(cancelled, 0);
}

TEST(FakeTransferEngine, ACancelledJobMayRunOnAfterItsCompletion) {
  ManualClock clock;
  const HostArena arena = HostArena::Claim({.bytes = kPage}, {uint64_t{1} << 40, uint64_t{1} << 40, false}, {}).value();
  FakeTransferEngine engine(arena.bytes(), {.limits = {{1000, 1000}, 100}}, {}, clock);
  auto log = std::make_shared<JobLog>();
  TransferRequest request;
  request.staging_bytes = kPage;
  request.job = std::make_unique<ScriptedJob>(log);
  engine.Cancel(engine.Submit(std::move(request)).value());
  EXPECT_EQ(engine.Poll().size(), 1u);
  EXPECT_EQ(log->ran, 0);
  EXPECT_EQ(engine.meters().staging_taken_bytes, kPage);
  clock.SleepUntil(*engine.WakeAt());
  EXPECT_TRUE(engine.Poll().empty());
  EXPECT_EQ(log->ran, 1);
  EXPECT_EQ(log->destroyed, 1);
  EXPECT_EQ(engine.meters().staging_taken_bytes, 0u);
}

}  // namespace
}  // namespace cachalot::tier
