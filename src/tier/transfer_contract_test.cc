// What every transfer engine promises, for the real one and the fake.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tier/testing/transfer_rig.h"
#include "tier/transfer_engine.h"

namespace cachalot::tier {
namespace {

using Kind = TransferRig::Kind;
constexpr uint64_t kPage = StagingPool::kPage;

class TransferContract : public testing::TestWithParam<Kind> {
 protected:
  TransferRig Rig(const TransferRig::Limits& limits = {}) { return TransferRig(GetParam(), limits); }

  static TransferRequest Request(std::unique_ptr<TransferJob> job, uint64_t bytes = 100, uint64_t staging_bytes = 0) {
    TransferRequest request;
    request.link = TierId::kDisk;
    request.bytes = bytes;
    request.staging_bytes = staging_bytes;
    request.job = std::move(job);
    return request;
  }
  static TransferId Submit(TransferRig& rig, TransferRequest&& request) {
    const Result<TransferId> id = rig.engine().Submit(std::move(request));
    EXPECT_TRUE(id.ok()) << id.status().message();
    EXPECT_EQ(rig.engine().Violations(), std::vector<std::string>());
    return id.ok() ? *id : TransferId(0);
  }
  static const TransferMeter& Disk(const TransferMeters& meters) { return meters.lane(TierId::kDisk, Direction::kUp); }
  static uint64_t Ends(const TransferMeters& meters, TransferEnd end) {
    return Disk(meters).jobs[static_cast<size_t>(end)];
  }

  std::shared_ptr<JobLog> log_ = std::make_shared<JobLog>();
};

TEST_P(TransferContract, AJobRunsAndDeliversOnceAndComesBackWithItsStaging) {
  auto rig = Rig();
  auto job = std::make_unique<ScriptedJob>(log_);
  std::vector<std::byte> target(10);
  job->value = std::byte{7};
  job->target = target;
  const TransferId id = Submit(rig, Request(std::move(job), 100, kPage + 5));
  std::vector<TransferCompletion> ended = rig.Collect(1);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].id, id);
  EXPECT_EQ(ended[0].end, TransferEnd::kDone);
  EXPECT_TRUE(ended[0].status.ok());
  EXPECT_NE(ended[0].job, nullptr);
  ASSERT_EQ(ended[0].staging.bytes().size(), kPage + 5);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(ended[0].staging.bytes().data()) % kPage, 0u);
  EXPECT_TRUE(std::ranges::all_of(ended[0].staging.bytes(), [](std::byte b) { return b == std::byte{7}; }));
  EXPECT_EQ(target, std::vector<std::byte>(10, std::byte{7}));
  EXPECT_EQ(log_->delivered, 1);

  EXPECT_EQ(rig.engine().meters().staging_taken_bytes, 2 * kPage);
  ended.clear();
  EXPECT_EQ(log_->destroyed, 1);
  const TransferMeters meters = rig.engine().meters();
  EXPECT_EQ(meters.staging_taken_bytes, 0u);
  EXPECT_EQ(Ends(meters, TransferEnd::kDone), 1u);
  EXPECT_EQ(Disk(meters).bytes, 100u);
  EXPECT_EQ(Disk(meters).in_flight_bytes, 0u);
  EXPECT_EQ(rig.engine().WakeAt(), std::nullopt);
}

TEST_P(TransferContract, AFailureIsToldAndNothingIsDelivered) {
  auto rig = Rig();
  auto job = std::make_unique<ScriptedJob>(log_);
  job->result = Corrupt("record 5: checksum differs");
  Submit(rig, Request(std::move(job)));
  const std::vector<TransferCompletion> ended = rig.Collect(1);
  EXPECT_EQ(ended[0].end, TransferEnd::kFailed);
  EXPECT_EQ(ended[0].status.code(), Code::kCorrupt);
  EXPECT_EQ(ended[0].status.message(), "record 5: checksum differs");
  EXPECT_EQ(log_->delivered, 0);
  EXPECT_EQ(Ends(rig.engine().meters(), TransferEnd::kFailed), 1u);
}

