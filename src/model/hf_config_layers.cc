#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "model/hf_config_parts.h"

namespace cachalot::model {
namespace {

constexpr std::string_view kPatternKey = "hybrid_override_pattern";

// One letter per layer, as Nemotron-H writes them.
Result<HfLayerKind> KindOfLetter(const HfFields& fields, char letter) {
  HfLayerKind kind{.attention = letter == '*', .recurrent = letter == 'M', .feed = HfFeed::kNone};
  if (letter == '-') kind.feed = HfFeed::kDense;
  if (letter == 'E') kind.feed = HfFeed::kSparse;
  if (letter != '*' && letter != 'M' && kind.feed == HfFeed::kNone) {
    return fields.Error(kPatternKey, "holds another letter than M (Mamba), * (attention), - and E (feed-forward)");
  }
  return kind;
}

// What a name in `layer_types` or `layers_block_type` stands for.
Result<HfLayerKind> KindOfName(const HfFields& fields, const std::string& name) {
  static const std::set<std::string, std::less<>> kFull = {"full_attention", "attention"};
  static const std::set<std::string, std::less<>> kSliding = {"sliding_attention", "chunked_attention"};
  static const std::set<std::string, std::less<>> kRecurrent = {"linear_attention", "mamba", "conv"};
  HfLayerKind kind;
  if (name == "mlp" || name == "moe") {
    kind.attention = false;
    kind.feed = name == "moe" ? HfFeed::kSparse : HfFeed::kDense;
    return kind;
  }
  kind.sliding = kSliding.contains(name);
  kind.recurrent = kRecurrent.contains(name);
  kind.attention = kind.sliding || kFull.contains(name);
  if (!kind.attention && !kind.recurrent) {
    return fields.Error("layer_types",
                        "holds a name that is not known, expected full_attention, sliding_attention, "
                        "chunked_attention, linear_attention, mamba, conv, mlp or moe");
  }
  return kind;
}

bool HoldsIndex(const std::vector<int64_t>& indices, uint64_t index) {
  return std::ranges::find(indices, static_cast<int64_t>(index)) != indices.end();
}

// Which layers have attention, in architectures where the others are recurrent.
Result<std::vector<bool>> ReadAttentionLayers(const HfFields& fields, const HfArchitecture& architecture,
                                              uint64_t layers) {
  std::vector<bool> attention(layers);
  if (const Json* linear = fields.Find({"linear_attn_config"})) {  // Kimi Linear counts its layers from 1
    const HfFields nested(*linear, "linear_attn_config");
    CACHALOT_ASSIGN_OR_RETURN(const auto full, nested.Integers({"full_attn_layers"}, layers));
    for (uint64_t i = 0; i < layers; ++i) attention[i] = HoldsIndex(full, i + 1);
    return attention;
  }
  if (fields.Find({"attn_type_list"}) != nullptr) {
    CACHALOT_ASSIGN_OR_RETURN(const auto types, fields.Integers({"attn_type_list"}, layers));
    if (types.size() != layers) return fields.Error("attn_type_list", fmt::format("has {} entries", types.size()));
    for (uint64_t i = 0; i < layers; ++i) attention[i] = types[i] == 1;
    return attention;
  }
  if (fields.Find({"attn_layer_indices", "full_attn_idxs"}) != nullptr) {
    CACHALOT_ASSIGN_OR_RETURN(const auto indices, fields.Integers({"attn_layer_indices", "full_attn_idxs"}, layers));
    for (uint64_t i = 0; i < layers; ++i) attention[i] = HoldsIndex(indices, i);
    return attention;
  }
  const uint64_t usual_period = architecture.period;
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t period,
                            fields.Size({"attn_layer_period", "full_attention_interval"}, kMaxHfLayers,
                                        usual_period == 0 ? std::nullopt : std::optional<uint64_t>(usual_period)));
  uint64_t offset = period - 1;
  if (fields.Find({"attn_layer_offset"}) != nullptr) {
    CACHALOT_ASSIGN_OR_RETURN(offset, fields.Count({"attn_layer_offset"}, period - 1));
  }
  for (uint64_t i = 0; i < layers; ++i) attention[i] = i % period == offset;
  return attention;
}

// Kinds that the config lists, one per layer; empty when it lists none.
Result<std::vector<HfLayerKind>> ReadListedKinds(const HfFields& fields, uint64_t layers) {
  std::vector<HfLayerKind> kinds;
  CACHALOT_ASSIGN_OR_RETURN(const std::string pattern, fields.Text(kPatternKey));
  for (const char letter : pattern) {
    CACHALOT_ASSIGN_OR_RETURN(const HfLayerKind kind, KindOfLetter(fields, letter));
    kinds.push_back(kind);
  }
  if (!kinds.empty()) return kinds;
  CACHALOT_ASSIGN_OR_RETURN(const auto names, fields.Texts({"layer_types", "layers_block_type"}, layers));
  for (const std::string& name : names) {
    CACHALOT_ASSIGN_OR_RETURN(const HfLayerKind kind, KindOfName(fields, name));
    kinds.push_back(kind);
  }
  return kinds;
}

Result<std::vector<bool>> ReadSlidingLayers(const HfFields& fields, const HfArchitecture& architecture,
                                            uint64_t layers) {
  std::vector<bool> sliding(layers);
  const auto has_window = [&] { return fields.Find({"sliding_window"}) != nullptr; };
  switch (architecture.windows) {
    case HfWindows::kNone: break;
    case HfWindows::kEveryLayer: sliding.assign(layers, has_window()); break;
    case HfWindows::kQwen: {
      CACHALOT_ASSIGN_OR_RETURN(const bool used, fields.Flag("use_sliding_window", false));
      CACHALOT_ASSIGN_OR_RETURN(const uint64_t from, fields.Count({"max_window_layers"}, kMaxHfLayers));
      const bool slides = has_window() && used;
      for (uint64_t i = from; i < layers; ++i) sliding[i] = slides;
      break;
    }
    case HfWindows::kPeriod: {
      CACHALOT_ASSIGN_OR_RETURN(const uint64_t period, fields.Size({"sliding_window_pattern", "_sliding_window_pattern",
                                                                    "no_rope_layer_interval"},
                                                                   kMaxHfLayers, architecture.period));
      for (uint64_t i = 0; i < layers; ++i) sliding[i] = (i + 1) % period != 0;
      break;
    }
  }
  return sliding;
}

// Which layers have routed experts, as far as layer kinds do not say it.
Result<std::vector<bool>> ReadSparseLayers(const HfFields& fields, const HfArchitecture& architecture,
                                           uint64_t layers) {
  std::vector<bool> sparse(layers);
  const HfFields::Keys counts = {"num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts"};
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t experts, fields.Count(counts, kMaxHfExperts));
  if (experts == 0) {
    if (architecture.routed) CACHALOT_RETURN_IF_ERROR(fields.Size(counts, kMaxHfExperts).status());
    const HfFields::Keys chosen = {"num_experts_per_tok", "num_experts_per_token"};
    CACHALOT_ASSIGN_OR_RETURN(const uint64_t each, fields.Count(chosen, kMaxHfExperts));
    if (fields.Find(counts) == nullptr || each == 0) return sparse;
    return fields.Error("num_experts_per_tok", fmt::format("is {}, but there are 0 experts", each));
  }
  CACHALOT_ASSIGN_OR_RETURN(const auto names, fields.Texts({"mlp_layer_types"}, layers));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t dense_first, fields.Count({"first_k_dense_replace"}, layers));
  CACHALOT_ASSIGN_OR_RETURN(const auto dense_only, fields.Integers({"mlp_only_layers"}, layers));
  CACHALOT_ASSIGN_OR_RETURN(
      const uint64_t step,
      fields.Size({"decoder_sparse_step", "interleave_moe_layer_step", "expert_layer_period"}, kMaxHfLayers, 1));
  uint64_t offset = step - 1;
  if (fields.Find({"expert_layer_offset"}) != nullptr) {
    CACHALOT_ASSIGN_OR_RETURN(offset, fields.Count({"expert_layer_offset"}, step - 1));
  }
  for (uint64_t i = 0; i < layers; ++i) {
    sparse[i] =
        names.empty() ? i >= dense_first && !HoldsIndex(dense_only, i) && i % step == offset : names[i] == "sparse";
  }
  return sparse;
}

