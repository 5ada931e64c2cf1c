#include "tier/transfer_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/queue.h"
#include "base/random.h"
#include "tier/host_arena.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kPage = StagingPool::kPage;
constexpr uint64_t kStagingBytes = 24 * kPage;
constexpr uint64_t kInFlight = 64 << 10;

TEST(TransferEngine, OptionsThatLetNothingRunAreRefused) {
  const ManualClock clock;
  EXPECT_TRUE(MakeTransferEngine({}, {.limits = {{1, 1}, 1}, .threads = 1}, clock).ok());
  for (const TransferOptions& options :
       {TransferOptions{.limits = {{1, 1}, 1}, .threads = 0}, TransferOptions{.limits = {{1, 1}, 0}, .threads = 1},
        TransferOptions{.limits = {{0, 1}, 1}, .threads = 1}, TransferOptions{.limits = {{1, 0}, 1}, .threads = 1}}) {
    EXPECT_EQ(MakeTransferEngine({}, options, clock).status().code(), Code::kInvalid);
  }
}

// What all jobs of a test see.
struct Shared {
  std::array<std::atomic<uint64_t>, kDirectionNames.size()> in_flight_bytes{};
  std::atomic<uint64_t> staging_bytes{0};
  std::atomic<int> over_limit{0};
  std::atomic<int> torn{0};
  std::atomic<int> alive{0};
};

// Works on its staging for a while, and looks whether anybody else does.
class BusyJob final : public TransferJob {
 public:
  BusyJob(Shared& shared, uint64_t seed, const TransferRequest& request, std::span<std::byte> target)
      : shared_(shared),
        random_(seed),
        bytes_(request.bytes),
        direction_(static_cast<size_t>(request.direction)),
        value_(static_cast<std::byte>(seed)),
        target_(target) {
    ++shared_.alive;
  }
  ~BusyJob() override { --shared_.alive; }

  Status Run(std::span<std::byte> staging, const std::atomic<bool>& stop) override {
    const uint64_t pages = (staging.size() + kPage - 1) / kPage;
    if ((shared_.in_flight_bytes[direction_] += bytes_) > kInFlight) ++shared_.over_limit;
    if ((shared_.staging_bytes += pages * kPage) > kStagingBytes) ++shared_.over_limit;
    const bool heeds_stop = random_.Below(2) == 0;
    std::ranges::fill(staging, value_);
    for (uint64_t i = random_.Below(20'000); i > 0 && !(heeds_stop && stop.load()); --i) spun_ = spun_ + 1;
    if (std::ranges::any_of(staging, [&](std::byte b) { return b != value_; })) ++shared_.torn;
    shared_.staging_bytes -= pages * kPage;
    shared_.in_flight_bytes[direction_] -= bytes_;
    return random_.Below(5) == 0 ? Unavailable("disk") : OkStatus();
  }
  void Deliver(std::span<const std::byte> staging) override {
    if (std::ranges::any_of(staging, [&](std::byte b) { return b != value_; })) ++shared_.torn;
    std::ranges::fill(target_, value_);
  }

 private:
  Shared& shared_;
  SplitMix64 random_;
  const uint64_t bytes_;
  const size_t direction_;
  const std::byte value_;
  const std::span<std::byte> target_;
  volatile uint64_t spun_ = 0;
};

// Many jobs of all kinds, cancelled and late ones among them, while the clock runs ahead.
TEST(TransferEngine, RandomJobsOnThreadsKeepTheirPromises) {
  constexpr uint32_t kJobs = 6000;
  constexpr std::byte kUntouched{0xEE}, kReclaimed{0xDD};
  Shared shared;
  ManualClock clock;
  Queue<int> notified;
  const HostArena arena =
      HostArena::Claim({.bytes = kStagingBytes}, {uint64_t{1} << 40, uint64_t{1} << 40, false}, {}).value();
  auto engine =
      MakeTransferEngine(
          arena.bytes(),
          {.limits = {{kInFlight, kInFlight}, 40}, .threads = 4, .notify = [&] { (void)notified.TryPush(0); }}, clock)
          .value();
  SplitMix64 random(7);
  std::map<TransferId, std::vector<std::byte>> targets;
  std::map<TransferId, std::byte> values;
  std::array<uint64_t, kTransferEnds> ends{};
  std::vector<TransferId> open;
  uint64_t refused = 0;

  const auto poll = [&] {
    for (const TransferCompletion& completion : engine->Poll()) {
      ASSERT_EQ(std::erase(open, completion.id), 1u);
      ++ends[static_cast<size_t>(completion.end)];
      std::vector<std::byte>& target = targets.at(completion.id);
      const std::byte expected = completion.end == TransferEnd::kDone ? values.at(completion.id) : kUntouched;
      const bool may_be_either = completion.end == TransferEnd::kCancelled;  // while it was delivered
      for (const std::byte b : target) {
        ASSERT_TRUE(b == expected || (may_be_either && b == values.at(completion.id) && b == target[0]));
      }
      target.assign(target.size(), kReclaimed);  // somebody else's now
    }
    ASSERT_EQ(engine->Violations(), std::vector<std::string>());
  };
  for (uint32_t i = 0; i < kJobs; ++i) {
    TransferRequest request;
    request.priority = static_cast<TransferPriority>(random.Below(3));
    request.link = static_cast<TierId>(1 + random.Below(3));
    request.direction = static_cast<Direction>(random.Below(2));
    request.bytes = random.Below(kInFlight / 2);
    if (random.Below(3) > 0) request.staging_bytes = 1 + random.Below(8 * kPage);
    if (random.Below(4) == 0) request.deadline = clock.Now() + Nanos(random.Below(100));
    std::vector<std::byte> target(64, kUntouched);
    request.job = std::make_unique<BusyJob>(shared, i, request, target);
    const Result<TransferId> id = engine->Submit(std::move(request));
    if (id.ok()) {
      targets[*id] = std::move(target);
      values[*id] = static_cast<std::byte>(i);
      open.push_back(*id);
    } else {
      ++refused;
      (void)notified.WaitDrain(std::chrono::milliseconds(1));
      poll();  // staging is free once completions are taken
    }
    if (random.Below(5) == 0 && !open.empty()) engine->Cancel(open[random.Below(open.size())]);
    if (random.Below(4) == 0) clock.Advance(Nanos(random.Below(20)));
    if (random.Below(3) == 0) poll();
    if (HasFatalFailure()) return;
  }
  while (!open.empty()) {
    poll();
    if (HasFatalFailure()) return;
    if (!open.empty()) (void)notified.WaitDrain(std::chrono::milliseconds(100));
  }
  engine.reset();
  EXPECT_EQ(shared.alive, 0);
  EXPECT_EQ(shared.over_limit, 0);
  EXPECT_EQ(shared.torn, 0);
  EXPECT_LT(refused, kJobs);
  for (const uint64_t count : ends) EXPECT_GT(count, 0u);
  for (const auto& [id, target] : targets) {
    ASSERT_TRUE(std::ranges::all_of(target, [&](std::byte b) { return b == kReclaimed; })) << "job " << id.value;
  }
}

}  // namespace
}  // namespace cachalot::tier
