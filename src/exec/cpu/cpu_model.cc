#include "exec/cpu/cpu_model.h"

#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/log.h"
#include "exec/cpu/panel_file.h"
#include "exec/cpu/weight_pass.h"
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
  Loader(WeightPass& pass, kernels::PackAs as, PanelsByTensor packed)
      : pass_(pass), as_(as), panels_(std::move(packed)) {}

  Status Load(const model::Weights& weights, CpuModel* model) {
    CACHALOT_ASSIGN_OR_RETURN(model->embedding_, Matrix(*weights.embedding));
    if (!model->spec_.tied_output) {
      CACHALOT_ASSIGN_OR_RETURN(model->output_, Matrix(*weights.output));
    }
    model->output_norm_ = ReadVector(weights.output_norm);
    model->layers_.resize(weights.layers.size());
    for (size_t i = 0; i < weights.layers.size(); ++i) {
      CACHALOT_RETURN_IF_ERROR(LoadLayer(weights.layers[i], &model->layers_[i]));
    }
    return OkStatus();
  }

  // All matrices that were loaded.
  const PanelsByTensor& panels() const { return panels_; }

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
    for (const auto& [tensor, matrix] : matrices) {
      CACHALOT_ASSIGN_OR_RETURN(*matrix, Matrix(*tensor));
    }
    return OkStatus();
  }

  Result<kernels::PackedMatrix> Matrix(const model::GgufTensor& tensor) {
    if (const auto found = panels_.find(tensor.name); found != panels_.end()) return found->second;
    CACHALOT_ASSIGN_OR_RETURN(kernels::PackedMatrix packed, pass_.Pack(tensor, as_));
    return panels_.emplace(tensor.name, std::move(packed)).first->second;
  }

  WeightPass& pass_;
  const kernels::PackAs as_;
  PanelsByTensor panels_;
};

namespace {

// What the panel file has of this model; nothing where it has to be written.
PanelsByTensor ReadPanels(const std::string& path, kernels::PackAs as, WeightPass& pass, ThreadPool& pool) {
  if (path.empty()) return {};
  Result<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return {};
  Result<PanelsByTensor> panels = ReadPanelFile(std::move(file).value(), {pass.Fingerprint(), as}, pool);
  if (panels.ok()) return std::move(panels).value();
  LogWarning(fmt::format("{}: {}; packing the weights again", path, panels.status().message()));
  return {};
}

}  // namespace

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

  const kernels::PackAs as = options.reference ? kernels::PackAs::kF32 : kernels::PackAs::kItsType;
  WeightPass pass(file, pool, progress);
  PanelsByTensor packed = ReadPanels(options.panel_file, as, pass, pool);
  const bool write = packed.empty() && !options.panel_file.empty();
  Loader loader(pass, as, std::move(packed));
  CACHALOT_RETURN_IF_ERROR(loader.Load(weights, &model));
  model.fingerprint_ = pass.Fingerprint();
  if (write) {
    const Status written = WritePanelFile(options.panel_file, {model.fingerprint_, as}, loader.panels());
    if (!written.ok()) LogWarning(fmt::format("packed weights are not kept: {}", written.message()));
  }
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
