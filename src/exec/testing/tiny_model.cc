#include "exec/testing/tiny_model.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "model/testing/gguf_builder.h"

namespace cachalot::exec {
namespace {

uint64_t Fnv1a(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

// The f16 nearest to zero's side; what is below the least normal f16 becomes that.
uint16_t TruncatedHalf(float value) {
  constexpr float kLeastNormal = 0x1p-14f;
  if (std::abs(value) < kLeastNormal) value = std::copysign(kLeastNormal, value);
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = ((bits >> 23) & 0xff) - 127 + 15;
  return static_cast<uint16_t>(((bits >> 16) & 0x8000) | (exponent << 10) | ((bits >> 13) & 0x3ff));
}

class Writer {
 public:
  explicit Writer(const TinyModelSpec& spec) : spec_(spec) {}

  std::string Write() {
    Metadata();
    Matrix("token_embd.weight", spec_.width, spec_.vocabulary, 1.0f);
    for (uint32_t l = 0; l < spec_.layers; ++l) Layer("blk." + std::to_string(l) + ".");
    Vector("output_norm.weight", spec_.width, 1.0f, 0.1f);
    if (!spec_.tied) Matrix("output.weight", spec_.width, spec_.vocabulary, MatrixScale(spec_.width));
    return builder_.Build();
  }

 private:
  static float MatrixScale(uint32_t columns) { return 1.7f / std::sqrt(static_cast<float>(columns)); }

  void Metadata() {
    const std::string a = spec_.architecture + ".";
    builder_.SetString("general.architecture", spec_.architecture);
    builder_.SetUInt(a + "block_count", spec_.layers);
    builder_.SetUInt(a + "context_length", spec_.context);
    builder_.SetUInt(a + "embedding_length", spec_.width);
    builder_.SetUInt(a + "feed_forward_length", spec_.ffn_width);
    builder_.SetUInt(a + "attention.head_count", spec_.heads);
    builder_.SetUInt(a + "attention.head_count_kv", spec_.kv_heads);
    builder_.SetUInt(a + "attention.key_length", spec_.head_dim);
    builder_.SetUInt(a + "attention.value_length", spec_.head_dim);
    builder_.SetUInt(a + "rope.dimension_count", spec_.head_dim);
    builder_.SetFloat(a + "rope.freq_base", spec_.architecture == "gemma3" ? 1e6f : 1e4f);
    builder_.SetFloat(a + "attention.layer_norm_rms_epsilon", 1e-6f);
    if (spec_.architecture == "gemma3") builder_.SetUInt(a + "attention.sliding_window", spec_.window);
  }

  void Layer(const std::string& prefix) {
    const uint32_t q = spec_.heads * spec_.head_dim, kv = spec_.kv_heads * spec_.head_dim;
    Vector(prefix + "attn_norm.weight", spec_.width, 1.0f, 0.1f);
    Matrix(prefix + "attn_q.weight", spec_.width, q, MatrixScale(spec_.width));
    Matrix(prefix + "attn_k.weight", spec_.width, kv, MatrixScale(spec_.width));
    Matrix(prefix + "attn_v.weight", spec_.width, kv, MatrixScale(spec_.width));
    Matrix(prefix + "attn_output.weight", q, spec_.width, MatrixScale(q));
    Vector(prefix + "ffn_norm.weight", spec_.width, 1.0f, 0.1f);
    Matrix(prefix + "ffn_gate.weight", spec_.width, spec_.ffn_width, MatrixScale(spec_.width));
    Matrix(prefix + "ffn_up.weight", spec_.width, spec_.ffn_width, MatrixScale(spec_.width));
    Matrix(prefix + "ffn_down.weight", spec_.ffn_width, spec_.width, MatrixScale(spec_.ffn_width));
    if (spec_.architecture == "qwen2") {
      Vector(prefix + "attn_q.bias", q, 0.0f, 0.1f);
      Vector(prefix + "attn_k.bias", kv, 0.0f, 0.1f);
      Vector(prefix + "attn_v.bias", kv, 0.0f, 0.1f);
    }
    if (spec_.architecture == "gemma3") {
      Vector(prefix + "attn_q_norm.weight", spec_.head_dim, 1.0f, 0.1f);
      Vector(prefix + "attn_k_norm.weight", spec_.head_dim, 1.0f, 0.1f);
      Vector(prefix + "post_attention_norm.weight", spec_.width, 1.0f, 0.1f);
      Vector(prefix + "post_ffw_norm.weight", spec_.width, 1.0f, 0.1f);
    }
  }

  SplitMix64 RandomOf(const std::string& name) const { return SplitMix64(spec_.seed + Fnv1a(name)); }
  static float Symmetric(SplitMix64& random) {
    return static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f;  // [-1, 1)
  }

  void Vector(const std::string& name, uint32_t count, float center, float spread) {
    SplitMix64 random = RandomOf(name);
    std::vector<float> values(count);
    for (float& v : values) v = center + spread * Symmetric(random);
    builder_.AddF32(name, {count}, values);
  }

  void Matrix(const std::string& name, uint32_t columns, uint32_t rows, float scale) {
    SplitMix64 random = RandomOf(name);
    const TensorTypeInfo& info = InfoOf(spec_.type);
    const uint64_t count = uint64_t{columns} * rows;
    std::string bytes(count / info.block_values * info.block_bytes, '\0');
    for (uint64_t block = 0; block < count / info.block_values; ++block) {
      WriteBlock(bytes.data() + block * info.block_bytes, info, scale, random);
    }
    builder_.AddTensor(name, spec_.type, {columns, rows}, bytes);
  }

  // A float, or a quantised block of random bits whose scales give weights of about `scale`.
  static void WriteBlock(char* to, const TensorTypeInfo& info, float scale, SplitMix64& random) {
    const auto put_half = [&](uint32_t offset, float value) {
      const uint16_t bits = TruncatedHalf(value);
      std::memcpy(to + offset, &bits, sizeof(bits));
    };
    if (info.type == TensorType::kF32 || info.type == TensorType::kF16 || info.type == TensorType::kBF16) {
      const float value = scale * Symmetric(random);
      const auto brain = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      if (info.type == TensorType::kF32) std::memcpy(to, &value, sizeof(value));
      if (info.type == TensorType::kBF16) std::memcpy(to, &brain, sizeof(brain));
      if (info.type == TensorType::kF16) put_half(0, value);
      return;
    }
    for (uint32_t i = 0; i < info.block_bytes; ++i) to[i] = static_cast<char>(random());
    const float jitter = 1.0f + 0.5f * Symmetric(random);
    switch (info.type) {
      case TensorType::kQ4_0: put_half(0, scale / 8 * jitter); break;
      case TensorType::kQ5_0: put_half(0, scale / 16 * jitter); break;
      case TensorType::kQ8_0: put_half(0, scale / 128 * jitter); break;
      case TensorType::kQ4_1:
        put_half(0, scale / 8 * jitter);
        put_half(2, -scale * jitter);
        break;
      case TensorType::kQ5_1:
        put_half(0, scale / 16 * jitter);
        put_half(2, -scale * jitter);
        break;
      case TensorType::kQ4_K:
        put_half(0, scale / 8 / 32 * jitter);
        put_half(2, scale / 32 * jitter);
        break;
      case TensorType::kQ5_K:
        put_half(0, scale / 16 / 32 * jitter);
        put_half(2, scale / 32 * jitter);
        break;
      default: put_half(208, scale / 32 / 64 * jitter); break;  // Q6_K
    }
  }

  const TinyModelSpec& spec_;
  model::GgufBuilder builder_;
};

}  // namespace

std::string MakeTinyModel(const TinyModelSpec& spec) { return Writer(spec).Write(); }

}  // namespace cachalot::exec
