// CpuModel holds a model's weights in the form that the CPU kernels read.
// Threads:   immutable once loaded; any thread may read.
// Ownership: owns all weights; the GgufFile may be closed after Load.
// Invariant: every matrix has the shape that the spec asks for.
// Cost:      Load reads, hashes and repacks every weight once, in parallel; about the file's bytes stay resident. With
//            a panel file of the same model it reads and hashes both, and repacks nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/kv_layout.h"
#include "base/status.h"
#include "exec/cpu/rope.h"
#include "kernels/packed_matrix.h"
#include "model/model_spec.h"

namespace cachalot {
class ThreadPool;
}
namespace cachalot::model {
class GgufFile;
struct GgufTensor;
}  // namespace cachalot::model

namespace cachalot::exec {

struct CpuModelOptions {
  bool reference = false;         // weights dequantised to f32, activations in f32
  KvType kv_type = KvType::kF16;  // of the KV cache
  uint32_t block_tokens = 16;
  uint64_t context_tokens = 0;  // 0: the trained context
  std::string panel_file;       // keeps the packed weights; written when it is not there or not of this model
};

// Empty vectors and matrices mark what the architecture does not have.
struct CpuLayer {
  std::vector<float> attention_norm, q_norm, k_norm, attention_post_norm, ffn_norm, ffn_post_norm;
  std::vector<float> q_bias, k_bias, v_bias;
  kernels::PackedMatrix q, k, v, o, gate, up, down;
};

class CpuModel {
 public:
  // Called with the share of weights read, 0 to 1.
  using Progress = std::function<void(double)>;

  static Result<CpuModel> Load(const model::GgufFile& file, const CpuModelOptions& options, ThreadPool& pool,
                               const Progress& progress);

  const model::ModelSpec& spec() const { return spec_; }
  const KvLayout& layout() const { return layout_; }
  uint64_t context_tokens() const { return context_tokens_; }
  uint64_t weight_bytes() const;
  const char* numerics_id() const;
  // model::ModelFingerprint of the file.
  const Digest& fingerprint() const { return fingerprint_; }

  const kernels::PackedMatrix& embedding() const { return embedding_; }
  const kernels::PackedMatrix& output() const { return spec_.tied_output ? embedding_ : output_; }
  const std::vector<float>& output_norm() const { return output_norm_; }
  const std::vector<CpuLayer>& layers() const { return layers_; }
  const std::vector<RopeAngles>& ropes() const { return ropes_; }

 private:
  class Loader;
  CpuModel() = default;
  model::ModelSpec spec_;
  KvLayout layout_;
  uint64_t context_tokens_ = 0;
  bool reference_ = false;
  Digest fingerprint_{};
  kernels::PackedMatrix embedding_, output_;
  std::vector<float> output_norm_;
  std::vector<CpuLayer> layers_;
  std::vector<RopeAngles> ropes_;
};

}  // namespace cachalot::exec