TEST_P(TransferContract, WhatCouldNeverFitIsRefusedAsItWas) {
  auto rig = Rig();
  TransferRequest wide = Request(std::make_unique<ScriptedJob>(log_), 1001);
  const Status status = rig.engine().Submit(std::move(wide)).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("at most 1000 B may be in flight up"), std::string::npos) << status.message();
  EXPECT_NE(wide.job, nullptr);
  TransferRequest tall = Request(std::make_unique<ScriptedJob>(log_), 1, 17 * kPage);
  EXPECT_EQ(rig.engine().Submit(std::move(tall)).status().code(), Code::kInvalid);
  Submit(rig, Request(std::make_unique<ScriptedJob>(log_), 1000, 16 * kPage));
  EXPECT_EQ(rig.Collect(1)[0].end, TransferEnd::kDone);
}

TEST_P(TransferContract, OnlySoManyJobsWait) {
  auto rig = Rig({.waiting_jobs = 3, .threads = 1});
  Submit(rig, Request(rig.HeldJob(log_)));
  rig.WaitForRunning(1);
  for (int i = 0; i < 3; ++i) Submit(rig, Request(std::make_unique<ScriptedJob>(log_)));
  TransferRequest fourth = Request(std::make_unique<ScriptedJob>(log_));
  EXPECT_EQ(rig.engine().Submit(std::move(fourth)).status().code(), Code::kOverloaded);
  EXPECT_NE(fourth.job, nullptr);
  rig.LetGo();
  EXPECT_EQ(rig.CollectAll().size(), 4u);
}

TEST_P(TransferContract, AWaitingJobThatIsCancelledNeverRuns) {
  auto rig = Rig({.threads = 1});
  Submit(rig, Request(rig.HeldJob(log_)));
  rig.WaitForRunning(1);
  auto never = std::make_shared<JobLog>();
  const TransferId id = Submit(rig, Request(std::make_unique<ScriptedJob>(never), 100, kPage));
  rig.engine().Cancel(id);
  rig.engine().Cancel(id);
  const std::vector<TransferCompletion> ended = rig.Collect(1);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].id, id);
  EXPECT_EQ(ended[0].end, TransferEnd::kCancelled);
  EXPECT_EQ(ended[0].status.code(), Code::kUnavailable);
  EXPECT_NE(ended[0].job, nullptr);
  rig.LetGo();
  EXPECT_EQ(rig.CollectAll().size(), 1u);
  EXPECT_EQ(never->started, 0);
}

TEST_P(TransferContract, ARunningJobThatIsCancelledCompletesAtOnceAndHoldsItsBudgetUntilItReturns) {
  auto rig = Rig({.threads = 1});
  const TransferId id = Submit(rig, Request(rig.HeldJob(log_), 600, 16 * kPage));
  rig.WaitForRunning(1);
  rig.engine().Cancel(id);
  ASSERT_TRUE(rig.engine().WakeAt().has_value());
  EXPECT_LE(*rig.engine().WakeAt(), rig.now());
  std::vector<TransferCompletion> ended = rig.engine().Poll();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].end, TransferEnd::kCancelled);
  EXPECT_EQ(ended[0].job, nullptr);
  EXPECT_TRUE(ended[0].staging.bytes().empty());

  TransferMeters meters = rig.engine().meters();
  EXPECT_EQ(Disk(meters).quarantined_jobs, 1u);
  EXPECT_EQ(Disk(meters).in_flight_bytes, 600u);
  EXPECT_EQ(meters.staging_taken_bytes, 16 * kPage);
  EXPECT_FALSE(rig.engine().TakeStaging(1).has_value());
  EXPECT_EQ(log_->destroyed, 0);

  Submit(rig, Request(std::make_unique<ScriptedJob>(std::make_shared<JobLog>()), 500, kPage));
  EXPECT_EQ(Disk(rig.engine().meters()).waiting_jobs, 1u);
  rig.LetGo();
  ended = rig.CollectAll();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].end, TransferEnd::kDone);
  EXPECT_EQ(log_->ran, 1);
  EXPECT_TRUE(log_->told_to_stop);
  EXPECT_EQ(log_->delivered, 0);
  EXPECT_EQ(log_->destroyed, 1);
  meters = rig.engine().meters();
  EXPECT_EQ(Disk(meters).quarantined_jobs, 0u);
  EXPECT_EQ(Disk(meters).in_flight_bytes, 0u);
  EXPECT_EQ(Ends(meters, TransferEnd::kCancelled), 1u);
}

