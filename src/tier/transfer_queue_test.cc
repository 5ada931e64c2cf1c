#include "tier/transfer_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "tier/host_arena.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kPage = StagingPool::kPage;
constexpr uint64_t kStagingPages = 16;
constexpr uint64_t kInFlight = 1000;

struct IdleJob final : TransferJob {
  Status Run(std::span<std::byte>, const std::atomic<bool>&) override { return OkStatus(); }
};

// A queue whose staging goes back to it.
struct Rig final : StagingHome {
  void GiveBack(std::span<std::byte> part) override { queue.GiveBack(part); }

  static TransferRequest Request(TransferPriority priority, uint64_t bytes, uint64_t staging_bytes = 0) {
    TransferRequest request;
    request.priority = priority;
    request.bytes = bytes;
    request.staging_bytes = staging_bytes;
    request.job = std::make_unique<IdleJob>();
    return request;
  }
  TransferId Submit(TransferPriority priority, uint64_t bytes, uint64_t staging_bytes = 0) {
    return queue.Submit(Request(priority, bytes, staging_bytes), now).value();
  }

  // It is done, and its completion dropped.
  void End(TransferId id) {
    queue.Finish(id, OkStatus(), now);
    const TransferQueue::Posted dropped = queue.TakePosted();
  }

  HostArena arena =
      HostArena::Claim({.bytes = kStagingPages * kPage}, {uint64_t{1} << 40, uint64_t{1} << 40, false}, {}).value();
  TransferQueue queue{{{kInFlight, kInFlight}, 64}, arena.bytes(), *this};
  Nanos now{0};
};

// Keeps the queue full of promotions and runs them one after the other; returns how many start before `id` does.
int StartsBefore(Rig& rig, TransferId id, uint64_t bytes, uint64_t staging_bytes, size_t at_once) {
  std::vector<TransferId> running;
  for (int starts = 0; starts < 1000; ++starts) {
    while (rig.queue.meters(rig.now).waiting_jobs() < 8) {
      rig.Submit(TransferPriority::kPromotion, bytes, staging_bytes);
    }
    auto start = rig.queue.StartNext(rig.now);
    while (!start || running.size() >= at_once) {
      rig.End(running.front());
      running.erase(running.begin());
      if (!start) start = rig.queue.StartNext(rig.now);
    }
    running.push_back(start->id);
    if (start->id != id) continue;
    for (const TransferId each : running) rig.End(each);
    return starts;
  }
  return -1;
}

TEST(TransferQueue, APrefetchIsNotPassedForEver) {
  Rig rig;
  const TransferId id = rig.Submit(TransferPriority::kPrefetch, 10);
  EXPECT_EQ(StartsBefore(rig, id, 10, 0, 4), static_cast<int>(TransferQueue::kPatience));
}

TEST(TransferQueue, ALargeJobIsNotPassedForEverBySmallOnes) {
  Rig rig;
  const TransferId id = rig.Submit(TransferPriority::kWriteBack, kInFlight);
  const int starts = StartsBefore(rig, id, 100, 0, 4);
  EXPECT_GE(starts, static_cast<int>(TransferQueue::kPatience));
  EXPECT_LE(starts, static_cast<int>(TransferQueue::kPatience) + 4);
}

TEST(TransferQueue, AJobThatNeedsAllStagingIsNotPassedForEver) {
  Rig rig;
  const TransferId id = rig.Submit(TransferPriority::kPrefetch, 1, kStagingPages * kPage);
  const int starts = StartsBefore(rig, id, 1, kPage, 4);
  EXPECT_GE(starts, static_cast<int>(TransferQueue::kPatience));
  EXPECT_LE(starts, static_cast<int>(TransferQueue::kPatience) + 4);
}

TEST(TransferQueue, WhatNeedsNothingOfWhatAnOverdueJobWaitsForGoesOn) {
  Rig rig;
  std::optional<Staging> all = rig.queue.TakeStaging(kStagingPages * kPage);
  rig.Submit(TransferPriority::kPromotion, 1, kPage);
  for (uint32_t i = 0; i < 3 * TransferQueue::kPatience; ++i) {
    TransferRequest request = Rig::Request(TransferPriority::kPrefetch, 100);
    request.link = TierId::kDisk;
    const TransferId id = rig.queue.Submit(std::move(request), rig.now).value();
    const auto start = rig.queue.StartNext(rig.now);
    ASSERT_TRUE(start && start->id == id);
    rig.End(id);
  }
  all.reset();
  EXPECT_EQ(rig.queue.StartNext(rig.now)->id, TransferId(1));
  rig.End(TransferId(1));
}

