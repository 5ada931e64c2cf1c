// Weights binds a ModelSpec to the tensors of its file, by role, with every shape checked.
// Threads:   immutable; any thread may read.
// Ownership: views into the GgufFile, which must outlive it.
// Invariant: each tensor that the spec requires is present with exactly the shape it requires.
// Cost:      binding is linear in the number of tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace cachalot::model {

class GgufFile;
struct GgufTensor;
struct ModelSpec;

// Null pointers mark tensors that the architecture does not have. Matrices are [columns, rows] in GGUF order:
// out[rows] = W x[columns].
struct LayerWeights {
  const GgufTensor* attention_norm = nullptr;       // [width]
  const GgufTensor* q = nullptr;                    // [width, heads*head_dim]
  const GgufTensor* k = nullptr;                    // [width, kv_heads*head_dim]
  const GgufTensor* v = nullptr;                    // [width, kv_heads*head_dim]
  const GgufTensor* q_bias = nullptr;               // [heads*head_dim]
  const GgufTensor* k_bias = nullptr;               // [kv_heads*head_dim]
  const GgufTensor* v_bias = nullptr;               // [kv_heads*head_dim]
  const GgufTensor* q_norm = nullptr;               // [head_dim]
  const GgufTensor* k_norm = nullptr;               // [head_dim]
  const GgufTensor* o = nullptr;                    // [heads*head_dim, width]
  const GgufTensor* attention_post_norm = nullptr;  // [width]
  const GgufTensor* ffn_norm = nullptr;             // [width]
  const GgufTensor* gate = nullptr;                 // [width, ffn_width]
  const GgufTensor* up = nullptr;                   // [width, ffn_width]
  const GgufTensor* down = nullptr;                 // [ffn_width, width]
  const GgufTensor* ffn_post_norm = nullptr;        // [width]
};

struct Weights {
  const GgufTensor* embedding = nullptr;    // [width, vocabulary]
  const GgufTensor* output_norm = nullptr;  // [width]
  const GgufTensor* output = nullptr;       // [width, vocabulary]; the embedding where tied
  std::vector<LayerWeights> layers;
};

// kInvalid naming the tensor that is missing, has a wrong shape (found, expected), or whose norm/bias is not F32.
Result<Weights> BindWeights(const GgufFile& file, const ModelSpec& spec);

}  // namespace cachalot::model
