// Runs each key kernel once on each instruction set named on the command line, and prints its name before: what
// bench/check_instructions.py counts instructions of. The work of a case is all that CountedCase calls.
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/packed_matrix.h"
#include "kernels/testing/paged_kv.h"
#include "kernels/testing/random_blocks.h"

namespace {

using namespace cachalot;           // NOLINT: a program of one file
using namespace cachalot::kernels;  // NOLINT

}  // namespace

// Under this very name in the symbol table.
extern "C" [[gnu::noinline]] void CachalotCountedCase(const std::function<void()>& work) {
  work();
  __asm__ volatile("");  // no tail call: the function ends after the work
}

namespace {

void Count(const KernelTable& table, const std::string& name, const std::function<void()>& work) {
  std::printf("%s %s\n", table.isa, name.c_str());
  std::fflush(stdout);
  CachalotCountedCase(work);
}

void CountMatmul(const KernelTable& table, TensorType type, uint32_t rows) {
  constexpr uint32_t kColumns = 512, kOut = 64;
  ThreadPool pool(1);
  const auto blocks = testing::RandomBlocks(type, uint64_t{kOut} * kColumns, 1);
  const Result<PackedMatrix> matrix = PackedMatrix::Pack(type, kOut, kColumns, blocks, pool);
  const std::vector<float> x = testing::RandomFloats(uint64_t{rows} * kColumns, 2);
  std::vector<int8_t> values(x.size());
  std::vector<float> scales(x.size() / kGroup);
  std::vector<int32_t> sums(x.size() / kGroup);
  const Activations activations{x.data(), {values.data(), scales.data(), sums.data()}, rows};
  table.quantize_rows(x.data(), rows, kColumns, activations.quantised);
  std::vector<float> out(uint64_t{rows} * kOut);
  Count(table, "matmul " + std::string(InfoOf(type).name) + " rows " + std::to_string(rows),
        [&] { table.matmul(matrix->view(), activations, 0, matrix->panels(), out.data(), kOut); });
}

void CountAttention(const KernelTable& table, const std::string& name, uint64_t tokens, uint32_t rows) {
  const AttentionShape shape = {9, 3, 64, 0};
  const uint64_t kv_width = uint64_t{shape.kv_heads} * shape.head_dim;
  const uint64_t width = uint64_t{shape.heads} * shape.head_dim;
  PagedKv kv({.shape = shape, .tokens = tokens});
  kv.Store({table.store_kv, table.attend, table.fold_splits}, TestValues(1, tokens * kv_width),
           TestValues(2, tokens * kv_width));
  const std::vector<float> q = TestValues(3, rows * width);
  std::vector<float> out(rows * width);
  QueryRun run{q.data(), width, out.data(), width, tokens - rows, rows};
  run.pages = kv.view().pages;
  const AttendJob job{&run, 1, 0};
  Count(table, name, [&] { table.attend(shape, job, kv.view()); });
}

void CountRowops(const KernelTable& table) {
  constexpr uint32_t kVocabulary = 49152, kWidth = 576;
  const std::vector<float> logits = testing::RandomFloats(kVocabulary, 4);
  std::vector<float> out(kVocabulary);
  Count(table, "argmax", [&] { table.argmax(logits.data(), kVocabulary); });
  Count(table, "log_sum_exp", [&] { table.log_sum_exp(logits.data(), kVocabulary); });
  Count(table, "exp_shifted", [&] { table.exp_shifted(logits.data(), 3, 1, kVocabulary, out.data()); });
  Count(table, "rms_norm", [&] { table.rms_norm(logits.data(), logits.data(), 1e-5f, kWidth, out.data()); });
  Count(table, "silu_mul", [&] { table.silu_mul(logits.data(), logits.data(), kWidth, out.data()); });
  std::vector<int8_t> values(kWidth);
  std::vector<float> scales(kWidth / kGroup);
  std::vector<int32_t> sums(kWidth / kGroup);
  Count(table, "quantize_rows", [&] {
    table.quantize_rows(logits.data(), 1, kWidth, {values.data(), scales.data(), sums.data()});
  });
}

void CountPacking(const KernelTable& table) {
  ThreadPool pool(1);
  for (const TensorType type : {TensorType::kQ4_1, TensorType::kQ4_K, TensorType::kQ6_K}) {
    const auto blocks = testing::RandomBlocks(type, 16 * 512, 1);
    const std::string name = "pack " + std::string(InfoOf(type).name);
    Count(table, name, [&] { (void)PackedMatrix::Pack(type, 16, 512, blocks, pool); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* isa : std::span(argv, static_cast<size_t>(argc)).subspan(1)) {
    const Result<const KernelTable*> table = SelectTable(isa);
    if (!table.ok()) {
      std::fprintf(stderr, "%s\n", table.status().message().c_str());
      return 1;
    }
    for (const TensorType type : testing::kAllTypes) {
      for (const uint32_t rows : {1u, 32u}) CountMatmul(**table, type, rows);
    }
    CountAttention(**table, "attend decode 1024", 1024, 1);
    CountAttention(**table, "attend prefill 256", 256, 256);
    CountRowops(**table);
    if (std::string_view((*table)->isa) == "scalar") CountPacking(**table);
  }
  return 0;
}
