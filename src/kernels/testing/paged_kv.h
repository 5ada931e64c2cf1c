// PagedKv is one layer's KV of one sequence in scattered slots, everything that no row may see filled with NaNs.
// Threads:   none.
// Ownership: owns arena and page table; view() borrows them.
// Invariant: blocks wholly before `first_kept` have no slot.
// Cost:      for tests and benches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/page_view.h"
#include "kernels/attention.h"

namespace cachalot::kernels {

struct PagedKvOptions {
  AttentionShape shape;
  KvType type = KvType::kF16;
  uint32_t block_tokens = 16;
  uint64_t tokens = 0;
  uint64_t first_kept = 0;  // the first position that is stored
  bool scattered = true;
};

class PagedKv {
 public:
  explicit PagedKv(const PagedKvOptions& options);

  const PageView& view() const { return view_; }
  // Stores K and V of the kept positions, [tokens][kv_heads*head_dim] each, by `kernels`.
  void Store(const AttentionKernels& kernels, const std::vector<float>& k, const std::vector<float>& v);

 private:
  PagedKvOptions options_;
  std::vector<std::byte> arena_;
  std::vector<uint32_t> slots_;
  PageView view_;
};

// Normal-ish values in about [-2, 2], the same for a seed on every machine.
std::vector<float> TestValues(uint64_t seed, uint64_t count);

}  // namespace cachalot::kernels
