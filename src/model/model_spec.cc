#include "model/model_spec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "model/gguf.h"
#include "model/gguf_parser.h"

namespace cachalot::model {
namespace {

constexpr std::string_view kArchitectures[] = {"llama", "qwen2", "gemma3"};

// Sanity limits; the largest models of today stay at least four times below them.
constexpr uint64_t kMaxLayers = 1024;
constexpr uint64_t kMaxWidth = 1 << 20;
constexpr uint64_t kMaxHeads = 1 << 14;
constexpr uint64_t kMaxHeadDim = 1 << 12;
constexpr uint64_t kMaxFfnWidth = 1 << 22;
constexpr uint64_t kMaxVocabulary = 1 << 22;
constexpr uint64_t kMaxContextTokens = 1 << 28;

// Gemma 3: every sixth layer is global; the base of the others is not in the file.
constexpr uint32_t kGemmaPatternLayers = 6;
constexpr double kGemmaLocalTheta = 10000.0;
// The one Gemma 3 size that scales its scores by the width per head (the file does not say so).
constexpr uint32_t kGemma27BLayers = 62;

// Settings that change the arithmetic and are not supported. Zero and the neutral value mean that they are off.
struct Unsupported {
  const char* key;
  double neutral;
};
constexpr Unsupported kUnsupported[] = {
    {"expert_count", 0},
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
    {"attention.scale", 0},
    {"attention.clamp_kqv", 0},
    {"attention.max_alibi_bias", 0},
    {"logit_scale", 1},
    {"residual_scale", 1},
    {"embedding_scale", 1},
    {"rope.scaling.attn_factor", 1},
};

class SpecReader {
 public:
  SpecReader(const GgufFile& file, std::string architecture)
      : file_(file),
        prefix_(architecture + "."),
        is_gemma_(architecture == "gemma3"),
        is_llama_(architecture == "llama") {
    spec_.architecture = std::move(architecture);
  }

  Result<ModelSpec> Read() {
    CACHALOT_RETURN_IF_ERROR(RefuseUnsupported());
    CACHALOT_RETURN_IF_ERROR(ReadSizes());
    CACHALOT_RETURN_IF_ERROR(ReadVocabulary());
    CACHALOT_RETURN_IF_ERROR(ReadHeads());
    CACHALOT_RETURN_IF_ERROR(ReadScales());
    CACHALOT_RETURN_IF_ERROR(ReadRopes());
    CACHALOT_RETURN_IF_ERROR(ReadLayers());
    return std::move(spec_);
  }

 private:
  Status Error(std::string_view key, const std::string& what) const {
    return Invalid(fmt::format("{}: metadata key '{}{}' {}", file_.name(), prefix_, key, what));
  }

  Status RefuseUnsupported() const;
  Status ReadSizes();
  Status ReadVocabulary();
  Status ReadHeads();
  Status ReadScales();
  Result<double> ReadPositionScale() const;
  Result<double> ReadTheta(std::string_view key, std::optional<double> fallback) const;
  Result<std::vector<float>> ReadRopeFactors(uint32_t dims) const;
  Status ReadRopes();
  Status ReadLayers();
  Result<std::vector<bool>> ReadSlidingLayers() const;

  // A number from 1 to `max`. Without a fallback, the key must be there.
  Result<uint32_t> UInt(std::string_view key, uint64_t max, std::optional<uint64_t> fallback = {}) const {
    CACHALOT_ASSIGN_OR_RETURN(const std::optional<uint64_t> found, file_.FindUInt(prefix_ + std::string(key)));
    if (!found && !fallback) return Error(key, "is missing");
    const uint64_t value = found ? *found : *fallback;
    if (value < 1 || value > max) return Error(key, fmt::format("is {}, expected 1 to {}", value, max));
    return static_cast<uint32_t>(value);
  }