// All that holds for every listing: what the feed-forwards are, and whose KV is another's.
Status CompleteKinds(const HfFields& fields, const HfArchitecture& architecture, uint64_t layers, bool listed_feeds,
                     std::vector<HfLayerKind>& kinds) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t shared, fields.Count({"num_kv_shared_layers"}, layers));
  CACHALOT_ASSIGN_OR_RETURN(const bool beside, fields.Flag("enable_moe_block", false));
  CACHALOT_ASSIGN_OR_RETURN(const auto sparse, ReadSparseLayers(fields, architecture, layers));
  if (shared == layers) return fields.Error("num_kv_shared_layers", fmt::format("is {}, all there are", shared));
  const bool none = architecture.recurrent == HfRecurrent::kMamba2 && architecture.model_type == "mamba2";
  for (uint64_t i = 0; i < layers; ++i) {
    HfLayerKind& kind = kinds[i];
    kind.shares_kv = kind.attention && i >= layers - shared;
    if (listed_feeds) continue;
    kind.feed = sparse[i] ? (beside ? HfFeed::kBoth : HfFeed::kSparse) : HfFeed::kDense;
    if (none || architecture.model_type == "mamba" || architecture.model_type == "falcon_mamba") {
      kind.feed = HfFeed::kNone;
    }
  }
  return OkStatus();
}

}  // namespace

