// What the store learns of its link from reads that others passed by.
#include "tier/disk_store.h"

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "tier/testing/fake_transfer_engine.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kRun = 100'000;  // bytes
constexpr double kRate = 1e6;

// Has whatever is asked for.
class AnyRun final : public RunStore {
 public:
  Status Put(const KvRun&, std::span<const std::byte>) override { return OkStatus(); }
  std::optional<DiskBlock> Find(const Digest&, const Digest&) const override { return std::nullopt; }
  void Touch(std::span<const Digest>) override {}
  Result<std::vector<ReadOutcome>> Read(const KvRun& run, std::span<std::byte>) override {
    return std::vector(run.blocks.size(), ReadOutcome::kRead);
  }
  Status Erase(std::span<const Digest>) override { return OkStatus(); }
  Status Clear() override { return OkStatus(); }
  Status Flush() override { return OkStatus(); }
  Status Seal() override { return OkStatus(); }
  Status health() const override { return OkStatus(); }
  DiskTierStats stats() const override { return {}; }
  DiskReads reads() const override { return {}; }
};

// Over a link that reads one run after the other, and is exactly as fast as is known.
class DiskStoreTest : public testing::Test {
 protected:
  DiskStoreTest() {
    TransferOptions options;
    options.limits = {.in_flight_bytes = {1 << 20, 1 << 20}, .running_jobs = {1, 1}};
    const FakeTransferFaults even{.least_latency = Nanos(0), .most_latency = Nanos(0), .bytes_per_second = kRate};
    TierRateTable known;
    known[TierIndex(TierId::kDisk)][static_cast<size_t>(Direction::kUp)] = TierRate{1e-6, kRate};
    store_ = std::make_unique<DiskStore>(
        std::make_unique<AnyRun>(),
        std::make_unique<FakeTransferEngine>(staging_.Resize(1 << 20), options, even, clock_), clock_, known);
  }

  TransferId Load(TransferPriority priority) {
    Result<TransferId> id = store_->Load({}, kRun, Nanos::max(), priority);
    EXPECT_TRUE(id.ok());
    return *id;
  }
  // The runs in the order in which they come.
  std::vector<TransferId> PollAll() {
    std::vector<TransferId> order;
    while (store_->stats().transfers > 0) {
      clock_.Advance(std::chrono::milliseconds(1));
      for (const DiskStore::Ended& ended : store_->Poll(clock_.Now())) order.push_back(ended.id);
    }
    return order;
  }
  void ExpectTheRateIsKnown() const {
    EXPECT_NEAR(store_->load_rate(clock_.Now()).bytes_per_second, kRate, 0.03 * kRate);
  }

  AlignedBytes staging_;
  ManualClock clock_{1'000'000};
  std::unique_ptr<DiskStore> store_;
};

TEST_F(DiskStoreTest, WhatWaitsForOthersSaysHowFastTheLinkIs) {
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) Load(TransferPriority::kPromotion);
    PollAll();
    ExpectTheRateIsKnown();
  }
}

TEST_F(DiskStoreTest, WhatOthersPassDoesNotSayHowFastTheLinkIs) {
  for (int round = 0; round < 10; ++round) {
    Load(TransferPriority::kPromotion);
    const TransferId passed = Load(TransferPriority::kPrefetch);
    for (int i = 0; i < 4; ++i) Load(TransferPriority::kPromotion);
    EXPECT_EQ(PollAll().back(), passed);
    ExpectTheRateIsKnown();
  }
}

TEST_F(DiskStoreTest, WhatIsRaisedComesSoonerAndNeitherItNorWhatItPassesSaysHowFastTheLinkIs) {
  for (int round = 0; round < 10; ++round) {
    Load(TransferPriority::kPromotion);
    std::vector<TransferId> ahead;
    for (int i = 0; i < 4; ++i) ahead.push_back(Load(TransferPriority::kPrefetch));
    for (int i = 1; i < 4; ++i) store_->Raise(ahead[i]);
    EXPECT_EQ(PollAll().back(), ahead[0]);
    ExpectTheRateIsKnown();
  }
}

}  // namespace
}  // namespace cachalot::tier
