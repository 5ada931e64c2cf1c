// Time of one decode step of a random model of SmolLM2's shape (a tenth of its vocabulary): by threads, depth, number
// of sequences, and whether these share the blocks before their last 16 positions. The KV is zeros, which costs the
// same.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "exec/cpu/cpu_executor.h"
#include "exec/cpu/cpu_model.h"
#include "exec/device_memory.h"
#include "exec/testing/tiny_model.h"
#include "kernels/kernel_table.h"
#include "model/gguf.h"

namespace cachalot::exec {
namespace {

const CpuModel& Model() {
  static const CpuModel model = [] {
    const std::string bytes = MakeTinyModel({.type = TensorType::kQ4_1,
                                             .layers = 30,
                                             .width = 576,
                                             .heads = 9,
                                             .kv_heads = 3,
                                             .head_dim = 64,
                                             .ffn_width = 1536,
                                             .vocabulary = 4915,
                                             .context = 8192});
    ThreadPool pool(2);
    const auto file = model::GgufFile::Parse(std::as_bytes(std::span(bytes.data(), bytes.size())), "bench model");
    return CpuModel::Load(file.value(), {}, pool, nullptr).value();
  }();
  return model;
}

void Decode(benchmark::State& state) {
  const auto threads = static_cast<size_t>(state.range(0));
  const auto depth = static_cast<uint64_t>(state.range(1));
  const auto sequences = static_cast<uint32_t>(state.range(2));
  const bool shared = state.range(3) != 0;
  const auto blocks = static_cast<uint32_t>(depth / 16 + 1);
  const uint32_t own = shared ? 1 : blocks;  // blocks of each sequence
  ThreadPool pool(threads);
  auto memory = MakeCpuMemory(Model().layout().slot_bytes, blocks + sequences * own).value();
  const auto executor = MakeCpuExecutor(Model(), *memory, {512, 64}, *kernels::RunnableTables().front(), pool);
  std::vector<std::vector<uint32_t>> slots(sequences);
  std::vector<PageTableRef> pages(sequences);
  std::vector<SequenceRows> rows;
  const std::vector<TokenId> token = {7};
  for (uint32_t s = 0; s < sequences; ++s) {
    for (uint32_t b = 0; b < blocks; ++b) slots[s].push_back(b < blocks - own ? b : blocks + s * own + b % own);
    pages[s] = {slots[s].data(), blocks, 0};
    rows.push_back({token, depth, std::span(&pages[s], 1), 1});
  }
  for (auto _ : state) benchmark::DoNotOptimize(executor->Run({rows}).value().values);
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * sequences, benchmark::Counter::kIsRate);
}

BENCHMARK(Decode)
    ->ArgNames({"threads", "depth", "sequences", "shared"})
    ->ArgsProduct({{1, 2}, {0, 4096}, {1}, {0}})
    ->ArgsProduct({{1, 2}, {4096}, {16}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cachalot::exec
