// PlainAttention follows the arithmetic of attention.h one operation at a time, over plain arrays.
// Threads:   pure.
// Ownership: none.
// Invariant: what it computes is the definition of the kernels' bits; ExactAttention is what they approximate.
// Cost:      for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "base/kv_layout.h"
#include "kernels/attention.h"

namespace cachalot::kernels {

// One query head of one row. k, v [tokens][kv_heads*head_dim] are rounded to `type` first.
struct PlainQuery {
  AttentionShape shape;
  KvType type = KvType::kF16;
  const float* q = nullptr;  // [head_dim]
  uint64_t position = 0;
  uint32_t kv_head = 0;
};

std::vector<float> PlainAttention(const PlainQuery& query, const std::vector<float>& k, const std::vector<float>& v);
std::vector<double> ExactAttention(const PlainQuery& query, const std::vector<float>& k, const std::vector<float>& v);

// x after a trip through `type`.
float RoundTrip(KvType type, float x);

}  // namespace cachalot::kernels
