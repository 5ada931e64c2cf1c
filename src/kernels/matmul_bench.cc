// Matmul of every format on every instruction set, beside what the machine could do at most: `of_stream` is the rate at
// which weights are read over that of a plain read of as many bytes (the bound for one row); `of_peak` is the rate of
// multiply-adds over that of a loop of nothing else (the bound for many rows): fma for float formats, vpdpbusd or
// vpmaddubsw + vpmaddwd + vpaddd for quantised ones; `of_format` is the rate over that of a loop in registers which
// also scales each group's dots, with the minimum where the format has one: the bound of its arithmetic.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
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

constexpr int kPeakRounds = 16'384;  // about as long as the part of a matmul that is compared with it

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

// Eight dots of a group, then what they add to the accumulator, for 12 accumulators at a time.
template <bool kMin>
[[gnu::target("avx512f,avx512vnni")]] void GroupLoop512() {
  __m512 acc[12] = {}, scale = _mm512_set1_ps(1e-3f);
  __m512i a = _mm512_set1_epi8(3);
  benchmark::DoNotOptimize(scale);
  for (int i = 0; i < kPeakRounds / 8; ++i) {
    __m512i dots[12] = {};
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
#pragma GCC unroll 12
      for (int j = 0; j < 12; ++j) {
        dots[j] = _mm512_dpbusd_epi32(dots[j], a, a);
        asm volatile("" : "+v"(dots[j]));  // or all twelve would be one
      }
    }
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) {
      asm volatile("" : "+v"(scale));
      acc[j] = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xffff, dots[j]), _mm512_mul_ps(scale, scale), acc[j]);
      asm volatile("" : "+v"(scale));
      if (kMin) acc[j] = _mm512_fmadd_ps(scale, _mm512_mul_ps(scale, scale), acc[j]);
    }
  }
  benchmark::DoNotOptimize(acc);
}

// Multiply-adds per second; 0 where there is no such loop.
double FormatPeakOf(const std::string& isa, TensorType type) {
  const QuantFormat format = FormatOf(type);
  if (isa != "avx512" || format.bits == 0 || format.scales == ScaleKind::kSuperPair) return 0;
  const double products = 64.0 * 12 * 8 * (kPeakRounds / 8);
  return products / LeastSeconds(10, HasMin(format.scales) ? GroupLoop512<true> : GroupLoop512<false>);
}

// Multiply-adds per second; 0 where the instruction set has no such loop.
double PeakOf(const std::string& isa, bool quantised) {
  if (isa == "avx512" && quantised) return 64.0 * 12 * kPeakRounds / LeastSeconds(10, DotLoop512);
  if (isa == "avx512") return 16.0 * 12 * kPeakRounds / LeastSeconds(10, FmaLoop512);
  if (isa == "avx2" && quantised) return 32.0 * 8 * kPeakRounds / LeastSeconds(10, DotLoop256);
  if (isa == "avx2") return 8.0 * 12 * kPeakRounds / LeastSeconds(10, FmaLoop256);
  return 0;
}
#else
void ReadAll(const std::byte* data, uint64_t bytes) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i + 8 <= bytes; i += 8) sum |= *reinterpret_cast<const uint64_t*>(data + i);
  benchmark::DoNotOptimize(sum);
}
double PeakOf(const std::string&, bool) { return 0; }
double FormatPeakOf(const std::string&, TensorType) { return 0; }
#endif

constexpr uint64_t kPartProducts = 12'000'000;

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

  using benchmark::Counter;
  const double iterations = static_cast<double>(state.iterations());
  const double products = static_cast<double>(count) * shape.m;
  const auto bytes_read = static_cast<double>(matrix->bytes());
  state.counters["GMAC/s"] = Counter(products * iterations * 1e-9, Counter::kIsRate);
  state.counters["GB/s"] = Counter(bytes_read * iterations * 1e-9, Counter::kIsRate);
  // Ratios of least times, of parts of equal length, taken in turns: neighbours of a shared machine slow all alike.
  const uint64_t panel_products = uint64_t{kPanelRows} * shape.columns * shape.m;
  const auto panels = static_cast<uint32_t>(std::clamp<uint64_t>(kPartProducts / panel_products, 2, matrix->panels()));
  double least = 1e9, stream = 1e9, peak = 0, format_peak = 0;
  for (int turn = 0; turn < 20; ++turn) {
    least = std::min(least,
                     LeastSeconds(10, [&] { table->matmul(matrix->view(), rows, 0, panels, out.data(), shape.rows); }));
    stream =
        std::min(stream, LeastSeconds(10, [&] { ReadAll(matrix->view().data, panels * matrix->view().panel_bytes); }));
    peak = std::max(peak, PeakOf(table->isa, matrix->takes_quantised()));
    format_peak = std::max(format_peak, FormatPeakOf(table->isa, type));
  }
  const double part_products = static_cast<double>(panel_products * panels);
  if (peak > 0) state.counters["of_peak"] = part_products / least / peak;
  if (format_peak > 0) state.counters["of_format"] = part_products / least / format_peak;
  state.counters["of_stream"] = stream / least;
}

// What decode of a model that fits no cache can reach: all threads read 1 GiB.
void RunRead(benchmark::State& state) {
  constexpr uint64_t kPieces = 1024, kPieceBytes = 1 << 20;
  ThreadPool pool(static_cast<size_t>(state.range(0)));
  const std::vector<std::byte> memory(kPieces * kPieceBytes + 64, std::byte{1});
  const auto begin = (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64;
  for (auto _ : state) {
    pool.ParallelFor(kPieces, [&](size_t piece) {
      ReadAll(reinterpret_cast<const std::byte*>(begin + piece * kPieceBytes), kPieceBytes);
    });
  }
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(kPieces * kPieceBytes) * static_cast<double>(state.iterations()) * 1e-9,
                         benchmark::Counter::kIsRate);
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
  const Shape shapes[] = {{1, 768, 1536},   {4, 768, 1536}, {32, 768, 1536},  {256, 768, 1536}, {1, 768, 49152},
                          {32, 768, 49152}, {1, 1536, 768}, {256, 1536, 768}, {1, 4096, 28672}};
  benchmark::RegisterBenchmark("read", RunRead)->Arg(1)->Arg(2)->ArgName("threads")->UseRealTime();
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
