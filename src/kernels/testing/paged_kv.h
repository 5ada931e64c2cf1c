// PagedKv is the KV of one sequence in scattered slots, everything that no row may see filled with NaNs.
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
  uint32_t layers = 1;
  bool scattered = true;  // each slot holds a block of all layers; else layer after layer lies in order
};

class PagedKv {
 public:
  explicit PagedKv(const PagedKvOptions& options);

  PageView view(uint32_t layer = 0) const;
  // Stores K and V of the kept positions, [tokens][kv_heads*head_dim] each, in all layers by `kernels`.
  void Store(const AttentionKernels& kernels, const std::vector<float>& k, const std::vector<float>& v);

 private:
  PagedKvOptions options_;
  std::vector<std::byte> arena_;
  std::vector<uint32_t> slots_;
  PageView view_;         // of layer 0
  uint64_t layer_bytes_;  // from one layer to the next
};

// Normal-ish values in about [-2, 2], the same for a seed on every machine.
std::vector<float> TestValues(uint64_t seed, uint64_t count);

}  // namespace cachalot::kernels