Result<uint64_t> ReadLayerCount(const HfFields& fields, const HfArchitecture& architecture) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string pattern, fields.Text(kPatternKey));
  if (!pattern.empty() && pattern.size() <= kMaxHfLayers) return pattern.size();
  const Json* listed = architecture.model_type == "nemotron_h" ? fields.Find({"layers_block_type"}) : nullptr;
  if (listed != nullptr && listed->AsArray() != nullptr && !listed->AsArray()->empty() &&
      listed->AsArray()->size() <= kMaxHfLayers) {
    return listed->AsArray()->size();
  }
  return fields.Size({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, kMaxHfLayers);
}

Result<std::vector<HfLayerKind>> ReadLayerKinds(const HfFields& fields, const HfArchitecture& architecture,
                                                const HfSizes& sizes) {
  CACHALOT_ASSIGN_OR_RETURN(std::vector<HfLayerKind> kinds, ReadListedKinds(fields, sizes.layers));
  // A list says all that these would.
  if (!kinds.empty())
    fields.Touch(
        {"sliding_window", "sliding_window_pattern", "attn_layer_period", "layer_types", "full_attention_interval"});
  const bool listed_feeds = !kinds.empty() && architecture.model_type == "nemotron_h";
  if (kinds.empty()) {
    kinds.resize(sizes.layers);
    CACHALOT_ASSIGN_OR_RETURN(const auto sliding, ReadSlidingLayers(fields, architecture, sizes.layers));
    for (uint64_t i = 0; i < sizes.layers; ++i) kinds[i].sliding = sliding[i];
    if (architecture.model_type == "falcon_h1") {  // both in every layer, side by side
      for (HfLayerKind& kind : kinds) kind.recurrent = true;
    } else if (architecture.recurrent != HfRecurrent::kNone) {
      std::vector<bool> attention(sizes.layers);
      const bool only_recurrent = architecture.model_type.ends_with("mamba") || architecture.model_type == "mamba2";
      if (!only_recurrent) {
        CACHALOT_ASSIGN_OR_RETURN(attention, ReadAttentionLayers(fields, architecture, sizes.layers));
      }
      for (uint64_t i = 0; i < sizes.layers; ++i) {
        kinds[i].attention = attention[i];
        kinds[i].recurrent = !attention[i];
      }
    }
  }
  CACHALOT_RETURN_IF_ERROR(CompleteKinds(fields, architecture, sizes.layers, listed_feeds, kinds));
  return kinds;
}

}  // namespace cachalot::model