TEST_P(TransferContract, AWaitingJobPastItsDeadlineIsLate) {
  auto rig = Rig({.threads = 1});
  Submit(rig, Request(rig.HeldJob(log_)));
  rig.WaitForRunning(1);
  auto never = std::make_shared<JobLog>();
  TransferRequest request = Request(std::make_unique<ScriptedJob>(never));
  request.deadline = rig.now() + Nanos(50'000);
  Submit(rig, std::move(request));
  EXPECT_TRUE(rig.engine().Poll().empty());
  EXPECT_EQ(rig.engine().WakeAt(), rig.now() + Nanos(50'000));
  rig.Advance(Nanos(49'999));
  EXPECT_TRUE(rig.engine().Poll().empty());
  rig.Advance(Nanos(1));
  const std::vector<TransferCompletion> ended = rig.engine().Poll();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].end, TransferEnd::kLate);
  EXPECT_EQ(ended[0].status.code(), Code::kUnavailable);
  EXPECT_NE(ended[0].job, nullptr);
  EXPECT_EQ(ended[0].waited, Nanos(50'000));
  rig.LetGo();
  EXPECT_EQ(rig.CollectAll().size(), 1u);
  EXPECT_EQ(never->started, 0);
}

TEST_P(TransferContract, ARunningJobPastItsDeadlineIsQuarantined) {
  auto rig = Rig();
  TransferRequest request = Request(rig.HeldJob(log_), 100, kPage);
  request.deadline = rig.now() + Nanos(1000);
  Submit(rig, std::move(request));
  rig.WaitForRunning(1);
  rig.Advance(Nanos(1000));
  const std::vector<TransferCompletion> ended = rig.engine().Poll();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].end, TransferEnd::kLate);
  EXPECT_EQ(ended[0].job, nullptr);
  EXPECT_EQ(rig.engine().meters().staging_taken_bytes, kPage);
  rig.LetGo();
  EXPECT_TRUE(rig.CollectAll().empty());
  EXPECT_EQ(rig.engine().meters().staging_taken_bytes, 0u);
  EXPECT_EQ(log_->delivered, 0);
  EXPECT_EQ(log_->destroyed, 1);
}

TEST_P(TransferContract, StagingFilledBeforehandTravelsWithTheJob) {
  auto rig = Rig();
  std::optional<Staging> staging = rig.engine().TakeStaging(2 * kPage);
  ASSERT_TRUE(staging);
  const std::byte* const where = staging->bytes().data();
  TransferRequest request = Request(std::make_unique<ScriptedJob>(log_));
  request.direction = Direction::kDown;
  request.staging = std::move(*staging);
  Submit(rig, std::move(request));
  const std::vector<TransferCompletion> ended = rig.Collect(1);
  EXPECT_EQ(ended[0].staging.bytes().data(), where);
  EXPECT_EQ(ended[0].staging.bytes().size(), 2 * kPage);
}

TEST_P(TransferContract, NobodyTakesStagingThatAJobWaitsFor) {
  auto rig = Rig();
  std::optional<Staging> most = rig.engine().TakeStaging(15 * kPage);
  Submit(rig, Request(std::make_unique<ScriptedJob>(log_), 1, 2 * kPage));
  EXPECT_FALSE(rig.engine().TakeStaging(kPage).has_value());
  most.reset();
  EXPECT_EQ(rig.Collect(1)[0].end, TransferEnd::kDone);
  EXPECT_TRUE(rig.engine().TakeStaging(16 * kPage).has_value());
}

TEST_P(TransferContract, PromotionsGoFirstThenWriteBacksThenPrefetches) {
  auto rig = Rig({.threads = 1});
  Submit(rig, Request(rig.HeldJob(log_)));
  rig.WaitForRunning(1);
  std::vector<TransferId> ids;
  for (const auto priority : {TransferPriority::kPrefetch, TransferPriority::kWriteBack, TransferPriority::kPromotion,
                              TransferPriority::kPrefetch, TransferPriority::kPromotion}) {
    TransferRequest request = Request(std::make_unique<ScriptedJob>(log_));
    request.priority = priority;
    ids.push_back(Submit(rig, std::move(request)));
  }
  rig.LetGo();
  std::vector<TransferId> order;
  for (const TransferCompletion& completion : rig.CollectAll()) order.push_back(completion.id);
  EXPECT_EQ(order, (std::vector<TransferId>{TransferId(1), ids[2], ids[4], ids[1], ids[0], ids[3]}));
}

TEST_P(TransferContract, WhatIsRaisedGoesAsIfItHadBeenSubmittedSo) {
  auto rig = Rig({.threads = 1});
  Submit(rig, Request(rig.HeldJob(log_)));
  rig.WaitForRunning(1);
  std::vector<TransferId> ids;
  for (const auto priority : {TransferPriority::kPrefetch, TransferPriority::kPrefetch, TransferPriority::kPrefetch,
                              TransferPriority::kPromotion}) {
    TransferRequest request = Request(std::make_unique<ScriptedJob>(log_));
    request.priority = priority;
    ids.push_back(Submit(rig, std::move(request)));
  }
  rig.engine().Raise(ids[1], TransferPriority::kPromotion);
  rig.engine().Raise(ids[2], TransferPriority::kWriteBack);
  rig.engine().Raise(ids[3], TransferPriority::kPrefetch);  // it goes sooner
  rig.engine().Raise(TransferId(1), TransferPriority::kPromotion);
  rig.LetGo();
  std::vector<TransferId> order;
  for (const TransferCompletion& completion : rig.CollectAll()) order.push_back(completion.id);
  EXPECT_EQ(order, (std::vector<TransferId>{TransferId(1), ids[1], ids[3], ids[2], ids[0]}));
}

TEST_P(TransferContract, EachDirectionHasItsOwnBytesInFlight) {
  auto rig = Rig({.threads = 4});
  Submit(rig, Request(rig.HeldJob(log_), 1000));
  Submit(rig, Request(rig.HeldJob(log_), 1));
  TransferRequest down = Request(rig.HeldJob(log_), 1000);
  down.direction = Direction::kDown;
  Submit(rig, std::move(down));
  rig.WaitForRunning(2);
  const TransferMeters meters = rig.engine().meters();
  EXPECT_EQ(meters.in_flight_bytes(Direction::kUp), 1000u);
  EXPECT_EQ(meters.in_flight_bytes(Direction::kDown), 1000u);
  EXPECT_EQ(meters.waiting_jobs(), 1u);
  rig.LetGo();
  EXPECT_EQ(rig.CollectAll().size(), 3u);
}

TEST_P(TransferContract, AnEngineThatEndsWaitsForWhatRunsAndDestroysEveryJob) {
  auto other = std::make_shared<JobLog>();
  {
    auto rig = Rig({.threads = 1});
    const TransferId running = Submit(rig, Request(rig.HeldJob(log_), 100, kPage));
    rig.WaitForRunning(1);
    rig.engine().Cancel(running);
    Submit(rig, Request(std::make_unique<ScriptedJob>(other), 100, kPage));
  }
  EXPECT_EQ(log_->destroyed, 1);
  EXPECT_EQ(log_->delivered, 0);
  EXPECT_EQ(other->destroyed, 1);
}

INSTANTIATE_TEST_SUITE_P(Engines, TransferContract, testing::Values(Kind::kThreads, Kind::kFake), [](const auto& info) {
  return std::string(info.param == Kind::kThreads ? "Threads" : "Fake");
});

}  // namespace
}  // namespace cachalot::tier
