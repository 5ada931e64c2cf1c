// Matmul of every format on every instruction set, beside what the machine could do at most: `of_stream` is the rate at
// which weights are read over that of a plain read of as many bytes (the bound for one row); `of_peak` is the rate of
// multiply-adds over that of a loop of nothing else (the bound for many rows): fma for float formats, vpdpbusd or
// vpmaddubsw + vpmaddwd + vpaddd for quantised ones.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/packed_matrix.h"
#include "kernels/testing/random_blocks.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cachalot::kernels {
namespace {

// The least time of several runs, in seconds.
template <class F>
double LeastSeconds(int runs, F&& f) {
  const SteadyClock clock;
  double least = 1e9;
  for (int i = 0; i < runs; ++i) {
    const Nanos begin = clock.Now();
    f();
    least = std::min(least, std::chrono::duration<double>(clock.Now() - begin).count());
  }
  return least;
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void ReadAll(const std::byte* data, uint64_t bytes) {
  __m256i sums[4] = {};
  for (uint64_t i = 0; i + 128 <= bytes; i += 128) {
    for (int j = 0; j < 4; ++j) {
      sums[j] = _mm256_or_si256(sums[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + i + 32 * j)));
    }
  }
  benchmark::DoNotOptimize(sums);
}

constexpr int kPeakRounds = 2000;  // some microseconds: short enough to be rarely interrupted

[[gnu::target("avx2,fma")]] void FmaLoop256() {
  __m256 acc[12] = {}, a = _mm256_set1_ps(1e-3f);
  benchmark::DoNotOptimize(a);
  for (int i = 0; i < kPeakRounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) acc[j] = _mm256_fmadd_ps(a, a, acc[j]);
  }
  benchmark::DoNotOptimize(acc);
}
[[gnu::target("avx512f")]] void FmaLoop512() {
  __m512 acc[12] = {}, a = _mm512_set1_ps(1e-3f);
  benchmark::DoNotOptimize(a);
  for (int i = 0; i < kPeakRounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) acc[j] = _mm512_fmadd_ps(a, a, acc[j]);
  }
  benchmark::DoNotOptimize(acc);
}
[[gnu::target("avx2")]] void DotLoop256() {
  __m256i acc[8] = {}, a = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
  benchmark::DoNotOptimize(a);
  benchmark::DoNotOptimize(ones);
  for (int i = 0; i < kPeakRounds; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      acc[j] = _mm256_add_epi32(acc[j], _mm256_madd_epi16(_mm256_maddubs_epi16(a, acc[j]), ones));
    }
  }
  benchmark::DoNotOptimize(acc);
}
[[gnu::target("avx512f,avx512vnni")]] void DotLoop512() {
  __m512i acc[12] = {}, a = _mm512_set1_epi8(3);
  benchmark::DoNotOptimize(a);
  for (int i = 0; i < kPeakRounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) acc[j] = _mm512_dpbusd_epi32(acc[j], a, a);
  }
  benchmark::DoNotOptimize(acc);
}

// Multiply-adds per second; 0 where the instruction set has no such loop.
double PeakOf(const std::string& isa, bool quantised) {
  if (isa == "avx512" && quantised) return 64.0 * 12 * kPeakRounds / LeastSeconds(500, DotLoop512);
  if (isa == "avx512") return 16.0 * 12 * kPeakRounds / LeastSeconds(500, FmaLoop512);
  if (isa == "avx2" && quantised) return 32.0 * 8 * kPeakRounds / LeastSeconds(500, DotLoop256);
  if (isa == "avx2") return 8.0 * 12 * kPeakRounds / LeastSeconds(500, FmaLoop256);
  return 0;
}
#else
void ReadAll(const std::byte* data, uint64_t bytes) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i + 8 <= bytes; i += 8) sum |= *reinterpret_cast<const uint64_t*>(data + i);
  benchmark::DoNotOptimize(sum);
}
double PeakOf(const std::string&, bool) { return 0; }
#endif

