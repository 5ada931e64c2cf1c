#include <benchmark/benchmark.h>

#include "base/thread_pool.h"

namespace cachalot {
namespace {

// Cost of one ParallelFor with nothing to do, by thread count.
void BM_EmptyJob(benchmark::State& state) {
  ThreadPool pool(static_cast<size_t>(state.range(0)));
  for (auto _ : state) pool.ParallelFor(16, [](size_t) {});
}
BENCHMARK(BM_EmptyJob)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();

// Sixteen tasks of some microseconds each: how near two threads come to half the time.
void BM_SmallTasks(benchmark::State& state) {
  ThreadPool pool(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    pool.ParallelFor(16, [](size_t task) {
      double x = 1.0 + static_cast<double>(task);
      for (int i = 0; i < 2000; ++i) benchmark::DoNotOptimize(x = x * 1.0000001);
    });
  }
}
BENCHMARK(BM_SmallTasks)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace cachalot
