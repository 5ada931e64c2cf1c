// What byte planes win and cost on 1 MiB of KV: ratio, and MB of raw bytes per second of CPU.
#include <benchmark/benchmark.h>

#include <cmath>
#include <span>

#include "base/random.h"
#include "codec/byte_planes.h"
#include "codec/sample_values.h"

namespace cachalot::codec {
namespace {

constexpr size_t kBytes = 1 << 20;

enum Kind : int64_t { kF32Normal, kF16Normal, kF16PerChannel, kNoise };

// kF16PerChannel: as K lies in a block, 16 tokens of each channel side by side, whose scales and means differ.
std::vector<std::byte> Sample(int64_t kind) {
  SplitMix64 random(1);
  std::vector<std::byte> bytes(kBytes);
  if (kind == kNoise) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }
  if (kind != kF16PerChannel) {
    FillNormal(random, {}, kind == kF32Normal ? KvType::kF32 : KvType::kF16, bytes);
    return bytes;
  }
  constexpr size_t kChannelBytes = 16 * 2;
  for (size_t i = 0; i < kBytes; i += kChannelBytes) {
    NormalLaw law;
    law.deviation = std::exp(2 * random.Uniform() - 1.5);
    law.mean = 4 * random.Uniform() - 2;
    FillNormal(random, law, KvType::kF16, std::span(bytes).subspan(i, kChannelBytes));
  }
  return bytes;
}

uint32_t ElementBytes(int64_t kind) { return kind == kF32Normal ? 4 : 2; }

void Report(benchmark::State& state, size_t frame_bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(kBytes));
  state.counters["ratio"] = static_cast<double>(kBytes) / static_cast<double>(frame_bytes);
}

void BM_Encode(benchmark::State& state) {
  BytePlanes codec = BytePlanes::Make(static_cast<int>(state.range(1))).value();
  const std::vector<std::byte> raw = Sample(state.range(0));
  std::vector<std::byte> frame;
  for (auto _ : state) {
    const Status status = codec.Encode(raw, ElementBytes(state.range(0)), frame);
    benchmark::DoNotOptimize(status.ok());
  }
  Report(state, frame.size());
}

void BM_Decode(benchmark::State& state) {
  BytePlanes codec = BytePlanes::Make(static_cast<int>(state.range(1))).value();
  std::vector<std::byte> raw = Sample(state.range(0)), frame;
  if (!codec.Encode(raw, ElementBytes(state.range(0)), frame).ok()) return state.SkipWithError("cannot encode");
  for (auto _ : state) {
    const Status status = codec.Decode(frame, raw);
    benchmark::DoNotOptimize(status.ok());
  }
  Report(state, frame.size());
}

// kind (f32 normal, f16 normal, f16 per channel, noise), level
void Cases(benchmark::internal::Benchmark* bench) {
  for (const int64_t kind : {kF32Normal, kF16Normal, kF16PerChannel, kNoise}) {
    for (const int64_t level : {-5, 1, 3, 9}) bench->Args({kind, level});
  }
}
BENCHMARK(BM_Encode)->Apply(Cases);
BENCHMARK(BM_Decode)->Apply(Cases);

}  // namespace
}  // namespace cachalot::codec
