#include "model/hf_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "model/gguf_parser.h"
#include "model/hf_config_fields.h"
#include "model/hf_config_parts.h"

namespace cachalot::model {
namespace {

constexpr uint64_t kMaxWeights = uint64_t{1} << 50;

constexpr HfWindows kEvery = HfWindows::kEveryLayer;
constexpr HfWindows kPeriod = HfWindows::kPeriod;

constexpr HfArchitecture kArchitectures[] = {
    {.model_type = "llama"},
    {.model_type = "mistral", .windows = kEvery},
    {.model_type = "mixtral", .windows = kEvery, .routed = true},
    {.model_type = "qwen2", .windows = HfWindows::kQwen},
    {.model_type = "qwen2_moe", .windows = HfWindows::kQwen},
    {.model_type = "qwen3", .windows = HfWindows::kQwen},
    {.model_type = "qwen3_moe", .windows = HfWindows::kQwen},
    {.model_type = "qwen3_vl_text"},
    {.model_type = "qwen3_vl_moe_text"},
    {.model_type = "qwen3_next", .period = 4, .recurrent = HfRecurrent::kGatedDelta},
    {.model_type = "qwen3_5_text", .period = 4, .recurrent = HfRecurrent::kGatedDelta},
    {.model_type = "qwen3_5_moe_text", .period = 4, .recurrent = HfRecurrent::kGatedDelta},
    {.model_type = "gemma", .tied = true},
    {.model_type = "gemma2", .windows = kPeriod, .period = 2, .tied = true},
    {.model_type = "gemma3_text", .windows = kPeriod, .period = 6, .tied = true},
    {.model_type = "gemma3n_text", .windows = kPeriod, .period = 5, .tied = true},
    {.model_type = "gemma4_text", .windows = kPeriod, .period = 6, .tied = true},
    {.model_type = "llama4_text", .windows = kPeriod, .period = 4},
    {.model_type = "gpt_oss", .windows = kPeriod, .period = 2, .routed = true},
    {.model_type = "cohere", .tied = true},
    {.model_type = "cohere2", .windows = kPeriod, .period = 4, .tied = true},
    {.model_type = "olmo2"},
    {.model_type = "olmo3", .windows = kPeriod, .period = 4},
    {.model_type = "olmoe", .routed = true},
    {.model_type = "phi", .gated = false},
    {.model_type = "phi3", .windows = kEvery},
    {.model_type = "phimoe", .windows = kEvery, .routed = true},
    {.model_type = "glm4"},
    {.model_type = "glm4_moe"},
    {.model_type = "granite"},
    {.model_type = "smollm3", .tied = true},
    {.model_type = "seed_oss"},
    {.model_type = "mimo"},
    {.model_type = "minimax_m2", .routed = true},
    {.model_type = "stablelm"},
    {.model_type = "starcoder2", .windows = kEvery, .gated = false, .tied = true},
    {.model_type = "falcon", .gated = false, .tied = true},
    {.model_type = "gpt_bigcode", .gated = false, .tied = true, .learned_positions = true},
    {.model_type = "gpt2", .gated = false, .tied = true, .learned_positions = true},
    {.model_type = "gpt_neox", .gated = false},
    {.model_type = "opt", .gated = false, .tied = true, .learned_positions = true},
    {.model_type = "bloom", .gated = false, .tied = true},
    {.model_type = "deepseek_v2", .latent = true},
    {.model_type = "deepseek_v3", .latent = true},
    {.model_type = "deepseek_v32", .latent = true},
    {.model_type = "kimi_k2", .latent = true},
    {.model_type = "kimi_linear", .recurrent = HfRecurrent::kChannelDelta, .latent = true},
    {.model_type = "minimax", .period = 8, .recurrent = HfRecurrent::kLightning},
    {.model_type = "minimax_text_01", .period = 8, .recurrent = HfRecurrent::kLightning},
    {.model_type = "jamba", .recurrent = HfRecurrent::kMamba},
    {.model_type = "bamba", .recurrent = HfRecurrent::kMamba2},
    {.model_type = "falcon_h1", .recurrent = HfRecurrent::kMamba2},
    {.model_type = "granitemoehybrid", .recurrent = HfRecurrent::kMamba2},
    {.model_type = "nemotron_h", .recurrent = HfRecurrent::kMamba2, .gated = false},
    {.model_type = "lfm2", .recurrent = HfRecurrent::kShortConvolution, .tied = true},
    {.model_type = "mamba", .recurrent = HfRecurrent::kMamba, .tied = true},
    {.model_type = "falcon_mamba", .recurrent = HfRecurrent::kMamba},
    {.model_type = "mamba2", .recurrent = HfRecurrent::kMamba2},
};

// The text part of a multimodal config, or the config itself.
const Json& TextPart(const Json& config) {
  const Json* text = config.Find("text_config");
  return text != nullptr && text->AsObject() != nullptr && text->Find("num_hidden_layers") != nullptr ? *text : config;
}

Result<HfArchitecture> FindArchitecture(const HfFields& fields) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string type, fields.Text("model_type"));
  if (type.empty()) return fields.Error("model_type", "is missing: this is no config.json of a model");
  // Both names stand for the same text model.
  const std::string_view name = type == "gemma3" ? std::string_view("gemma3_text") : type;
  const auto found = std::ranges::find(kArchitectures, name, &HfArchitecture::model_type);
  if (found != std::end(kArchitectures)) return *found;
  return fields.Error("model_type", fmt::format("is {}, which is not known; expected one of {}", QuoteName(type),
                                                HfArchitectureNames()));
}

