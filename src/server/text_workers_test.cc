#include "server/text_workers.h"

#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cachalot::server {
namespace {

constexpr size_t kSmall = 10;
constexpr size_t kLarge = TextWorkers::kLargeBytes;

TEST(TextWorkers, SmallJobsDoNotWaitBehindLargeOnes) {
  TextWorkers workers(2);
  std::promise<void> release, small_done;
  std::shared_future<void> released = release.get_future().share();
  // More large jobs than workers: if a second one could take the other worker, the small job would wait for ever.
  for (int i = 0; i < 4; ++i) workers.Submit(kLarge, [released] { released.wait(); });
  workers.Submit(kSmall, [&] { small_done.set_value(); });
  small_done.get_future().wait();
  release.set_value();
}

TEST(TextWorkers, JobsOfOneSizeStartInOrder) {
  TextWorkers workers(1);
  std::vector<int> order;
  std::promise<void> done;
  for (int i = 0; i < 100; ++i) workers.Submit(kSmall, [&, i] { order.push_back(i); });
  workers.Submit(kSmall, [&] { done.set_value(); });
  done.get_future().wait();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(TextWorkers, AloneItAlternatesBetweenSizes) {
  TextWorkers workers(1);
  std::promise<void> running, start, done;
  std::shared_future<void> started = start.get_future().share();
  std::string order;
  workers.Submit(kSmall, [&running, started] {
    running.set_value();
    started.wait();
  });
  running.get_future().wait();
  for (int i = 0; i < 3; ++i) workers.Submit(kSmall, [&] { order += 's'; });
  for (int i = 0; i < 3; ++i) workers.Submit(kLarge, [&] { order += 'L'; });
  workers.Submit(kLarge, [&] { done.set_value(); });
  start.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, "LsLsLs");
}

TEST(TextWorkers, StopWaitsForWhatRunsAndDropsTheRest) {
  TextWorkers workers(1);
  std::promise<void> running, release;
  std::shared_future<void> released = release.get_future().share();
  bool finished = false, dropped_ran = false;
  workers.Submit(kSmall, [&] {
    running.set_value();
    released.wait();
    finished = true;
  });
  running.get_future().wait();
  workers.Submit(kSmall, [&] { dropped_ran = true; });
  std::thread releaser([&] { release.set_value(); });
  workers.Stop();
  releaser.join();
  workers.Submit(kSmall, [&] { dropped_ran = true; });
  EXPECT_TRUE(finished);
}

}  // namespace
}  // namespace cachalot::server
