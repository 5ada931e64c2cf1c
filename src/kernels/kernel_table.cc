#include "kernels/kernel_table.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <string>

namespace cachalot::kernels {
namespace {

KernelTable Assemble(const char* isa, const MatmulKernels& matmul, const AttentionKernels& attention,
                     const RowopKernels& rowops, const SamplingKernels& sampling) {
  KernelTable table;
  table.isa = isa;
  table.quantize_rows = matmul.quantize_rows;
  table.matmul = matmul.matmul;
  table.store_kv = attention.store_kv;
  table.attend = attention.attend;
  table.fold_splits = attention.fold_splits;
  table.rms_norm = rowops.rms_norm;
  table.add = rowops.add;
  table.scale = rowops.scale;
  table.silu_mul = rowops.silu_mul;
  table.gelu_tanh_mul = rowops.gelu_tanh_mul;
  table.rope_interleaved = rowops.rope_interleaved;
  table.rope_halves = rowops.rope_halves;
  table.argmax = sampling.argmax;
  table.log_sum_exp = sampling.log_sum_exp;
  table.exp_shifted = sampling.exp_shifted;
  return table;
}

#if defined(__x86_64__)
// A feature that clang 14's __builtin_cpu_supports has no name for.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

// Every table of this build, best first, and those of them that the machine can run.
struct Tables {
  static constexpr size_t kMost = 3;
  KernelTable built[kMost];
  size_t built_count = 0;
  const KernelTable* runnable[kMost] = {};
  size_t runnable_count = 0;

  Tables() {
#if defined(__x86_64__)
    // These also ask whether the system saves the wide registers.
    const bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasF16c() && __builtin_cpu_supports("bmi2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512vnni");
    Add(Assemble("avx512", MatmulAvx512(), AttentionAvx512(), RowopsAvx512(), SamplingAvx512()), avx512);
    Add(Assemble("avx2", MatmulAvx2(), AttentionAvx2(), RowopsAvx2(), SamplingAvx2()), avx2);
#endif
    Add(Assemble("scalar", MatmulScalar(), AttentionScalar(), RowopsScalar(), SamplingScalar()), true);
  }

  void Add(const KernelTable& table, bool can_run) {
    built[built_count] = table;
    if (can_run) runnable[runnable_count++] = &built[built_count];
    ++built_count;
  }
};

const Tables& AllTables() {
  static const Tables tables;
  return tables;
}

std::string NamesOf(std::span<const KernelTable* const> tables) {
  std::string names;
  for (const KernelTable* table : tables) names += (names.empty() ? "" : ", ") + std::string(table->isa);
  return names;
}

}  // namespace

std::span<const KernelTable* const> RunnableTables() {
  const Tables& all = AllTables();
  return {all.runnable, all.runnable_count};
}

Result<const KernelTable*> SelectTable(std::string_view isa) {
  const auto runnable = RunnableTables();
  if (isa == "auto") return runnable.front();
  for (const KernelTable* table : runnable) {
    if (isa == table->isa) return table;
  }
  const Tables& all = AllTables();
  for (size_t i = 0; i < all.built_count; ++i) {
    if (isa == all.built[i].isa) {
      return Invalid("instruction set " + std::string(isa) + ": this machine lacks it; it can run " +
                     NamesOf(runnable));
    }
  }
  return Invalid("instruction set \"" + std::string(isa) + "\": unknown; expected auto or one of " + NamesOf(runnable));
}

}  // namespace cachalot::kernels