// What single layers do not hold: embeddings, the output, and Gemma 3n's matrices around all layers.
Status ReadEmbeddings(const HfFields& fields, const HfFields& outer, const HfArchitecture& architecture,
                      const HfSizes& sizes, HfConfig& config) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t vocabulary,
                            fields.Size({"vocab_size", "padded_vocab_size"}, kMaxHfVocabulary));
  config.vocabulary = static_cast<uint32_t>(vocabulary);
  CACHALOT_ASSIGN_OR_RETURN(const bool outer_tied, outer.Flag("tie_word_embeddings", architecture.tied));
  CACHALOT_ASSIGN_OR_RETURN(config.tied_output, fields.Flag("tie_word_embeddings", outer_tied));
  config.output_weights = vocabulary * sizes.width;
  config.embedding_weights = vocabulary * sizes.width;
  if (architecture.learned_positions) config.embedding_weights += sizes.context_tokens * sizes.width;

  const bool must_say = architecture.model_type == "gemma3n_text" || architecture.model_type == "gemma4_text";
  if (must_say && fields.Find({"hidden_size_per_layer_input"}) == nullptr) {
    return fields.Error("hidden_size_per_layer_input", "is missing, expected it for this architecture");
  }
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t per_layer, fields.Count({"hidden_size_per_layer_input"}, kMaxHfWidth));
  if (per_layer == 0) return OkStatus();
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t rows, fields.Size({"vocab_size_per_layer_input"}, kMaxHfVocabulary));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t laurel_rank, fields.Count({"laurel_rank"}, kMaxHfRank));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t streams, fields.Count({"altup_num_inputs"}, 64));
  config.embedding_weights += rows * per_layer * sizes.layers;
  config.outer_weights = sizes.layers * sizes.width * (3 * per_layer + 2 * laurel_rank) +
                         (streams == 0 ? 0 : 2 * (streams - 1)) * sizes.width * sizes.width;
  return OkStatus();
}

Status ReadLayers(const HfFields& fields, const HfArchitecture& architecture, const HfSizes& sizes, HfConfig& config) {
  CACHALOT_ASSIGN_OR_RETURN(const auto kinds, ReadLayerKinds(fields, architecture, sizes));
  for (uint64_t i = 0; i < kinds.size(); ++i) {
    HfLayer& layer = config.layers.emplace_back();
    if (kinds[i].attention) {
      CACHALOT_ASSIGN_OR_RETURN(layer.attention, ReadAttention(fields, architecture, sizes, kinds[i]));
    }
    if (kinds[i].recurrent) {
      CACHALOT_ASSIGN_OR_RETURN(layer.recurrence, ReadRecurrence(fields, architecture, sizes));
    }
    if (kinds[i].feed != HfFeed::kNone) {
      CACHALOT_ASSIGN_OR_RETURN(layer.feed_forward, ReadFeedForward(fields, architecture, sizes, kinds[i], i));
    }
  }
  return OkStatus();
}

Status CheckTotal(const HfFields& fields, const HfConfig& config) {
  unsigned __int128 weights = config.embedding_weights + config.outer_weights;
  for (const HfLayer& layer : config.layers) {
    if (layer.attention) weights += layer.attention->weights;
    if (layer.recurrence) weights += layer.recurrence->weights;
    if (layer.feed_forward) weights += layer.feed_forward->weights + layer.feed_forward->expert_weights;
  }
  if (weights <= kMaxWeights) return OkStatus();
  return fields.Error("hidden_size", "and the other sizes make more than 2^50 weights, expected a model that exists");
}

// Where the config does not say it. A state-space model has no limit.
std::optional<uint64_t> DefaultContext(const HfArchitecture& architecture) {
  if (architecture.model_type == "falcon" || architecture.model_type == "bloom") return 2048;
  return std::nullopt;
}

