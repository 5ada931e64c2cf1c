// Attention against what the machine can do: decode in shares of read bandwidth, prefill in shares of the fma peak.
// Both limits are measured by this program for the instruction set at hand, before the first case runs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/testing/paged_kv.h"

namespace cachalot::kernels {
namespace {

// CPU time, as in the cases' counters: the machine may be shared.
template <class Work>
double BestSeconds(int tries, Work work) {
  double best = 1e30;
  for (int i = 0; i < tries; ++i) {
    const std::clock_t start = std::clock();
    work();
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

// Bytes per second of summing 256 MiB in order.
double ReadBandwidth() {
  static const double bandwidth = [] {
    std::vector<uint64_t> data(uint64_t{32} << 20, 1);
    return static_cast<double>(data.size() * 8) / BestSeconds(5, [&] {
             uint64_t sums[8] = {};
             for (size_t i = 0; i < data.size(); i += 8) {
               for (size_t j = 0; j < 8; ++j) sums[j] += data[i + j];
             }
             benchmark::DoNotOptimize(sums);
           });
  }();
  return bandwidth;
}

#if defined(__x86_64__)
constexpr int kFmaRounds = 400'000;

// Rounds of twelve independent fmas on registers that hold zeros.
#define CACHALOT_FMA_ON(REGISTER, NUMBER) "vfmadd231ps %%" REGISTER "12, %%" REGISTER "12, %%" REGISTER NUMBER "\n"
// The formatter moves these at each run.
// clang-format off
#define CACHALOT_FMA_ROUND(REGISTER) \
  CACHALOT_FMA_ON(REGISTER, "0") CACHALOT_FMA_ON(REGISTER, "1") \
  CACHALOT_FMA_ON(REGISTER, "2") CACHALOT_FMA_ON(REGISTER, "3") \
  CACHALOT_FMA_ON(REGISTER, "4") CACHALOT_FMA_ON(REGISTER, "5") \
  CACHALOT_FMA_ON(REGISTER, "6") CACHALOT_FMA_ON(REGISTER, "7") \
  CACHALOT_FMA_ON(REGISTER, "8") CACHALOT_FMA_ON(REGISTER, "9") \
  CACHALOT_FMA_ON(REGISTER, "10") CACHALOT_FMA_ON(REGISTER, "11")
// clang-format on
#define CACHALOT_FMA_LOOP(REGISTER)                                                                                \
  __asm__ volatile("vzeroall\n1:\n" CACHALOT_FMA_ROUND(REGISTER) "sub $1, %0\njne 1b\nvzeroupper"                  \
                   : "+r"(rounds)::"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                     "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc")

void FmaLoop8() {
  int rounds = kFmaRounds;
  CACHALOT_FMA_LOOP("ymm");
}
void FmaLoop16() {
  int rounds = kFmaRounds;
  CACHALOT_FMA_LOOP("zmm");
}
#endif

// Floating-point operations per second of independent fmas; 0 for scalar code, which calls libm for each.
double FmaPeak([[maybe_unused]] const KernelTable& table) {
#if defined(__x86_64__)
  static double peaks[2] = {};
  const bool wide = std::strcmp(table.isa, "avx512") == 0;
  if (!wide && std::strcmp(table.isa, "avx2") != 0) return 0;
  double& peak = peaks[wide ? 1 : 0];
  if (peak == 0) peak = 2 * 12 * (wide ? 16 : 8) * double{kFmaRounds} / BestSeconds(50, wide ? FmaLoop16 : FmaLoop8);
  return peak;
#else
  return 0;
#endif
}

struct BenchCase {
  const char* name;
  AttentionShape shape;
  uint64_t tokens;
  uint32_t rows;
  uint32_t layers;  // rotated through, also by sequences that share nothing: enough of them leave the caches
  KvType type = KvType::kF16;
  bool scattered = true;
  uint32_t sequences = 1;
  bool shared = false;  // their blocks, which they read together; else each reads them for itself
};

void Run(benchmark::State& state, const KernelTable& table, const BenchCase& c) {
  const uint64_t kv_width = uint64_t{c.shape.kv_heads} * c.shape.head_dim;
  const uint64_t width = uint64_t{c.shape.heads} * c.shape.head_dim;
  const std::vector<float> k = TestValues(1, c.tokens * kv_width), v = TestValues(2, c.tokens * kv_width);
  PagedKv kv({.shape = c.shape, .type = c.type, .tokens = c.tokens, .layers = c.layers, .scattered = c.scattered});
  kv.Store({table.store_kv, table.attend, table.fold_splits}, k, v);
  const PageTableRef pages = kv.view().pages;
  const std::vector<float> q = TestValues(3, c.sequences * c.rows * width);
  std::vector<float> out(q.size());
  std::vector<QueryRun> runs;
  for (uint32_t i = 0; i < c.sequences; ++i) {
    const uint64_t place = i * c.rows * width;
    runs.push_back({q.data() + place, width, out.data() + place, width, c.tokens - c.rows, c.rows, pages, 0});
    if (c.shared && i > 0) runs.back().shared_positions = c.tokens / 16 * 16;
  }
  const uint32_t together = c.shared ? c.sequences : 1;
  uint32_t layer = 0;
  for (auto _ : state) {
    for (uint32_t i = 0; i < c.sequences; i += together) {
      const PageView view = kv.view((layer + i) % c.layers);
      for (uint32_t g = 0; g < c.shape.kv_heads; ++g) table.attend(c.shape, {&runs[i], together, g}, view);
    }
    layer = (layer + 1) % c.layers;
  }
  double visible = 0;  // positions, over all rows
  for (uint32_t r = 0; r < c.rows; ++r) {
    const uint64_t seen = c.tokens - c.rows + r + 1;
    visible += static_cast<double>(c.shape.window != 0 ? std::min<uint64_t>(seen, c.shape.window) : seen);
  }
  visible *= c.sequences;
  using benchmark::Counter;
  const double iterations = static_cast<double>(state.iterations());
  const double flops = 4 * visible * static_cast<double>(width) * iterations;
  const double bytes = 2 * visible * static_cast<double>(kv_width) * (c.type == KvType::kF32 ? 4 : 2) * iterations;
  state.counters["GFLOPS"] = Counter(flops * 1e-9, Counter::kIsRate);
  const double peak = FmaPeak(table);
  if (peak > 0) state.counters["of_fma_peak"] = Counter(flops / peak, Counter::kIsRate);
  if (c.rows == 1) {
    state.counters["GBs"] = Counter(bytes * 1e-9, Counter::kIsRate);
    state.counters["of_read_bw"] = Counter(bytes / ReadBandwidth(), Counter::kIsRate);
  }
}

const AttentionShape kSmol = {9, 3, 64, 0};
const AttentionShape kGemma = {4, 1, 256, 0};
const AttentionShape kGemmaLocal = {4, 1, 256, 512};
const AttentionShape kQwen = {14, 2, 64, 0};
const AttentionShape kMultiHead = {8, 8, 128, 0};

const BenchCase kCases[] = {
    {"decode4096/smollm2", kSmol, 4096, 1, 96},
    {"decode4096/smollm2/contiguous", kSmol, 4096, 1, 96, KvType::kF16, false},
    {"decode4096/smollm2/cached", kSmol, 4096, 1, 1},
    {"decode4096/smollm2/cached/contiguous", kSmol, 4096, 1, 1, KvType::kF16, false},
    {"decode4096/smollm2/f32", kSmol, 4096, 1, 48, KvType::kF32},
    {"decode4096/smollm2/bf16", kSmol, 4096, 1, 96, KvType::kBF16},
    {"decode4096/gemma", kGemma, 4096, 1, 64},
    {"decode4096/gemma/contiguous", kGemma, 4096, 1, 64, KvType::kF16, false},
    {"decode4096/gemma/window512", kGemmaLocal, 4096, 1, 64},
    {"decode4096/qwen", kQwen, 4096, 1, 96},
    {"decode4096/multi_head_128", kMultiHead, 4096, 1, 16},
    {"decode64/smollm2/cached", kSmol, 64, 1, 1},
    {"decode4096x16/smollm2/apart", kSmol, 4096, 1, 32, KvType::kF16, true, 16, false},
    {"decode4096x16/smollm2/shared", kSmol, 4096, 1, 32, KvType::kF16, true, 16, true},
    {"decode4096x16/gemma/apart", kGemma, 4096, 1, 32, KvType::kF16, true, 16, false},
    {"decode4096x16/gemma/shared", kGemma, 4096, 1, 32, KvType::kF16, true, 16, true},
    {"prefill512/smollm2", kSmol, 512, 512, 1},
    {"prefill512/smollm2/f32", kSmol, 512, 512, 1, KvType::kF32},
    {"prefill512_of_4096/smollm2", kSmol, 4096, 512, 1},
    {"prefill64_of_4096/smollm2", kSmol, 4096, 64, 1},
    {"prefill512/gemma", kGemma, 512, 512, 1},
    {"prefill512_of_4096/gemma", kGemma, 4096, 512, 1},
    {"prefill512_of_4096/gemma/window512", kGemmaLocal, 4096, 512, 1},
    {"prefill512_of_4096/qwen", kQwen, 4096, 512, 1},
    {"prefill512_of_4096/multi_head_128", kMultiHead, 4096, 512, 1},
};

const bool kRegistered = [] {
  for (const KernelTable* table : RunnableTables()) {
    for (const BenchCase& c : kCases) {
      if (FmaPeak(*table) == 0 && c.rows * c.tokens > 4096) continue;
      benchmark::RegisterBenchmark((std::string(c.name) + "/" + table->isa).c_str(), [table,
                                                                                      &c](benchmark::State& state) {
        Run(state, *table, c);
      })->Unit(benchmark::kMicrosecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace cachalot::kernels
