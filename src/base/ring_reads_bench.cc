// Reads of a direct file by rings beside the same by pread, by turns, at random places of 1 GiB in the folder for
// temporary files (TMPDIR). `speed`: the median of the pairs' ratios, above 1 where rings are sooner, between the lower
// and the upper quartile; `cpu`: processor time of all by rings over that by pread.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/random.h"

namespace cachalot {
namespace {

constexpr uint64_t kPage = 4096, kMiB = uint64_t{1} << 20, kFileBytes = 1024 * kMiB;
constexpr size_t kPairs = 41;

// Ranges of one read, within 2 MiB.
struct Layout {
  const char* name;
  DiskIo io;
  uint64_t batch_bytes;                               // read in one half of a pair
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // offset, bytes
};

const std::vector<Layout>& Layouts() {
  static const std::vector<Layout> layouts = {
      {"header, then 1 MiB behind it", DiskIo::kIoUring, 32 * kMiB, {{0, kPage}, {kPage, kMiB}}},
      {"header, 16 KiB elsewhere", DiskIo::kAuto, 2 * kMiB, {{0, kPage}, {kMiB / 2, 16 << 10}}},
      {"header, 512 KiB elsewhere", DiskIo::kAuto, 24 * kMiB, {{0, kPage}, {kMiB / 2, kMiB / 2}}},
      {"four records of 16 KiB",
       DiskIo::kAuto,
       4 * kMiB,
       {{0, kPage},
        {kPage, 16 << 10},
        {kMiB / 2, kPage},
        {kMiB / 2 + kPage, 16 << 10},
        {kMiB, kPage},
        {kMiB + kPage, 16 << 10},
        {3 * kMiB / 2, kPage},
        {3 * kMiB / 2 + kPage, 16 << 10}}},
      {"two records, 512 KiB of each",
       DiskIo::kAuto,
       32 * kMiB,
       {{0, kPage}, {kMiB / 4, kMiB / 2}, {kMiB, kPage}, {kMiB + kPage, kMiB / 2}}},
  };
  return layouts;
}

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, FreeMemory>;
Memory PagesOf(uint64_t bytes) { return Memory(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes))); }

// One for all benchmarks, gone at the end.
class BenchFile {
 public:
  BenchFile() {
    std::filesystem::remove(path_);
    const auto file = DiskFileSystem()->OpenDirect(path_, OpenMode::kCreate).value();
    const Memory memory = PagesOf(kMiB);
    SplitMix64 random(1);
    std::generate_n(memory.get(), kMiB, [&] { return static_cast<std::byte>(random()); });
    for (uint64_t at = 0; at < kFileBytes; at += kMiB) {
      if (!file->WriteAt(at, {memory.get(), kMiB}).ok()) std::abort();
    }
    if (!file->Sync().ok()) std::abort();
  }
  ~BenchFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ = std::filesystem::temp_directory_path() / "cachalot_ring_reads_bench";
};

struct Spent {
  double seconds = 0;
  double cpu_seconds = 0;
};

double CpuSeconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](timeval t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

Spent ReadBatch(const File& file, const Layout& layout, int threads, uint64_t seed) {
  uint64_t bytes = 0;
  for (const auto& [offset, range_bytes] : layout.ranges) bytes += range_bytes;
  std::vector<Memory> memory;
  for (int i = 0; i < threads; ++i) memory.push_back(PagesOf(bytes));
  for (const Memory& m : memory) std::fill_n(m.get(), bytes, std::byte{1});
  const uint64_t reads = layout.batch_bytes / bytes;
  std::atomic<uint64_t> next = 0;
  const auto read = [&](const Memory& into) {
    for (uint64_t i = next++; i < reads; i = next++) {
      const uint64_t base = SplitMix64(seed + i).Below((kFileBytes - 2 * kMiB) / kPage) * kPage;
      std::vector<FileRange> ranges;
      std::span<std::byte> rest(into.get(), bytes);
      for (const auto& [offset, range_bytes] : layout.ranges) {
        ranges.push_back({base + offset, rest.first(range_bytes)});
        rest = rest.subspan(range_bytes);
      }
      if (!file.ReadAt(ranges).ok()) std::abort();
    }
  };
  SteadyClock clock;
  const double cpu = CpuSeconds();
  const Nanos begin = clock.Now();
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(read, std::cref(memory[static_cast<size_t>(i)]));
  read(memory[0]);
  for (std::thread& other : others) other.join();
  return {ToSeconds(clock.Now() - begin), CpuSeconds() - cpu};
}

void RingsOverPread(benchmark::State& state) {
  static const BenchFile made;
  const Layout& layout = Layouts()[static_cast<size_t>(state.range(0))];
  const int threads = static_cast<int>(state.range(1));
  state.SetLabel(layout.name);
  const auto files = DiskFileSystemBy(layout.io);
  if (!files.ok() || files.value()->ReadsBy() != "io_uring") return state.SkipWithError("io_uring does not work here");
  const auto ring = files.value()->OpenDirect(made.path(), OpenMode::kRead).value();
  const auto plain = DiskFileSystem()->OpenDirect(made.path(), OpenMode::kRead).value();
  for (auto _ : state) {
    std::vector<double> ratios;
    Spent by_pread, by_ring;
    for (size_t pair = 0; pair < kPairs; ++pair) {
      Spent spent[2];
      for (const size_t half : {pair % 2, 1 - pair % 2}) {
        spent[half] = ReadBatch(half == 0 ? *plain : *ring, layout, threads, 1000 * pair);
      }
      ratios.push_back(spent[0].seconds / spent[1].seconds);
      by_pread.cpu_seconds += spent[0].cpu_seconds;
      by_ring.cpu_seconds += spent[1].cpu_seconds;
    }
    std::ranges::sort(ratios);
    state.counters["speed"] = ratios[kPairs / 2];
    state.counters["lower"] = ratios[kPairs / 4];
    state.counters["upper"] = ratios[kPairs - 1 - kPairs / 4];
    state.counters["cpu"] = by_ring.cpu_seconds / by_pread.cpu_seconds;
  }
}
BENCHMARK(RingsOverPread)->ArgsProduct({{0, 1, 2, 3, 4}, {1, 4}})->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace cachalot