Status ReadSizes(const HfFields& fields, const HfArchitecture& architecture, HfSizes& sizes) {
  CACHALOT_ASSIGN_OR_RETURN(sizes.layers, ReadLayerCount(fields, architecture));
  CACHALOT_ASSIGN_OR_RETURN(sizes.width, fields.Size({"hidden_size", "n_embd", "d_model"}, kMaxHfWidth));
  const bool endless = architecture.model_type.ends_with("mamba") || architecture.model_type == "mamba2";
  if (endless) return OkStatus();
  CACHALOT_ASSIGN_OR_RETURN(sizes.context_tokens,
                            fields.Size({"max_position_embeddings", "n_positions", "seq_length", "model_max_length"},
                                        kMaxHfContext, DefaultContext(architecture)));
  return OkStatus();
}

// What the weights are stored as says nothing here, but no config has a type that there is not.
Status CheckType(const HfFields& fields) {
  constexpr std::string_view kTypes[] = {"float64", "float32", "float16", "bfloat16", "half", "float", "auto"};
  for (const std::string_view key : {"torch_dtype", "dtype"}) {
    const Json* value = fields.Find({key});
    if (value == nullptr || value->AsString() == nullptr) continue;  // or a type for each part
    std::string_view type = *value->AsString();
    if (type.starts_with("torch.")) type.remove_prefix(6);
    if (type.starts_with("float8_") || std::ranges::find(kTypes, type) != std::end(kTypes)) continue;
    return fields.Error(key, fmt::format("is \"{}\", expected a type of numbers such as bfloat16", type));
  }
  return OkStatus();
}

// What decides elsewhere how much KV there is. What says so by being switched off, or none, changes nothing.
Result<std::vector<std::string>> ReadIgnoredKeys(const HfFields& fields) {
  CACHALOT_ASSIGN_OR_RETURN(const bool slides, fields.Flag("use_sliding_window", true));
  fields.Touch({"max_window_layers"});  // without a window it says nothing
  CACHALOT_ASSIGN_OR_RETURN(std::vector<std::string> keys, fields.NotRead({"num_key_value_heads",
                                                                           "num_kv_heads",
                                                                           "multi_query",
                                                                           "head_dim",
                                                                           "global_head_dim",
                                                                           "num_global_key_value_heads",
                                                                           "kv_lora_rank",
                                                                           "qk_rope_head_dim",
                                                                           "index_head_dim",
                                                                           "sliding_window",
                                                                           "sliding_window_pattern",
                                                                           "attention_chunk_size",
                                                                           "layer_types",
                                                                           "num_kv_shared_layers",
                                                                           "cross_layer_kv_share",
                                                                           "cla_share_factor",
                                                                           "attn_layer_period",
                                                                           "full_attention_interval",
                                                                           "linear_attn_config",
                                                                           "hybrid_override_pattern"},
                                                                          {"kv", "window", "cross_layer"}));
  std::erase_if(keys, [&](const std::string& key) {
    const Json& value = *fields.Find({key});
    return value == Json(false) || value == Json(int64_t{0}) || (key == "sliding_window" && !slides);
  });
  return keys;
}

}  // namespace

Result<HfConfig> ParseHfConfig(std::string_view text, const std::string& name) {
  const Result<Json> parsed = ParseJson(text);
  if (!parsed.ok()) return parsed.status().Annotate(name);
  if (parsed->AsObject() == nullptr) {
    return Invalid(fmt::format("{}: is {}, expected an object with \"model_type\"", name, parsed->TypeName()));
  }
  const HfFields outer(*parsed, name), fields(TextPart(*parsed), name);
  CACHALOT_ASSIGN_OR_RETURN(const HfArchitecture architecture, FindArchitecture(fields));
  HfSizes sizes;
  CACHALOT_RETURN_IF_ERROR(ReadSizes(fields, architecture, sizes));
  HfConfig config;
  config.architecture = architecture.model_type;
  config.width = static_cast<uint32_t>(sizes.width);
  config.context_tokens = sizes.context_tokens;
  CACHALOT_RETURN_IF_ERROR(ReadEmbeddings(fields, outer, architecture, sizes, config));
  CACHALOT_RETURN_IF_ERROR(ReadLayers(fields, architecture, sizes, config));
  CACHALOT_RETURN_IF_ERROR(CheckTotal(fields, config));
  CACHALOT_ASSIGN_OR_RETURN(config.ignored_keys, ReadIgnoredKeys(fields));
  for (const HfFields* part : {&outer, &fields}) CACHALOT_RETURN_IF_ERROR(CheckType(*part));
  if (const Json* quantized = outer.Find({"quantization_config"})) {
    CACHALOT_ASSIGN_OR_RETURN(config.quantization, HfFields(*quantized, name).Text("quant_method"));
  }
  return config;
}

std::string HfArchitectureNames() {
  std::string names;
  for (const HfArchitecture& architecture : kArchitectures) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", architecture.model_type);
  }
  return names;
}

}  // namespace cachalot::model
