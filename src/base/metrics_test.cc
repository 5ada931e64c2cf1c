#include "base/metrics.h"

#include <gmock/gmock.h>

#include <set>
#include <thread>
#include <vector>

#include "base/file.h"

namespace cachalot {
namespace {

using ::testing::HasSubstr;

TEST(Metrics, EveryDeclaredMetricIsExposedFromTheStart) {
  const std::string text = Metrics().Exposition();
  const auto expect_row = [&](const auto& row, const std::string& type) {
    EXPECT_THAT(text, HasSubstr("# HELP " + std::string(row.name) + " " + std::string(row.help) + "\n"));
    EXPECT_THAT(text, HasSubstr("# TYPE " + std::string(row.name) + " " + type + "\n"));
  };
  for (const auto& row : kCounters) expect_row(row, "counter");
  for (const auto& row : kGauges) expect_row(row, "gauge");
  for (const auto& row : kHistograms) expect_row(row, "histogram");
  EXPECT_THAT(text, HasSubstr("cachalot_requests_total{outcome=\"cancelled\"} 0\n"));
}

TEST(Metrics, UpdatesShowInTheExposition) {
  Metrics metrics;
  metrics.Add(Counter::kSteps);
  metrics.Add(Counter::kTokensGenerated, 41);
  metrics.Add(Counter::kTokensGenerated);
  metrics.Add(Counter::kHttpResponses, 2, "429");
  metrics.Set(Gauge::kKvFreeSlots, 7);
  metrics.Set(Gauge::kKvFreeSlots, 5);
  metrics.Set(Gauge::kStepCost, 0.25, "row");
  metrics.Observe(Histogram::kPromptTokens, 5);
  metrics.Observe(Histogram::kPromptTokens, 16);
  std::vector<uint64_t> ages(kAgeBounds.size() + 1);
  ages[2] = 3;
  ages.back() = 1;
  metrics.ObserveMany(Histogram::kKvBlockIdleTime, ages, 1000001.5);
  const std::string text = metrics.Exposition();
  EXPECT_THAT(text, HasSubstr("cachalot_steps_total 1\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_generated_tokens_total 42\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_http_responses_total{status=\"429\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_kv_free_slots 5\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_step_cost_seconds{term=\"row\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_step_cost_seconds{term=\"step\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_prompt_tokens_bucket{le=\"4\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_prompt_tokens_bucket{le=\"16\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_prompt_tokens_sum 21\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_kv_block_idle_seconds_bucket{le=\"0.1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_kv_block_idle_seconds_bucket{le=\"1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_kv_block_idle_seconds_bucket{le=\"86400\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_kv_block_idle_seconds_count 4\n"));
  EXPECT_THAT(text, HasSubstr("cachalot_prompt_tokens_count 2\n"));
}

TEST(Metrics, AnUnlistedLabelValueCountsUnderTheLast) {
  Metrics metrics;
  metrics.Add(Counter::kHttpResponses, 1, "418");
  EXPECT_THAT(metrics.Exposition(), HasSubstr("cachalot_http_responses_total{status=\"other\"} 1\n"));
}

TEST(Metrics, CountsFromManyThreadsAreNotLost) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        metrics.Add(Counter::kSteps);
        metrics.Observe(Histogram::kStepTime, 0.5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(metrics.Exposition(), HasSubstr("cachalot_steps_total 4000\n"));
  EXPECT_THAT(metrics.Exposition(), HasSubstr("cachalot_step_seconds_count 4000\n"));
}

TEST(MetricTable, NamesAreUniqueAndEndInTheirUnit) {
  std::set<std::string_view> names;
  const auto check = [&](const auto& row, std::string_view suffix) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.name.starts_with("cachalot_")) << row.name;
    EXPECT_TRUE(row.name.ends_with(suffix)) << row.name;
    EXPECT_TRUE(row.name.find(row.unit) != std::string_view::npos) << row.name;
    EXPECT_TRUE(row.help.ends_with(".")) << row.name;
  };
  for (const auto& row : kCounters) check(row, "_total");
  for (const auto& row : kGauges) check(row, row.unit);
  for (const auto& row : kHistograms) {
    check(row, row.unit);
    EXPECT_FALSE(row.buckets.empty()) << row.name;
    EXPECT_TRUE(std::is_sorted(row.buckets.begin(), row.buckets.end())) << row.name;
  }
}

TEST(MetricTable, TheDocumentationListsEveryOne) {
  const std::string page = ReadFile(CACHALOT_SOURCE_DIR "/docs/metrics.md", 1 << 20).value();
  const auto check = [&](const auto& row) {
    const std::string name = "`" + std::string(row.name);
    EXPECT_TRUE(page.find(name + "`") != std::string::npos || page.find(name + "{") != std::string::npos) << row.name;
  };
  for (const auto& row : kCounters) check(row);
  for (const auto& row : kGauges) check(row);
  for (const auto& row : kHistograms) check(row);
}

}  // namespace
}  // namespace cachalot
