#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/fp_env.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace cachalot {
namespace {

TEST(ThreadPool, RunsEachTaskOnceForAnyNumberOfThreadsAndTasks) {
  for (const size_t threads : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.thread_count(), threads);
    for (const size_t tasks : {0u, 1u, 2u, 7u, 1000u}) {
      std::vector<std::atomic<int>> runs(tasks);
      pool.ParallelFor(tasks, [&](size_t task) { runs[task].fetch_add(1); });
      for (size_t i = 0; i < tasks; ++i) EXPECT_EQ(runs[i].load(), 1) << i << " of " << tasks << " on " << threads;
    }
  }
}

TEST(ThreadPool, ResultsOfManySmallJobsAreVisibleWhenTheCallReturns) {
  ThreadPool pool(4);
  std::vector<uint64_t> values(13);
  for (uint64_t round = 0; round < 20'000; ++round) {
    pool.ParallelFor(values.size(), [&](size_t task) { values[task] = round * task; });
    ASSERT_EQ(std::accumulate(values.begin(), values.end(), uint64_t{0}), round * 78);
  }
}

TEST(ThreadPool, TwoThreadsCanBeInsideAtOnce) {
  ThreadPool pool(2);
  std::atomic<int> inside{0};
  pool.ParallelFor(2, [&](size_t) {
    inside.fetch_add(1);
    while (inside.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(inside.load(), 2);
}

TEST(ThreadPool, StartsAndStopsWithoutWork) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

TEST(ThreadPool, SleepingWorkersWakeForTheNextJob) {
  ThreadPool pool(3);
  for (int i = 0; i < 20; ++i) {
    pool.ParallelFor(3, [](size_t) {});
    // Work of the caller alone, long enough that the others stop spinning; nothing depends on it.
    volatile int alone = 0;
    while (alone < 200'000) alone = alone + 1;
    std::atomic<int> ran{0};
    pool.ParallelFor(100, [&](size_t) { ran.fetch_add(1); });
    EXPECT_EQ(ran.load(), 100);
  }
}

TEST(ThreadPool, EveryThreadKeepsDenormals) {
  SetDefaultFpEnv();
  ThreadPool pool(4);
  std::vector<float> halves(64);
  volatile float smallest_normal = std::numeric_limits<float>::min();
  pool.ParallelFor(halves.size(), [&](size_t task) { halves[task] = smallest_normal / 2; });
  for (const float half : halves) EXPECT_EQ(std::fpclassify(half), FP_SUBNORMAL);
}

#if defined(__x86_64__)
TEST(ThreadPoolDeathTest, ACallerInAnotherFloatingPointModeIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ThreadPool pool(1);
  EXPECT_DEATH(
      {
        _mm_setcsr(_mm_getcsr() | 0x8000);  // flush to zero
        pool.ParallelFor(1, [](size_t) {});
      },
      "IsDefaultFpEnv");
}

TEST(FpEnv, SetRestoresTheDefaultAndStickyFlagsDoNotMatter) {
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
  EXPECT_FALSE(IsDefaultFpEnv());
  SetDefaultFpEnv();
  EXPECT_TRUE(IsDefaultFpEnv());
  volatile double zero = 0;
  volatile double infinite = 1 / zero;
  EXPECT_TRUE(std::isinf(infinite));
  EXPECT_TRUE(IsDefaultFpEnv());
}
#endif

}  // namespace
}  // namespace cachalot
