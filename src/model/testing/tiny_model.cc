#include "model/testing/tiny_model.h"

#include "base/hash.h"

namespace cachalot::model {
namespace {

// Adds seeded tensors; norms are around 1, so that activations keep their size.
class TensorAdder {
 public:
  TensorAdder(GgufBuilder* out, uint64_t seed) : out_(out), seed_(seed) {}

  void Matrix(const std::string& name, uint64_t columns, uint64_t rows) {
    out_->AddF32(name, {columns, rows}, SeededFloats(seed_, name, columns * rows));
  }
  void Norm(const std::string& name, uint64_t size) {
    std::vector<float> values = SeededFloats(seed_, name, size);
    for (float& value : values) value += 1.0f;
    out_->AddF32(name, {size}, values);
  }
  void Bias(const std::string& name, uint64_t size) { out_->AddF32(name, {size}, SeededFloats(seed_, name, size)); }

 private:
  GgufBuilder* out_;
  uint64_t seed_;
};

void AddMetadata(const TinyModelOptions& o, GgufBuilder* out) {
  const std::string prefix = o.architecture + ".";
  out->SetString("general.architecture", o.architecture);
  out->SetString("general.name", "tiny " + o.architecture);
  out->SetUInt(prefix + "block_count", o.layers);
  out->SetUInt(prefix + "context_length", o.context_tokens);
  out->SetUInt(prefix + "embedding_length", o.width);
  out->SetUInt(prefix + "feed_forward_length", o.ffn_width);
  out->SetUInt(prefix + "attention.head_count", o.heads);
  out->SetUInt(prefix + "attention.head_count_kv", o.kv_heads);
  out->SetUInt(prefix + "attention.key_length", o.head_dim);
  out->SetUInt(prefix + "attention.value_length", o.head_dim);
  out->SetFloat(prefix + "attention.layer_norm_rms_epsilon", 1e-5f);
  out->SetFloat(prefix + "rope.freq_base", 10000.0f);
  if (o.architecture == "gemma3") out->SetUInt(prefix + "attention.sliding_window", o.window);
}

void AddLayer(const TinyModelOptions& o, uint32_t layer, TensorAdder* add) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  const uint64_t q_width = uint64_t{o.heads} * o.head_dim;
  const uint64_t kv_width = uint64_t{o.kv_heads} * o.head_dim;
  add->Norm(prefix + "attn_norm.weight", o.width);
  add->Matrix(prefix + "attn_q.weight", o.width, q_width);
  add->Matrix(prefix + "attn_k.weight", o.width, kv_width);
  add->Matrix(prefix + "attn_v.weight", o.width, kv_width);
  add->Matrix(prefix + "attn_output.weight", q_width, o.width);
  add->Norm(prefix + "ffn_norm.weight", o.width);
  add->Matrix(prefix + "ffn_gate.weight", o.width, o.ffn_width);
  add->Matrix(prefix + "ffn_up.weight", o.width, o.ffn_width);
  add->Matrix(prefix + "ffn_down.weight", o.ffn_width, o.width);
  if (o.architecture == "qwen2") {
    add->Bias(prefix + "attn_q.bias", q_width);
    add->Bias(prefix + "attn_k.bias", kv_width);
    add->Bias(prefix + "attn_v.bias", kv_width);
  }
  if (o.architecture == "gemma3") {
    add->Norm(prefix + "attn_q_norm.weight", o.head_dim);
    add->Norm(prefix + "attn_k_norm.weight", o.head_dim);
    add->Norm(prefix + "post_attention_norm.weight", o.width);
    add->Norm(prefix + "post_ffw_norm.weight", o.width);
  }
}

}  // namespace

std::vector<float> SeededFloats(uint64_t seed, std::string_view name, uint64_t count) {
  const uint64_t stream = Hash64(name, seed);
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t bits = Hash64({reinterpret_cast<const char*>(&i), sizeof(i)}, stream);
    values[i] = static_cast<float>(bits >> 40) / static_cast<float>(1 << 24) - 0.5f;
  }
  return values;
}

GgufBuilder TinyModel(const TinyModelOptions& options) {
  GgufBuilder out;
  AddMetadata(options, &out);
  TensorAdder add(&out, options.seed);
  add.Matrix("token_embd.weight", options.width, options.vocabulary);
  for (uint32_t layer = 0; layer < options.layers; ++layer) AddLayer(options, layer, &add);
  add.Norm("output_norm.weight", options.width);
  if (!options.tied_output) add.Matrix("output.weight", options.width, options.vocabulary);
  return out;
}

}  // namespace cachalot::model