TEST(TransferQueue, OnlySoManyJobsOfADirectionRunAndTheOtherGoesOn) {
  Rig rig;
  TransferQueue queue({{kInFlight, kInFlight}, 64, {TransferLimits::kAnyNumber, 1}}, rig.arena.bytes(), rig);
  const auto submit = [&](Direction direction) {
    TransferRequest request = Rig::Request(TransferPriority::kPromotion, 1);
    request.direction = direction;
    return queue.Submit(std::move(request), rig.now).value();
  };
  const TransferId first = submit(Direction::kDown), second = submit(Direction::kDown);
  const TransferId up = submit(Direction::kUp);
  EXPECT_EQ(queue.StartNext(rig.now)->id, first);
  EXPECT_EQ(queue.StartNext(rig.now)->id, up);
  EXPECT_FALSE(queue.StartNext(rig.now));
  EXPECT_EQ(queue.Violations(), std::vector<std::string>());
  queue.Cancel(first, rig.now);
  EXPECT_FALSE(queue.StartNext(rig.now)) << "it still runs";
  queue.Finish(first, OkStatus(), rig.now);
  EXPECT_EQ(queue.StartNext(rig.now)->id, second);
  for (const TransferId id : {up, second}) queue.Finish(id, OkStatus(), rig.now);
  const TransferQueue::Posted dropped = queue.TakePosted();
}

TEST(TransferQueue, MetersCountTimeBytesAndWaits) {
  Rig rig;
  const TransferId first = rig.Submit(TransferPriority::kPromotion, 600);
  const TransferId second = rig.Submit(TransferPriority::kPromotion, 400);
  const auto lane = [&] { return rig.queue.meters(rig.now).lane(TierId::kHost, Direction::kUp); };
  rig.now = Nanos(10);
  ASSERT_TRUE(rig.queue.StartNext(rig.now));
  rig.now = Nanos(30);
  ASSERT_TRUE(rig.queue.StartNext(rig.now));
  EXPECT_EQ(lane().busy, Nanos(20));
  EXPECT_EQ(lane().waited, Nanos(40));
  EXPECT_EQ(lane().in_flight_bytes, 1000u);
  rig.now = Nanos(50);
  rig.queue.Finish(first, OkStatus(), rig.now);
  rig.now = Nanos(60);
  rig.queue.Finish(second, Unavailable("disk"), rig.now);
  rig.now = Nanos(1000);
  EXPECT_EQ(lane().busy, Nanos(50));
  EXPECT_EQ(lane().bytes, 600u);
  EXPECT_EQ(lane().jobs, (std::array<uint64_t, kTransferEnds>{1, 1, 0, 0}));
  const TransferQueue::Posted done = rig.queue.TakePosted();
  ASSERT_EQ(done.completions.size(), 2u);
  EXPECT_EQ(done.completions[0].waited, Nanos(10));
  EXPECT_EQ(done.completions[0].ran, Nanos(40));
}

TEST(TransferQueue, AJobCancelledWhileItIsDeliveredCompletesOnceThatEnded) {
  Rig rig;
  const TransferId id = rig.Submit(TransferPriority::kPromotion, 1);
  ASSERT_TRUE(rig.queue.StartNext(rig.now));
  ASSERT_TRUE(rig.queue.BeginDelivery(id, rig.now));
  rig.queue.Cancel(id, rig.now);
  EXPECT_TRUE(rig.queue.TakePosted().completions.empty());
  rig.queue.Finish(id, OkStatus(), rig.now);
  const TransferQueue::Posted done = rig.queue.TakePosted();
  ASSERT_EQ(done.completions.size(), 1u);
  EXPECT_EQ(done.completions[0].end, TransferEnd::kCancelled);
  EXPECT_EQ(done.completions[0].status.code(), Code::kUnavailable);
  EXPECT_NE(done.completions[0].job, nullptr);
}