  const GgufFile& file_;
  const std::string prefix_;
  const bool is_gemma_;
  const bool is_llama_;
  ModelSpec spec_;
};

Status SpecReader::RefuseUnsupported() const {
  CACHALOT_ASSIGN_OR_RETURN(const std::optional<uint64_t> split, file_.FindUInt("split.count"));
  if (split.value_or(0) > 1) {
    return Invalid(
        fmt::format("{}: this is one of {} parts of a split model, expected one file: merge them with "
                    "llama-gguf-split --merge",
                    file_.name(), *split));
  }
  for (const Unsupported& setting : kUnsupported) {
    CACHALOT_ASSIGN_OR_RETURN(const std::optional<double> value, file_.FindNumber(prefix_ + setting.key));
    if (value && *value != 0 && *value != setting.neutral) {
      return Error(setting.key, fmt::format("is {}, which is not supported (expected {})", *value, setting.neutral));
    }
  }
  CACHALOT_ASSIGN_OR_RETURN(const std::optional<bool> causal, file_.FindBool(prefix_ + "attention.causal"));
  if (!causal.value_or(true)) return Error("attention.causal", "is false, only causal models are supported");
  return OkStatus();
}

Status SpecReader::ReadSizes() {
  CACHALOT_ASSIGN_OR_RETURN(const std::optional<std::string_view> name, file_.FindString("general.name"));
  spec_.name = std::string(name.value_or(""));
  CACHALOT_ASSIGN_OR_RETURN(spec_.layers, UInt("block_count", kMaxLayers));
  CACHALOT_ASSIGN_OR_RETURN(spec_.width, UInt("embedding_length", kMaxWidth));
  CACHALOT_ASSIGN_OR_RETURN(spec_.ffn_width, UInt("feed_forward_length", kMaxFfnWidth));
  CACHALOT_ASSIGN_OR_RETURN(spec_.context_tokens, UInt("context_length", kMaxContextTokens));
  return OkStatus();
}

Status SpecReader::ReadVocabulary() {
  const GgufTensor* embedding = file_.FindTensor("token_embd.weight");
  if (embedding == nullptr) return Invalid(fmt::format("{}: tensor 'token_embd.weight' is missing", file_.name()));
  const uint64_t rows = embedding->shape.size() == 2 ? embedding->shape[1] : 0;
  if (rows < 1 || rows > kMaxVocabulary) {
    return Invalid(
        fmt::format("{}: tensor 'token_embd.weight' has the shape [{}], expected [{}, vocabulary] with a "
                    "vocabulary of 1 to {}",
                    file_.name(), fmt::join(embedding->shape, ", "), spec_.width, kMaxVocabulary));
  }
  spec_.vocabulary = static_cast<uint32_t>(rows);
  spec_.tied_output = file_.FindTensor("output.weight") == nullptr;
  return OkStatus();
}

Status SpecReader::ReadHeads() {
  CACHALOT_ASSIGN_OR_RETURN(spec_.heads, UInt("attention.head_count", kMaxHeads));
  CACHALOT_ASSIGN_OR_RETURN(spec_.kv_heads, UInt("attention.head_count_kv", kMaxHeads, spec_.heads));
  if (spec_.heads % spec_.kv_heads != 0) {
    return Error("attention.head_count_kv",
                 fmt::format("is {}, which does not divide the {} query heads", spec_.kv_heads, spec_.heads));
  }
  std::optional<uint64_t> by_width;
  if (spec_.width % spec_.heads == 0) by_width = spec_.width / spec_.heads;
  CACHALOT_ASSIGN_OR_RETURN(spec_.head_dim, UInt("attention.key_length", kMaxHeadDim, by_width));
  CACHALOT_ASSIGN_OR_RETURN(const uint32_t value_dim, UInt("attention.value_length", kMaxHeadDim, spec_.head_dim));
  if (value_dim != spec_.head_dim) {
    return Error("attention.value_length", fmt::format("is {}, expected the key length {}", value_dim, spec_.head_dim));
  }
  return OkStatus();
}

Status SpecReader::ReadScales() {
  constexpr std::string_view kEpsilon = "attention.layer_norm_rms_epsilon";
  CACHALOT_ASSIGN_OR_RETURN(const std::optional<double> epsilon, file_.FindNumber(prefix_ + std::string(kEpsilon)));
  if (!epsilon) return Error(kEpsilon, "is missing");
  if (!(*epsilon > 0 && *epsilon < 1)) return Error(kEpsilon, fmt::format("is {}, expected 0 < x < 1", *epsilon));
  spec_.norm_epsilon = static_cast<float>(*epsilon);
  const bool by_width = is_gemma_ && spec_.layers == kGemma27BLayers;
  const uint32_t scaled_dim = by_width ? std::max(spec_.width / spec_.heads, 1u) : spec_.head_dim;
  spec_.attention_scale = 1.0f / std::sqrt(static_cast<float>(scaled_dim));
  spec_.rope_pairs = is_llama_ ? RopePairs::kInterleaved : RopePairs::kHalves;
  // llama: files of models trained with biases have them, permuted like the weights.
  spec_.qkv_bias = spec_.architecture == "qwen2" || (is_llama_ && file_.FindTensor("blk.0.attn_q.bias") != nullptr);
  if (is_gemma_) {
    // The square root is rounded to f32, as llama.cpp does at any precision and transformers does in f32. transformers
    // in bf16 rounds it further, to bf16 (640: 25.298 becomes 25.25). Norm weights arrive with their +1 added.
    spec_.embedding_scale = std::sqrt(static_cast<float>(spec_.width));
    spec_.activation = Activation::kGeluTanh;
    spec_.qk_norm = true;
    spec_.post_norms = true;
  }
  return OkStatus();
}

// Linear scaling divides positions by its factor; "none" leaves them, whatever the factor. A factor of 0 is no factor.
Result<double> SpecReader::ReadPositionScale() const {
  CACHALOT_ASSIGN_OR_RETURN(const std::optional<std::string_view> type,
                            file_.FindString(prefix_ + "rope.scaling.type"));
  const std::string_view scaling = type.value_or("linear");
  if (scaling != "linear" && scaling != "none") {
    return Error("rope.scaling.type",
                 fmt::format("is {}, which is not supported (expected 'none' or 'linear')", QuoteName(scaling)));
  }
  const char* key = "rope.scaling.factor";
  CACHALOT_ASSIGN_OR_RETURN(std::optional<double> factor, file_.FindNumber(prefix_ + key));
  if (!factor) {
    key = "rope.scale_linear";
    CACHALOT_ASSIGN_OR_RETURN(factor, file_.FindNumber(prefix_ + key));
  }
  if (scaling == "none" || factor.value_or(0) == 0) return 1.0;
  if (!(*factor >= 1e-3 && *factor <= 1e6)) return Error(key, fmt::format("is {}, expected 0.001 to 1e6", *factor));
  return 1.0 / *factor;
}

Result<double> SpecReader::ReadTheta(std::string_view key, std::optional<double> fallback) const {
  CACHALOT_ASSIGN_OR_RETURN(const std::optional<double> found, file_.FindNumber(prefix_ + std::string(key)));
  if (!found && !fallback) return Error(key, "is missing");
  const double theta = found ? *found : *fallback;
  if (!(theta >= 1 && theta <= 1e15)) return Error(key, fmt::format("is {}, expected 1 to 1e15", theta));
  return theta;
}

Result<std::vector<float>> SpecReader::ReadRopeFactors(uint32_t dims) const {
  std::vector<float> factors;
  const GgufTensor* tensor = is_llama_ ? file_.FindTensor(kRopeFactorsTensor) : nullptr;
  if (tensor == nullptr) return factors;
  if (tensor->type != TensorType::kF32 || tensor->shape != std::vector<uint64_t>{dims / 2}) {
    return Invalid(fmt::format("{}: tensor '{}' is {} of shape [{}], expected F32 of shape [{}]", file_.name(),
                               kRopeFactorsTensor, InfoOf(tensor->type).name, fmt::join(tensor->shape, ", "),
                               dims / 2));
  }
  factors.resize(dims / 2);
  std::memcpy(factors.data(), tensor->bytes.data(), tensor->bytes.size());
  for (const float factor : factors) {
    if (!(factor >= 1e-6f && factor <= 1e6f)) {
      return Invalid(fmt::format("{}: tensor '{}' holds {}, expected numbers from 1e-6 to 1e6", file_.name(),
                                 kRopeFactorsTensor, factor));
    }
  }
  return factors;
}

Status SpecReader::ReadRopes() {
  RopeSpec rope;
  CACHALOT_ASSIGN_OR_RETURN(rope.dims, UInt("rope.dimension_count", spec_.head_dim, spec_.head_dim));
  if (rope.dims % 2 != 0)
    return Error("rope.dimension_count", fmt::format("is {}, expected an even number", rope.dims));
  std::optional<double> default_theta;
  if (!is_gemma_) default_theta = 10000.0;
  CACHALOT_ASSIGN_OR_RETURN(rope.theta, ReadTheta("rope.freq_base", default_theta));
  CACHALOT_ASSIGN_OR_RETURN(rope.position_scale, ReadPositionScale());
  CACHALOT_ASSIGN_OR_RETURN(rope.factors, ReadRopeFactors(rope.dims));
  spec_.ropes.push_back(rope);
  if (is_gemma_) {
    RopeSpec local;
    local.dims = rope.dims;
    CACHALOT_ASSIGN_OR_RETURN(local.theta, ReadTheta("rope.freq_base_swa", kGemmaLocalTheta));
    spec_.ropes.push_back(local);
  }
  return OkStatus();
}

// Which layers slide: from the file where it says so (a period, or a flag per layer), else the published 5:1 pattern.
Result<std::vector<bool>> SpecReader::ReadSlidingLayers() const {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const std::string key = prefix_ + std::string(kPattern);
  std::vector<bool> sliding(spec_.layers);
  const GgufValue* value = file_.Find(key);
  if (value != nullptr && std::holds_alternative<GgufArray>(*value)) {
    const GgufArray& flags = std::get<GgufArray>(*value);
    if (flags.ints.size() != spec_.layers) {
      return Error(kPattern,
                   fmt::format("is {}, expected a boolean for each of {} layers", DescribeValue(*value), spec_.layers));
    }
    for (uint32_t i = 0; i < spec_.layers; ++i) sliding[i] = flags.ints[i] != 0;
    return sliding;
  }
  CACHALOT_ASSIGN_OR_RETURN(const uint32_t period, UInt(kPattern, kMaxLayers, kGemmaPatternLayers));
  for (uint32_t i = 0; i < spec_.layers; ++i) sliding[i] = (i + 1) % period != 0;
  return sliding;
}

Status SpecReader::ReadLayers() {
  spec_.layer.resize(spec_.layers);
  constexpr std::string_view kWindow = "attention.sliding_window";
  CACHALOT_ASSIGN_OR_RETURN(const std::optional<uint64_t> window, file_.FindUInt(prefix_ + std::string(kWindow)));
  if (!window && is_gemma_) return Error(kWindow, "is missing");
  // A window that is never full is no window.
  const bool bounds = window.value_or(0) != 0 && *window < spec_.context_tokens;
  if (is_gemma_) {
    CACHALOT_ASSIGN_OR_RETURN(const std::vector<bool> sliding, ReadSlidingLayers());
    for (uint32_t i = 0; i < spec_.layers; ++i) {
      if (!sliding[i]) continue;
      spec_.layer[i] = {bounds ? static_cast<uint32_t>(*window) : 0, 1};
    }
    return OkStatus();
  }
  if (!bounds) return OkStatus();
  // Mistral's window holds in every layer. llama.cpp does not read this key for llama; transformers applies it.
  if (!is_llama_) return Error(kWindow, fmt::format("is {}, which is not supported for this architecture", *window));
  for (LayerSpec& layer : spec_.layer) layer.window = static_cast<uint32_t>(*window);
  return OkStatus();
}

}  // namespace

Result<ModelSpec> ReadModelSpec(const GgufFile& file) {
  CACHALOT_ASSIGN_OR_RETURN(const std::optional<std::string_view> found, file.FindString("general.architecture"));
  if (!found) return Invalid(fmt::format("{}: metadata key 'general.architecture' is missing", file.name()));
  if (std::ranges::count(kArchitectures, *found) == 0) {
    return Invalid(fmt::format("{}: architecture {} is not supported, expected one of {}", file.name(),
                               QuoteName(*found), fmt::join(kArchitectures, ", ")));
  }
  return SpecReader(file, std::string(*found)).Read();
}

}  // namespace cachalot::model
