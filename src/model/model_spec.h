// ModelSpec describes a decoder-only transformer independently of the file it came from: what exec needs to run it.
// Threads:   plain data.
// Ownership: owns its strings.
// Invariant: every field was checked by ReadModelSpec (no zero dimension, heads divide, window pattern complete).
// Cost:      ReadModelSpec is linear in the number of layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace cachalot::model {

class GgufFile;

enum class Activation : uint8_t { kSilu = 0, kGeluTanh = 1 };
// Which elements of a head form a rotated pair: (2i, 2i+1), or (i, i + half).
enum class RopePairs : uint8_t { kInterleaved = 0, kHalves = 1 };

// The tensor that carries RopeSpec::factors in llama files.
inline constexpr std::string_view kRopeFactorsTensor = "rope_freqs.weight";

// Angle of pair i at position p: p * position_scale * theta^(-2i/dims) / factors[i] (1 where factors is empty).
// Both are evaluated in f64 once per position table. Llama 3.1 scaling arrives as factors
// (tensor rope_freqs.weight, or computed from the metadata), linear scaling as position_scale.
struct RopeSpec {
  double theta = 10000.0;
  double position_scale = 1.0;
  uint32_t dims = 0;  // rotated elements of a head; the rest pass through
  std::vector<float> factors;
  bool operator==(const RopeSpec&) const = default;
};

struct LayerSpec {
  uint32_t window = 0;  // 0: full attention; else this layer sees the last `window` positions, its own included
  uint32_t rope = 0;    // index into ModelSpec::ropes
};

struct ModelSpec {
  std::string architecture;  // general.architecture, e.g. "llama"
  std::string name;          // general.name, may be empty
  uint32_t layers = 0;
  uint32_t width = 0;  // embedding length
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t ffn_width = 0;
  uint32_t vocabulary = 0;
  uint32_t context_tokens = 0;  // trained context
  float norm_epsilon = 0;
  float attention_scale = 0;  // multiplies q.k
  float embedding_scale = 1;  // multiplies embedding rows (Gemma: sqrt(width), rounded as the reference rounds it)
  Activation activation = Activation::kSilu;
  RopePairs rope_pairs = RopePairs::kInterleaved;
  bool qkv_bias = false;     // qwen2, and llama files that carry biases
  bool qk_norm = false;      // gemma3: RMS norm on each head of Q and K
  bool post_norms = false;   // gemma3: norms after attention and after the feed-forward
  bool tied_output = false;  // the output matrix is the embedding matrix
  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layer;  // one per layer
};

// kInvalid when the architecture is not supported (named, with those that are), a key is missing or out of range.
Result<ModelSpec> ReadModelSpec(const GgufFile& file);

}  // namespace cachalot::model