double StreamOf(const PanelView& w, uint64_t bytes) {
  const int runs = static_cast<int>(std::clamp<uint64_t>((64u << 20) / bytes, 4, 1000));
  return static_cast<double>(bytes) / LeastSeconds(runs, [&] { ReadAll(w.data, bytes); });
}

struct Shape {
  uint32_t m, columns, rows;
};

void RunMatmul(benchmark::State& state, const KernelTable* table, TensorType type, Shape shape) {
  static ThreadPool pool(1);
  const uint64_t count = uint64_t{shape.rows} * shape.columns;
  const auto blocks = testing::RandomBlocks(type, uint64_t{64} * shape.columns, 1);
  std::vector<std::byte> bytes;
  for (uint32_t row = 0; row < shape.rows; row += 64) bytes.insert(bytes.end(), blocks.begin(), blocks.end());
  auto matrix = PackedMatrix::Pack(type, shape.rows, shape.columns, bytes, pool);
  if (!matrix.ok()) return state.SkipWithError(matrix.status().message().c_str());

  const std::vector<float> x = testing::RandomFloats(uint64_t{shape.m} * shape.columns, 2);
  std::vector<int8_t> values(x.size());
  std::vector<float> scales(x.size() / kGroup);
  std::vector<int32_t> sums(x.size() / kGroup);
  Activations rows{x.data(), {values.data(), scales.data(), sums.data()}, shape.m};
  table->quantize_rows(x.data(), shape.m, shape.columns, rows.quantised);
  std::vector<float> out(uint64_t{shape.m} * shape.rows);
  for (auto _ : state) {
    table->matmul(matrix->view(), rows, 0, matrix->panels(), out.data(), shape.rows);
    benchmark::DoNotOptimize(out.data());
  }

  static std::map<std::pair<std::string, bool>, double> peaks;
  const std::pair<std::string, bool> key{table->isa, matrix->takes_quantised()};
  if (!peaks.contains(key)) peaks[key] = PeakOf(key.first, key.second);
  using benchmark::Counter;
  const double iterations = static_cast<double>(state.iterations());
  const double dots = static_cast<double>(count) * shape.m * iterations;
  state.counters["GMAC/s"] = Counter(dots * 1e-9, Counter::kIsRate);
  state.counters["GB/s"] = Counter(static_cast<double>(matrix->bytes()) * iterations * 1e-9, Counter::kIsRate);
  if (peaks[key] > 0) state.counters["of_peak"] = Counter(dots / peaks[key], Counter::kIsRate);
  state.counters["of_stream"] = Counter(
      static_cast<double>(matrix->bytes()) * iterations / StreamOf(matrix->view(), matrix->bytes()), Counter::kIsRate);
}

void RunQuantizeRows(benchmark::State& state, const KernelTable* table) {
  const std::vector<float> x = testing::RandomFloats(576, 2);
  int8_t values[576];
  float scales[18];
  int32_t sums[18];
  for (auto _ : state) {
    table->quantize_rows(x.data(), 1, 576, {values, scales, sums});
    benchmark::DoNotOptimize(values);
  }
  state.counters["values/s"] =
      benchmark::Counter(576.0 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

bool RegisterAll() {
  const Shape shapes[] = {{1, 768, 1536},  {4, 768, 1536},   {32, 768, 1536}, {256, 768, 1536},
                          {1, 768, 49152}, {32, 768, 49152}, {1, 1536, 768},  {256, 1536, 768}};
  for (const KernelTable* table : RunnableTables()) {
    const std::string isa = table->isa;
    benchmark::RegisterBenchmark(("quantize_rows/" + isa + "/576").c_str(), RunQuantizeRows, table);
    for (const TensorType type : testing::kAllTypes) {
      for (const Shape& shape : shapes) {
        const std::string name = "matmul/" + isa + "/" + InfoOf(type).name + "/M:" + std::to_string(shape.m) +
                                 "/K:" + std::to_string(shape.columns) + "/N:" + std::to_string(shape.rows);
        benchmark::RegisterBenchmark(name.c_str(), RunMatmul, table, type, shape);
      }
    }
  }
  return true;
}

const bool registered = RegisterAll();

}  // namespace
}  // namespace cachalot::kernels
