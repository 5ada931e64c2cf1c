#include "server/kv_metrics.h"

#include <gmock/gmock.h>

#include "base/metrics.h"
#include "engine/engine.h"

namespace cachalot::server {
namespace {

using ::testing::HasSubstr;

TEST(KvMetrics, EveryLinkTellsWhatItMovedEitherWay) {
  Metrics metrics;
  engine::EngineStats before, after;
  before.tiers.host_loaded_bytes = 5;
  after.tiers = {.loaded_bytes = 30, .stored_bytes = 40};
  after.tiers.host_loaded_bytes = 15;
  after.tiers.host_stored_bytes = 20;
  AddKvMetrics(before, after, &metrics);
  const std::string text = metrics.Exposition();
  for (const char* lane : {"host_up\"} 10", "host_down\"} 20", "disk_up\"} 30", "disk_down\"} 40"}) {
    EXPECT_THAT(text, HasSubstr(std::string("cachalot_tier_bytes_total{lane=\"") + lane + "\n"));
  }
}

TEST(KvMetrics, TransfersAreCountedByTheirEndAndTimed) {
  Metrics metrics;
  engine::EngineStats before, after;
  before.tiers.disk_link[0] = {.jobs = {1, 0, 0, 0}, .busy = std::chrono::microseconds(100)};
  after.tiers.disk_link[0] = {.jobs = {4, 1, 2, 0},
                              .busy = std::chrono::microseconds(350),
                              .waited = std::chrono::microseconds(70),
                              .waiting_jobs = 3,
                              .in_flight_bytes = 77};
  after.tiers.disk_link[1] = {.jobs = {5, 0, 0, 6}, .busy = std::chrono::microseconds(9)};
  AddKvMetrics(before, after, &metrics);
  const std::string text = metrics.Exposition();
  for (const char* line :
       {"cachalot_disk_transfers_total{end=\"done\"} 8\n", "cachalot_disk_transfers_total{end=\"failed\"} 1\n",
        "cachalot_disk_transfers_total{end=\"cancelled\"} 2\n", "cachalot_disk_transfers_total{end=\"late\"} 6\n",
        "cachalot_disk_busy_microseconds_total{direction=\"up\"} 250\n",
        "cachalot_disk_busy_microseconds_total{direction=\"down\"} 9\n",
        "cachalot_disk_waited_microseconds_total{direction=\"up\"} 70\n",
        "cachalot_disk_in_flight_bytes{direction=\"up\"} 77\n", "cachalot_disk_waiting_transfers{direction=\"up\"} 3\n",
        "cachalot_disk_waiting_transfers{direction=\"down\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace cachalot::server