// The rules of the header, said again over a plain list of jobs.
class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {}

  void Step() {
    rig_.now += Nanos(random_.Below(20));
    switch (random_.Below(9)) {
      case 0:
      case 1: Submit(); break;
      case 2: Cancel(); break;
      case 3:
      case 4: StartNext(); break;
      case 5: BeginDelivery(); break;
      case 6: Finish(); break;
      case 7: Raise(); break;
      default: OwnStaging();
    }
    Take();
    Check();
  }

  // Lets all come to its end; nothing must be left.
  void Drain() {
    own_.clear();
    for (int i = 0; i < 100'000 && !jobs_.empty(); ++i) {
      rig_.now += Nanos(1);
      i % 2 == 0 ? StartNext() : Finish();
      Take();
      Check();
    }
    ASSERT_TRUE(jobs_.empty());
    ASSERT_EQ(rig_.queue.meters(rig_.now).staging_taken_bytes, 0u);
    ASSERT_EQ(completed_, submitted_);
  }
  uint64_t submitted() const { return submitted_; }
  const std::array<uint64_t, kTransferEnds>& ends() const { return ends_; }

 private:
  enum class Phase : uint8_t { kWaiting, kRunning, kDelivering, kQuarantined };
  struct Job {
    Phase phase = Phase::kWaiting;
    size_t line = 0;
    TransferPriority priority;
    size_t direction = 0;
    uint64_t bytes = 0;
    uint64_t staging_bytes = 0;
    Nanos deadline;
    std::optional<TransferEnd> end;  // told or to be told
    bool told = false;
    bool over = false;  // it returned after its end
  };
  using Jobs = std::map<TransferId, Job>;

  void Submit() {
    TransferRequest request = Rig::Request(static_cast<TransferPriority>(random_.Below(3)), random_.Below(500),
                                           random_.Below(2) * random_.Below(6 * kPage));
    request.link = static_cast<TierId>(1 + random_.Below(3));
    request.direction = static_cast<Direction>(random_.Below(2));
    if (random_.Below(3) == 0) request.deadline = rig_.now + Nanos(random_.Below(1000));
    Job job{.priority = request.priority, .direction = static_cast<size_t>(request.direction)};
    job.line = (static_cast<size_t>(request.priority) * 3 + TierIndex(request.link)) * 2 + job.direction;
    job.bytes = request.bytes;
    job.staging_bytes = request.staging_bytes;
    job.deadline = request.deadline;
    const Result<TransferId> id = rig_.queue.Submit(std::move(request), rig_.now);
    const auto waiting = std::ranges::count_if(jobs_, [](auto& j) { return j.second.phase == Phase::kWaiting; });
    ASSERT_EQ(id.ok(), waiting < 64);
    if (!id.ok()) return;
    jobs_[*id] = job;
    ++submitted_;
  }

  std::optional<TransferId> RandomJob(std::vector<Phase> phases) {
    std::vector<TransferId> ids;
    for (const auto& [id, job] : jobs_) {
      if (std::ranges::find(phases, job.phase) != phases.end()) ids.push_back(id);
    }
    if (ids.empty()) return std::nullopt;
    return ids[random_.Below(ids.size())];
  }

  void GiveUp(Job& job, TransferEnd end) {
    if (job.phase == Phase::kDelivering) {
      if (end == TransferEnd::kCancelled) job.end = end;
      return;
    }
    if (job.phase == Phase::kQuarantined) return;
    job.end = end;
    if (job.phase == Phase::kRunning) job.phase = Phase::kQuarantined;
  }
  void Expire() {
    for (auto& [id, job] : jobs_) {
      if (job.deadline <= rig_.now && !job.end) GiveUp(job, TransferEnd::kLate);
    }
  }

  void Cancel() {
    const auto id = RandomJob({Phase::kWaiting, Phase::kRunning, Phase::kDelivering, Phase::kQuarantined});
    if (!id) return;
    rig_.queue.Cancel(*id, rig_.now);
    GiveUp(jobs_.at(*id), TransferEnd::kCancelled);
  }
  void Raise() {
    const auto id = RandomJob({Phase::kWaiting, Phase::kRunning, Phase::kDelivering, Phase::kQuarantined});
    if (!id) return;
    const auto priority = static_cast<TransferPriority>(random_.Below(3));
    rig_.queue.Raise(*id, priority);
    Job& job = jobs_.at(*id);
    if (job.phase != Phase::kWaiting || job.end || priority >= job.priority) return;
    job.line -= (static_cast<size_t>(job.priority) - static_cast<size_t>(priority)) * 6;
    job.priority = priority;
    ForgetEmptyLines();
  }

  uint64_t InFlight(size_t direction) const {
    uint64_t bytes = 0;
    for (const auto& [id, job] : jobs_) {
      if (job.phase != Phase::kWaiting && job.direction == direction) bytes += job.bytes;
    }
    return bytes;
  }
  uint64_t LongestFreeStaging() {
    std::vector<bool> taken(kStagingPages, false);
    const auto mark = [&](std::span<const std::byte> part) {
      if (part.empty()) return;
      const size_t first = (part.data() - rig_.arena.bytes().data()) / kPage;
      for (size_t i = first; i < first + (part.size() + kPage - 1) / kPage; ++i) taken.at(i) = true;
    };
    for (const auto& [id, part] : staging_) mark(part);
    for (const Staging& part : own_) mark(part.bytes());
    uint64_t run = 0, longest = 0;
    for (const bool page : taken) longest = std::max(longest, run = page ? 0 : run + 1);
    return longest * kPage;
  }

  std::optional<TransferId> Expected() {
    std::map<size_t, TransferId> heads;
    for (const auto& [id, job] : jobs_) {
      if (job.phase == Phase::kWaiting && !job.end) heads.try_emplace(job.line, id);
    }
    std::vector<std::tuple<int64_t, size_t, TransferId>> order;
    for (const auto& [line, id] : heads) {
      const bool overdue = passed_[line] >= TransferQueue::kPatience;
      order.emplace_back(overdue ? -int64_t{passed_[line]} : 0, static_cast<size_t>(jobs_[id].priority), id);
      if (overdue) std::get<1>(order.back()) = 0;
    }
    std::ranges::sort(order);
    const uint64_t free_staging = LongestFreeStaging();
    bool closed_staging = false, closed[2] = {};
    for (const auto& [patience, priority, id] : order) {
      const Job& job = jobs_[id];
      const bool lacks_direction = InFlight(job.direction) + job.bytes > kInFlight;
      const bool lacks_staging = job.staging_bytes > free_staging;
      const bool barred = closed[job.direction] || (closed_staging && job.staging_bytes > 0);
      if (!lacks_direction && !lacks_staging && !barred) return id;
      if (patience == 0) continue;
      closed[job.direction] |= lacks_direction;
      closed_staging |= lacks_staging;
    }
    return std::nullopt;
  }

  void StartNext() {
    Expire();
    ForgetEmptyLines();
    const std::optional<TransferId> expected = Expected();
    const auto start = rig_.queue.StartNext(rig_.now);
    ASSERT_EQ(start.has_value(), expected.has_value());
    if (!start) return;
    ASSERT_EQ(start->id, *expected);
    Job& job = jobs_.at(start->id);
    ASSERT_EQ(start->staging.size(), job.staging_bytes);
    job.phase = Phase::kRunning;
    if (job.staging_bytes > 0) staging_[start->id] = start->staging;
    for (size_t line = 0; line < passed_.size(); ++line) passed_[line] = Waiting(line) == 0 ? 0 : passed_[line] + 1;
    passed_[job.line] = 0;
  }
  void ForgetEmptyLines() {
    for (size_t line = 0; line < passed_.size(); ++line) {
      if (Waiting(line) == 0) passed_[line] = 0;
    }
  }
  int64_t Waiting(size_t line) const {
    return std::ranges::count_if(jobs_, [&](const auto& job) {
      return job.second.line == line && job.second.phase == Phase::kWaiting && !job.second.end;
    });
  }

  void BeginDelivery() {
    const auto id = RandomJob({Phase::kRunning, Phase::kQuarantined});
    if (!id) return;
    Expire();
    Job& job = jobs_.at(*id);
    ASSERT_EQ(rig_.queue.BeginDelivery(*id, rig_.now), job.phase == Phase::kRunning);
    if (job.phase == Phase::kRunning) job.phase = Phase::kDelivering;
  }

  void Finish() {
    const auto id = RandomJob({Phase::kRunning, Phase::kDelivering, Phase::kQuarantined});
    if (!id) return;
    Expire();
    Job& job = jobs_.at(*id);
    const bool fails = job.phase != Phase::kDelivering && random_.Below(3) == 0;
    rig_.queue.Finish(*id, fails ? Corrupt("torn") : OkStatus(), rig_.now);
    if (job.phase == Phase::kQuarantined) {
      job.over = true;
      return;
    }
    if (!job.end) job.end = fails ? TransferEnd::kFailed : TransferEnd::kDone;
    job.phase = Phase::kWaiting;  // nothing of it runs; it goes when it is told
  }

  void OwnStaging() {
    if (random_.Below(2) == 0 && !own_.empty()) return own_.pop_back();
    if (own_.size() >= 3) return;
    const uint64_t bytes = 1 + random_.Below(4 * kPage);
    std::map<size_t, TransferId> heads;
    const uint64_t free_staging = LongestFreeStaging();
    bool waited_for = false;
    for (const auto& [id, job] : jobs_) {
      if (job.phase != Phase::kWaiting || job.end || !heads.try_emplace(job.line, id).second) continue;
      waited_for |= job.staging_bytes > free_staging;
    }
    std::optional<Staging> staging = rig_.queue.TakeStaging(bytes);
    ASSERT_EQ(staging.has_value(), !waited_for && bytes <= free_staging);
    if (staging) own_.push_back(std::move(*staging));
  }

  void Take() {
    rig_.queue.Expire(rig_.now);
    Expire();
    const TransferQueue::Posted posted = rig_.queue.TakePosted();
    for (const TransferCompletion& completion : posted.completions) {
      ASSERT_TRUE(jobs_.contains(completion.id));
      Job& job = jobs_.at(completion.id);
      ASSERT_FALSE(job.told);
      ASSERT_EQ(job.end, completion.end);
      ASSERT_EQ(completion.status.ok(), completion.end == TransferEnd::kDone);
      ASSERT_EQ(completion.job == nullptr, job.phase == Phase::kQuarantined);
      job.told = true;
      ++completed_;
      ++ends_[static_cast<size_t>(completion.end)];
      job.over |= job.phase != Phase::kQuarantined;
    }
    for (auto job = jobs_.begin(); job != jobs_.end();) {
      const auto at = job++;
      if (!at->second.over) continue;
      ASSERT_TRUE(at->second.told);
      staging_.erase(at->first);
      jobs_.erase(at);
    }
    ForgetEmptyLines();
  }

  void Check() {
    ASSERT_EQ(rig_.queue.Violations(), std::vector<std::string>());
    const TransferMeters meters = rig_.queue.meters(rig_.now);
    for (size_t direction = 0; direction < 2; ++direction) {
      ASSERT_LE(InFlight(direction), kInFlight);
      ASSERT_EQ(meters.in_flight_bytes(static_cast<Direction>(direction)), InFlight(direction));
    }
    for (const auto& [id, job] : jobs_) {  // what is not over is told, unless it is being delivered
      ASSERT_TRUE(job.told ? job.phase == Phase::kQuarantined : !job.end || job.phase == Phase::kDelivering);
    }
  }

  SplitMix64 random_;
  Rig rig_;
  Jobs jobs_;
  std::map<TransferId, std::span<std::byte>> staging_;  // of jobs that run
  std::vector<Staging> own_;
  std::array<uint32_t, 18> passed_{};
  uint64_t submitted_ = 0, completed_ = 0;
  std::array<uint64_t, kTransferEnds> ends_{};
};

TEST(TransferQueue, RandomJobsStartAndEndAsThePlainListOfThemSays) {
  std::array<uint64_t, kTransferEnds> ends{};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Model model(seed);
    for (int op = 0; op < 3000; ++op) {
      model.Step();
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", operation " << op;
    }
    model.Drain();
    if (HasFatalFailure()) FAIL() << "seed " << seed << ", at the end";
    for (size_t end = 0; end < kTransferEnds; ++end) ends[end] += model.ends()[end];
  }
  for (const uint64_t count : ends) EXPECT_GT(count, 500u);
}

}  // namespace
}  // namespace cachalot::tier
