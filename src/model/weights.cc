#include "model/weights.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/gguf.h"
#include "model/gguf_parser.h"
#include "model/model_spec.h"

namespace cachalot::model {
namespace {

// Finds tensors by name and remembers which were asked for.
class Binder {
 public:
  explicit Binder(const GgufFile& file) : file_(file), used_(file.tensors().size(), false) {}

  // A matrix of any supported type. Sets `*out`.
  Status Matrix(const std::string& name, uint64_t columns, uint64_t rows, const GgufTensor** out) {
    return Bind(name, {columns, rows}, out);
  }

  // A norm or a bias. Files hold these in F32, whatever the type of the matrices, and nothing else is accepted: no
  // converter writes another type, and conversion would give this one kind of tensor an owner of its own.
  Status Vector(const std::string& name, uint64_t size, const GgufTensor** out) {
    CACHALOT_RETURN_IF_ERROR(Bind(name, {size}, out));
    if ((*out)->type == TensorType::kF32) return OkStatus();
    return Error(name, fmt::format("is {}, expected F32 for a norm or bias", InfoOf((*out)->type).name));
  }

  // A tensor that nobody asked for means that the model computes something that we would leave out.
  Status CheckAllUsed(const ModelSpec& spec) const {
    for (size_t i = 0; i < used_.size(); ++i) {
      const std::string_view name = file_.tensors()[i].name;
      if (used_[i] || (spec.architecture == "llama" && name == kRopeFactorsTensor)) continue;
      return Error(name, fmt::format("is not part of architecture '{}' as it is supported", spec.architecture));
    }
    return OkStatus();
  }

 private:
  Status Error(std::string_view name, const std::string& what) const {
    return Invalid(fmt::format("{}: tensor {} {}", file_.name(), QuoteName(name), what));
  }

  Status Bind(const std::string& name, const std::vector<uint64_t>& shape, const GgufTensor** out) {
    *out = file_.FindTensor(name);
    if (*out == nullptr)
      return Error(name, fmt::format("is missing, expected with shape [{}]", fmt::join(shape, ", ")));
    used_[static_cast<size_t>(*out - file_.tensors().data())] = true;
    if ((*out)->shape == shape) return OkStatus();
    return Error(
        name, fmt::format("has the shape [{}], expected [{}]", fmt::join((*out)->shape, ", "), fmt::join(shape, ", ")));
  }

  const GgufFile& file_;
  std::vector<bool> used_;
};

Status BindLayer(const ModelSpec& spec, uint32_t index, Binder* binder, LayerWeights* layer) {
  const std::string prefix = fmt::format("blk.{}.", index);
  const uint64_t q_width = uint64_t{spec.heads} * spec.head_dim;
  const uint64_t kv_width = uint64_t{spec.kv_heads} * spec.head_dim;
  struct Role {
    const char* name;
    uint64_t columns;
    uint64_t rows;  // 0: a norm or bias
    const GgufTensor** out;
    bool present = true;
  };
  const Role roles[] = {
      {"attn_norm.weight", spec.width, 0, &layer->attention_norm},
      {"attn_q.weight", spec.width, q_width, &layer->q},
      {"attn_k.weight", spec.width, kv_width, &layer->k},
      {"attn_v.weight", spec.width, kv_width, &layer->v},
      {"attn_q.bias", q_width, 0, &layer->q_bias, spec.qkv_bias},
      {"attn_k.bias", kv_width, 0, &layer->k_bias, spec.qkv_bias},
      {"attn_v.bias", kv_width, 0, &layer->v_bias, spec.qkv_bias},
      {"attn_q_norm.weight", spec.head_dim, 0, &layer->q_norm, spec.qk_norm},
      {"attn_k_norm.weight", spec.head_dim, 0, &layer->k_norm, spec.qk_norm},
      {"attn_output.weight", q_width, spec.width, &layer->o},
      {"post_attention_norm.weight", spec.width, 0, &layer->attention_post_norm, spec.post_norms},
      {"ffn_norm.weight", spec.width, 0, &layer->ffn_norm},
      {"ffn_gate.weight", spec.width, spec.ffn_width, &layer->gate},
      {"ffn_up.weight", spec.width, spec.ffn_width, &layer->up},
      {"ffn_down.weight", spec.ffn_width, spec.width, &layer->down},
      {"post_ffw_norm.weight", spec.width, 0, &layer->ffn_post_norm, spec.post_norms},
  };
  for (const Role& role : roles) {
    if (!role.present) continue;
    CACHALOT_RETURN_IF_ERROR(role.rows == 0 ? binder->Vector(prefix + role.name, role.columns, role.out)
                                            : binder->Matrix(prefix + role.name, role.columns, role.rows, role.out));
  }
  return OkStatus();
}

}  // namespace

Result<Weights> BindWeights(const GgufFile& file, const ModelSpec& spec) {
  Weights weights;
  Binder binder(file);
  CACHALOT_RETURN_IF_ERROR(binder.Matrix("token_embd.weight", spec.width, spec.vocabulary, &weights.embedding));
  CACHALOT_RETURN_IF_ERROR(binder.Vector("output_norm.weight", spec.width, &weights.output_norm));
  weights.output = weights.embedding;
  if (!spec.tied_output) {
    CACHALOT_RETURN_IF_ERROR(binder.Matrix("output.weight", spec.width, spec.vocabulary, &weights.output));
  }
  weights.layers.resize(spec.layers);
  for (uint32_t i = 0; i < spec.layers; ++i) {
    CACHALOT_RETURN_IF_ERROR(BindLayer(spec, i, &binder, &weights.layers[i]));
  }
  CACHALOT_RETURN_IF_ERROR(binder.CheckAllUsed(spec));
  return weights;
}

}  // namespace cachalot::model
