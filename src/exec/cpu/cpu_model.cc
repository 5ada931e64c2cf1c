#include "exec/cpu/cpu_model.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/thread_pool.h"
#include "exec/numerics.h"
#include "kernels/dequantize.h"
#include "model/gguf.h"
#include "model/weights.h"

namespace cachalot::exec {
namespace {

KvShape KvShapeOf(const model::ModelSpec& spec, const CpuModelOptions& options) {
  KvShape shape;
  shape.type = options.reference ? KvType::kF32 : options.kv_type;
  shape.block_tokens = options.block_tokens;
  for (const model::LayerSpec& layer : spec.layer) {
    shape.layers.push_back({spec.kv_heads, spec.head_dim, spec.head_dim, layer.window});
  }
  return shape;
}

std::vector<float> ReadVector(const model::GgufTensor* tensor) {
  if (tensor == nullptr) return {};
  uint64_t count = 1;
  for (uint64_t extent : tensor->shape) count *= extent;
  std::vector<float> out(count);
  kernels::Dequantize(tensor->type, tensor->bytes.data(), count, out.data());
  return out;
}

}  // namespace

class CpuModel::Loader {
 public:
  Loader(const CpuModelOptions& options, ThreadPool& pool, const Progress& progress, uint64_t total_bytes)
      : options_(options), pool_(pool), progress_(progress), total_bytes_(std::max<uint64_t>(total_bytes, 1)) {}

  Status Load(const model::Weights& weights, CpuModel* model) {
    CACHALOT_RETURN_IF_ERROR(Pack(weights.embedding, &model->embedding_));
    if (!model->spec_.tied_output) CACHALOT_RETURN_IF_ERROR(Pack(weights.output, &model->output_));
    model->output_norm_ = ReadVector(weights.output_norm);
    model->layers_.resize(weights.layers.size());
    for (size_t i = 0; i < weights.layers.size(); ++i) {
      CACHALOT_RETURN_IF_ERROR(LoadLayer(weights.layers[i], &model->layers_[i]));
    }
    return OkStatus();
  }

 private:
  Status LoadLayer(const model::LayerWeights& from, CpuLayer* to) {
    to->attention_norm = ReadVector(from.attention_norm);
    to->q_norm = ReadVector(from.q_norm);
    to->k_norm = ReadVector(from.k_norm);
    to->attention_post_norm = ReadVector(from.attention_post_norm);
    to->ffn_norm = ReadVector(from.ffn_norm);
    to->ffn_post_norm = ReadVector(from.ffn_post_norm);
    to->q_bias = ReadVector(from.q_bias);
    to->k_bias = ReadVector(from.k_bias);
    to->v_bias = ReadVector(from.v_bias);
    const std::pair<const model::GgufTensor*, kernels::PackedMatrix*> matrices[] = {
        {from.q, &to->q},       {from.k, &to->k},   {from.v, &to->v},       {from.o, &to->o},
        {from.gate, &to->gate}, {from.up, &to->up}, {from.down, &to->down},
    };
    for (const auto& [tensor, matrix] : matrices) CACHALOT_RETURN_IF_ERROR(Pack(tensor, matrix));
    return OkStatus();
  }

  Status Pack(const model::GgufTensor* tensor, kernels::PackedMatrix* out) {
    const auto rows = static_cast<uint32_t>(tensor->shape[1]);
    const auto columns = static_cast<uint32_t>(tensor->shape[0]);
    auto packed = options_.reference
                      ? kernels::PackedMatrix::PackAsF32(tensor->type, rows, columns, tensor->bytes, pool_)
                      : kernels::PackedMatrix::Pack(tensor->type, rows, columns, tensor->bytes, pool_);
    if (!packed.ok()) return packed.status().Annotate(fmt::format("tensor {}", tensor->name));
    *out = std::move(packed).value();
    packed_bytes_ += tensor->bytes.size();
    if (progress_) progress_(static_cast<double>(packed_bytes_) / static_cast<double>(total_bytes_));
    return OkStatus();
  }

  const CpuModelOptions& options_;
  ThreadPool& pool_;
  const Progress& progress_;
  uint64_t total_bytes_;
  uint64_t packed_bytes_ = 0;
};

Result<CpuModel> CpuModel::Load(const model::GgufFile& file, const CpuModelOptions& options, ThreadPool& pool,
                                const Progress& progress) {
  CpuModel model;
  CACHALOT_ASSIGN_OR_RETURN(model.spec_, model::ReadModelSpec(file));
  CACHALOT_ASSIGN_OR_RETURN(const model::Weights weights, model::BindWeights(file, model.spec_));
  model.reference_ = options.reference;
  model.context_tokens_ = options.context_tokens == 0 ? model.spec_.context_tokens : options.context_tokens;
  if (model.context_tokens_ > model.spec_.context_tokens) {
    return Invalid(fmt::format("context of {} tokens asked for, but the model was trained for {}",
                               model.context_tokens_, model.spec_.context_tokens));
  }
  CACHALOT_ASSIGN_OR_RETURN(model.layout_, PlanKvLayout(KvShapeOf(model.spec_, options), model.context_tokens_));
  for (const model::RopeSpec& rope : model.spec_.ropes) model.ropes_.emplace_back(rope);

  uint64_t total_bytes = 0;
  for (const model::GgufTensor& tensor : file.tensors()) total_bytes += tensor.bytes.size();
  Loader loader(options, pool, progress, total_bytes);
  CACHALOT_RETURN_IF_ERROR(loader.Load(weights, &model));
  return model;
}

uint64_t CpuModel::weight_bytes() const {
  uint64_t bytes = embedding_.bytes() + output_.bytes();
  for (const CpuLayer& l : layers_) {
    for (const kernels::PackedMatrix* m : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down}) bytes += m->bytes();
  }
  return bytes;
}

const char* CpuModel::numerics_id() const { return reference_ ? kCpuReferenceNumericsId : kCpuNumericsId; }

}  // namespace cachalot::exec
