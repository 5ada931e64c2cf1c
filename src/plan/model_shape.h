// ModelShape is what of a model matters for memory and time, wherever it was read from.
// Threads:   plain data and pure functions.
// Ownership: owns its strings.
// Invariant: KV of one token is at most kMaxTokenBytes, so that no session of a known context overflows 64 bits.
// Cost:      linear in the number of layers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/kv_layout.h"
#include "base/status.h"

namespace cachalot::model {
class GgufFile;
struct HfConfig;
}  // namespace cachalot::model

namespace cachalot::plan {

inline constexpr uint64_t kMaxTokenBytes = uint64_t{1} << 26;
inline constexpr uint64_t kMaxTokens = uint64_t{1} << 31;  // of one sequence

// How many weights there are of each kind.
struct WeightCounts {
  uint64_t embeddings = 0;      // looked up
  uint64_t output = 0;          // multiplied; stored only where it is not tied to the embedding
  uint64_t attention = 0;       // and recurrent layers
  uint64_t feed_forward = 0;    // that every token uses
  uint64_t experts = 0;         // of all routed experts
  uint64_t chosen_experts = 0;  // of those that one token uses
  bool tied_output = false;

  uint64_t stored() const { return embeddings + (tied_output ? 0 : output) + attention + feed_forward + experts; }
  // That one token is multiplied with.
  uint64_t used() const { return output + attention + feed_forward + chosen_experts; }
};

struct ModelShape {
  std::string name;
  std::string architecture;
  std::string source;
  uint32_t layers = 0;
  uint32_t width = 0;
  uint32_t vocabulary = 0;
  uint32_t query_heads = 0;             // of the widest attention; 0 where there is none
  uint64_t context_tokens = 0;          // 0: no limit
  std::vector<LayerKvShape> kv_layers;  // those that keep KV
  uint32_t attention_layers = 0;        // those that read any, their own or another layer's
  uint64_t state_values = 0;            // of recurrent layers, per sequence: f32
  uint64_t conv_values = 0;             // and 16 bits
  // Multiplications with one visible position, over the layers of each window (0: full attention), as a prompt is
  // computed.
  std::map<uint32_t, uint64_t> position_products;
  uint64_t inner_values = 0;  // the most that one token has between two matrices
  WeightCounts weights;
  std::string quantization;                 // of the published weights, as its config names it
  std::optional<uint64_t> file_bytes = {};  // of the weights, where the file itself was read
  std::vector<std::string> ignored_keys;    // of the config (model/hf_config.h)
};

Result<ModelShape> ShapeOf(const model::HfConfig& config, const std::string& name, const std::string& source);
// Of an architecture that this program runs (model/model_spec.h).
Result<ModelShape> ShapeOf(const model::GgufFile& file);

// What is said where the config has keys that its architecture does not; empty: nothing.
std::string IgnoredKeysText(const ModelShape& shape);

// The KV of one sequence as base lays it out. Only where there is a layer that keeps KV.
KvShape KvShapeOf(const ModelShape& shape, uint32_t block_tokens);

}  // namespace cachalot::plan
