// HfConfig is what memory and time depend on in the architecture that a Hugging Face config.json describes.
// Threads:   plain data; ParseHfConfig may be called from any thread.
// Ownership: owns its strings.
// Invariant: every size was checked against its limits, heads divide, and there is at least one layer.
// Cost:      linear in the text and in the number of layers.
//
// Weights are counted in matrices and embeddings; norms, biases and sinks are left out (less than 0.2 % of any model
// that this was compared with). Layers for multi-token prediction are not part of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kv_layout.h"
#include "base/status.h"

namespace cachalot::model {

struct HfAttention {
  uint32_t query_heads = 0;
  LayerKvShape kv;         // per token
  bool owns_kv = true;     // false: it reads the KV of an earlier layer and keeps none
  uint32_t score_dim = 0;  // of a query and key, per query head, as a prompt is computed
  uint32_t value_dim = 0;
  uint64_t weights = 0;
};

// Linear attention, a state-space model or a short convolution: what it keeps does not grow with the sequence.
struct HfRecurrence {
  uint64_t state_values = 0;  // kept in f32 where the model's own code does
  uint64_t conv_values = 0;   // the last inputs of its convolution, in the type of the activations
  uint64_t weights = 0;
};

struct HfFeedForward {
  uint64_t weights = 0;                // that every token uses: dense, shared experts, router
  uint64_t expert_weights = 0;         // of all routed experts
  uint64_t chosen_expert_weights = 0;  // of those that one token uses
  uint64_t inner_values = 0;           // that one token has between its matrices
};

struct HfLayer {
  std::optional<HfAttention> attention;
  std::optional<HfRecurrence> recurrence;
  std::optional<HfFeedForward> feed_forward;
};

struct HfConfig {
  std::string architecture;  // model_type
  uint32_t width = 0;        // hidden size
  uint32_t vocabulary = 0;
  uint64_t context_tokens = 0;
  uint64_t embedding_weights = 0;  // token and position embeddings: looked up, not multiplied
  uint64_t output_weights = 0;     // the output matrix
  uint64_t outer_weights = 0;      // of other matrices around the layers
  bool tied_output = false;        // the output is the token embedding, not stored again
  std::string quantization;        // quant_method of the published weights; empty when there is none
  std::vector<HfLayer> layers;
  // Keys of the config on which KV hangs elsewhere, but which this architecture does not have.
  std::vector<std::string> ignored_keys;
};

// Configs are a few KB; the largest of today have 60 KB.
inline constexpr uint64_t kMaxHfConfigBytes = 4 << 20;

// kInvalid, naming `name`, the key, what it is and what was expected. A model_type that is not known is refused rather
// than guessed at. A multimodal model is read as its text part.
Result<HfConfig> ParseHfConfig(std::string_view text, const std::string& name);
// "llama, mistral, ...", for messages.
std::string HfArchitectureNames();

}  // namespace cachalot::model
