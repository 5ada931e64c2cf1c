// What the eviction policy is told that blocks cost.
#include <map>

#include <gtest/gtest.h>

#include "cost/step_cost.h"
#include "cost/step_work.h"
#include "kv/kv_manager.h"

namespace cachalot::kv {
namespace {

using Costs = std::map<std::pair<uint64_t, uint32_t>, double>;  // seconds, by position and slots

class CostRecorder final : public EvictionPolicy {
 public:
  explicit CostRecorder(Costs* costs) : costs_(costs) {}
  void Insert(EntryId, const EntryInfo& info, Nanos) override {
    (*costs_)[{info.position, info.slots}] = info.recompute_seconds;
  }
  void Touch(EntryId, Nanos) override {}
  void BecomeCandidate(EntryId) override {}
  void NotCandidate(EntryId) override {}
  void Remove(EntryId) override {}
  std::optional<EntryId> Victim(Nanos) override { return std::nullopt; }

 private:
  Costs* const costs_;
};

Costs CostsOf(const std::vector<uint32_t>& windows, const cost::StepCost* step_cost) {
  Costs costs;
  KvManager kv({.block_tokens = 16, .windows = windows, .slots = 64}, std::make_unique<CostRecorder>(&costs),
               step_cost);
  const std::vector<TokenId> tokens(56, 7);  // three blocks, and a short one
  const SequenceId sequence = kv.Create();
  kv.Attach(sequence, tokens, tokens.size());
  const Growth growth{sequence, 56, tokens};
  Result<StepReservation> step = kv.Reserve({&growth, 1});
  EXPECT_TRUE(step.ok());
  std::move(step).value().Commit();
  kv.Free(sequence);
  return costs;
}

TEST(RecomputeCost, BlocksCostWhatTheirRowsWouldWhereTheyStand) {
  const cost::StepCost step_cost(StepCurve{1, 0.5, 0.01, 0, 0});
  const std::vector<uint32_t> windows = {0};
  const cost::WorkShape shape(windows);
  const Costs costs = CostsOf(windows, &step_cost);
  ASSERT_EQ(costs.size(), 4u);
  for (const auto& [entry, seconds] : costs) {
    const uint64_t begin = (entry.first - 1) / 16 * 16;
    EXPECT_NEAR(seconds, step_cost.Added(shape.Rows(begin, entry.first - begin)), 1e-12) << entry.first;
  }
  EXPECT_GT(costs.at({48, 1}), costs.at({16, 1}));  // its rows see more
  EXPECT_LT(costs.at({56, 1}), costs.at({48, 1}));  // half as many
}

TEST(RecomputeCost, AResumePointCostsItsWindow) {
  const cost::StepCost step_cost(StepCurve{1, 0.5, 0.01, 0.02, 0});
  const std::vector<uint32_t> windows = {0, 20};
  const cost::WorkShape shape(windows);
  const Costs costs = CostsOf(windows, &step_cost);
  // It stands at 56; the next row sees from 37 on: the blocks from 32 on.
  EXPECT_NEAR(costs.at({56, 2}), step_cost.Added(shape.Rows(32, 24)), 1e-12);
}

TEST(RecomputeCost, WithoutACurveAllCostAlike) {
  for (const auto& [entry, seconds] : CostsOf({0}, nullptr)) EXPECT_EQ(seconds, 1) << entry.first;
}

}  // namespace
}  // namespace cachalot::kv
