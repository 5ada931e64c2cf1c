// TinyModel writes small GGUF files with seeded random weights: any architecture, shape and tensor type, for tests.
// Threads:   pure functions.
// Ownership: the result owns its bytes.
// Invariant: the same spec gives the same bytes everywhere; tools/make_tiny_logit_cases.py forms the same F32 weights.
// Cost:      linear in the weights.
//
// Weight i of the tensor named N: u = SplitMix64(seed + FNV-1a-64(N)), output i, mapped to [-1, 1) as
// (output >> 40) * 2^-23 - 1, times a scale: matrices 1.7 / sqrt(columns), embeddings 1, biases 0.1; norms 1 + 0.1 u.
#pragma once

#include <cstdint>
#include <string>

#include "base/tensor_type.h"

namespace cachalot::exec {

struct TinyModelSpec {
  std::string architecture = "llama";  // or "qwen2", "gemma3"
  TensorType type = TensorType::kF32;  // of the matrices; norms and biases are F32
  uint32_t layers = 3;
  uint32_t width = 64;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 16;
  uint32_t ffn_width = 96;
  uint32_t vocabulary = 211;
  uint32_t context = 2048;
  uint32_t window = 32;  // of gemma3's sliding layers
  bool tied = true;      // the output is the embedding
  uint64_t seed = 1;
};

// The bytes of a GGUF file without a tokenizer.
std::string MakeTinyModel(const TinyModelSpec& spec);

}  // namespace cachalot::exec
