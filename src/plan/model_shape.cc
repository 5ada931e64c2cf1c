#include "plan/model_shape.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "model/gguf.h"
#include "model/hf_config.h"
#include "model/model_spec.h"

namespace cachalot::plan {
namespace {

Status CheckTokenBytes(const ModelShape& shape) {
  const uint64_t bytes = KvBytesPerToken({.layers = shape.kv_layers, .type = KvType::kF32});
  if (bytes <= kMaxTokenBytes) return OkStatus();
  return Invalid(fmt::format("{}: KV of one token would have {} in f32, expected at most {}", shape.name,
                             FormatBytes(bytes), FormatBytes(kMaxTokenBytes)));
}

void AddAttention(const model::HfAttention& attention, ModelShape& shape) {
  ++shape.attention_layers;
  shape.query_heads = std::max(shape.query_heads, attention.query_heads);
  if (attention.owns_kv) shape.kv_layers.push_back(attention.kv);
  shape.position_products[attention.kv.window] +=
      uint64_t{attention.query_heads} * (attention.score_dim + attention.value_dim);
  shape.weights.attention += attention.weights;
  const uint64_t values = uint64_t{attention.query_heads} * (attention.score_dim + attention.value_dim) +
                          uint64_t{attention.kv.kv_heads} * (attention.kv.k_dim + attention.kv.v_dim);
  shape.inner_values = std::max(shape.inner_values, values);
}

void AddLayer(const model::HfLayer& layer, ModelShape& shape) {
  if (layer.attention) AddAttention(*layer.attention, shape);
  if (layer.recurrence) {
    shape.state_values += layer.recurrence->state_values;
    shape.conv_values += layer.recurrence->conv_values;
    shape.weights.attention += layer.recurrence->weights;
  }
  if (layer.feed_forward) {
    shape.weights.feed_forward += layer.feed_forward->weights;
    shape.weights.experts += layer.feed_forward->expert_weights;
    shape.weights.chosen_experts += layer.feed_forward->chosen_expert_weights;
    shape.inner_values = std::max(shape.inner_values, layer.feed_forward->inner_values);
  }
}

}  // namespace

std::string IgnoredKeysText(const ModelShape& shape) {
  if (shape.ignored_keys.empty()) return "";
  return fmt::format("{}: its config has {}, which the architecture {} does not read: KV is counted without",
                     shape.name, fmt::join(shape.ignored_keys, ", "), shape.architecture);
}

Result<ModelShape> ShapeOf(const model::HfConfig& config, const std::string& name, const std::string& source) {
  ModelShape shape;
  shape.name = name;
  shape.source = source;
  shape.architecture = config.architecture;
  shape.layers = static_cast<uint32_t>(config.layers.size());
  shape.width = config.width;
  shape.vocabulary = config.vocabulary;
  shape.context_tokens = config.context_tokens;
  shape.ignored_keys = config.ignored_keys;
  shape.quantization = config.quantization;
  shape.weights.embeddings = config.embedding_weights;
  shape.weights.output = config.output_weights;
  shape.weights.tied_output = config.tied_output;
  shape.weights.feed_forward = config.outer_weights;
  for (const model::HfLayer& layer : config.layers) AddLayer(layer, shape);
  CACHALOT_RETURN_IF_ERROR(CheckTokenBytes(shape));
  return shape;
}

Result<ModelShape> ShapeOf(const model::GgufFile& file) {
  CACHALOT_ASSIGN_OR_RETURN(const model::ModelSpec spec, model::ReadModelSpec(file));
  ModelShape shape;
  shape.name = spec.name.empty() ? file.name() : spec.name;
  shape.source = file.name();
  shape.architecture = spec.architecture;
  shape.layers = spec.layers;
  shape.width = spec.width;
  shape.vocabulary = spec.vocabulary;
  shape.context_tokens = spec.context_tokens;
  shape.weights.embeddings = shape.weights.output = uint64_t{spec.vocabulary} * spec.width;
  shape.weights.tied_output = spec.tied_output;
  model::HfLayer layer;
  layer.attention = {.query_heads = spec.heads,
                     .kv = {.kv_heads = spec.kv_heads, .k_dim = spec.head_dim, .v_dim = spec.head_dim},
                     .score_dim = spec.head_dim,
                     .value_dim = spec.head_dim,
                     .weights = 2 * uint64_t{spec.width} * spec.head_dim * (spec.heads + spec.kv_heads)};
  layer.feed_forward = {.weights = 3 * uint64_t{spec.width} * spec.ffn_width,
                        .inner_values = 2 * uint64_t{spec.ffn_width}};
  for (const model::LayerSpec& own : spec.layer) {
    layer.attention->kv.window = own.window;
    AddLayer(layer, shape);
  }
  uint64_t bytes = 0;
  for (const model::GgufTensor& tensor : file.tensors()) bytes += tensor.bytes.size();
  shape.file_bytes = bytes;
  CACHALOT_RETURN_IF_ERROR(CheckTokenBytes(shape));
  return shape;
}

KvShape KvShapeOf(const ModelShape& shape, uint32_t block_tokens) {
  return {.layers = shape.kv_layers, .type = KvType::kF16, .block_tokens = block_tokens};
}

}  // namespace cachalot::plan
