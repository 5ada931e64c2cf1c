#include <fmt/format.h>

#include "model/hf_config_parts.h"

namespace cachalot::model {
namespace {

// Mamba (Gu and Dao, 2023): a state per inner channel.
Result<HfRecurrence> ReadMamba(const HfFields& fields, const HfSizes& sizes) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t state, fields.Size({"mamba_d_state", "state_size"}, kMaxHfHeadDim));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t kernel, fields.Size({"mamba_d_conv", "conv_kernel"}, kMaxHfHeadDim));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t expand, fields.Size({"mamba_expand", "expand"}, 64, 2));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t inner,
                            fields.Size({"intermediate_size"}, kMaxHfFfnWidth, expand * sizes.width));
  const bool own_inner = fields.Find({"mamba_expand"}) == nullptr;  // there, intermediate_size is the feed-forward's
  const uint64_t channels = own_inner ? inner : expand * sizes.width;
  const Json* rank = fields.Find({"mamba_dt_rank", "time_step_rank"});
  uint64_t dt_rank = (sizes.width + 15) / 16;  // "auto"
  if (rank != nullptr && rank->AsString() == nullptr) {
    CACHALOT_ASSIGN_OR_RETURN(dt_rank, fields.Size({"mamba_dt_rank", "time_step_rank"}, kMaxHfRank));
  }
  return HfRecurrence{.state_values = channels * state,
                      .conv_values = channels * (kernel - 1),
                      .weights = channels * (3 * sizes.width + kernel + dt_rank + 2 * state + dt_rank + state)};
}

// Mamba-2 (Dao and Gu, 2024): a matrix per head.
Result<HfRecurrence> ReadMamba2(const HfFields& fields, const HfSizes& sizes) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t heads,
                            fields.Size({"mamba_n_heads", "mamba_num_heads", "num_heads"}, kMaxHfHeads));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t expand, fields.Size({"mamba_expand", "expand"}, 64, 2));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t inner, fields.Size({"mamba_d_ssm"}, kMaxHfFfnWidth, expand * sizes.width));
  const Json* dim = fields.Find({"mamba_d_head", "mamba_head_dim", "head_dim"});
  uint64_t head_dim = inner / heads;  // "auto"
  if (dim != nullptr && dim->AsString() == nullptr) {
    CACHALOT_ASSIGN_OR_RETURN(head_dim, fields.Size({"mamba_d_head", "mamba_head_dim", "head_dim"}, kMaxHfHeadDim));
  }
  if (head_dim == 0) return fields.Error("mamba_n_heads", fmt::format("is {}, more than {} channels", heads, inner));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t state,
                            fields.Size({"mamba_d_state", "ssm_state_size", "state_size"}, kMaxHfHeadDim));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t groups, fields.Size({"mamba_n_groups", "n_groups"}, kMaxHfHeads));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t kernel, fields.Size({"mamba_d_conv", "conv_kernel"}, kMaxHfHeadDim));
  const uint64_t channels = heads * head_dim, convolved = channels + 2 * groups * state;
  return HfRecurrence{
      .state_values = channels * state,
      .conv_values = convolved * (kernel - 1),
      .weights = sizes.width * (channels + convolved + heads) + convolved * kernel + channels * sizes.width};
}

// Gated DeltaNet (Yang et al., 2024), as in Qwen3-Next.
Result<HfRecurrence> ReadGatedDelta(const HfFields& fields, const HfSizes& sizes) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t key_heads, fields.Size({"linear_num_key_heads"}, kMaxHfHeads));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t value_heads, fields.Size({"linear_num_value_heads"}, kMaxHfHeads));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t key_dim, fields.Size({"linear_key_head_dim"}, kMaxHfHeadDim));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t value_dim, fields.Size({"linear_value_head_dim"}, kMaxHfHeadDim));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t kernel, fields.Size({"linear_conv_kernel_dim"}, kMaxHfHeadDim));
  const uint64_t keys = key_heads * key_dim, values = value_heads * value_dim, convolved = 2 * keys + values;
  return HfRecurrence{
      .state_values = values * key_dim,
      .conv_values = convolved * (kernel - 1),
      .weights = sizes.width * (convolved + values + 2 * value_heads) + convolved * kernel + values * sizes.width};
}

// Kimi Delta Attention: a delta rule whose gate differs by channel.
Result<HfRecurrence> ReadChannelDelta(const HfFields& fields, const HfSizes& sizes) {
  const Json* nested = fields.Find({"linear_attn_config"});
  if (nested == nullptr) return fields.Error("linear_attn_config", "is missing");
  const HfFields linear(*nested, "linear_attn_config");
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t heads, linear.Size({"num_heads"}, kMaxHfHeads));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t dim, linear.Size({"head_dim"}, kMaxHfHeadDim));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t kernel, linear.Size({"short_conv_kernel_size"}, kMaxHfHeadDim));
  const uint64_t channels = heads * dim, convolved = 3 * channels;
  return HfRecurrence{
      .state_values = channels * dim,
      .conv_values = convolved * (kernel - 1),
      .weights = sizes.width * (convolved + channels + heads + 2 * dim) + 2 * dim * channels + convolved * kernel};
}

// Lightning attention (MiniMax-01): one matrix per head, as wide as its heads.
Result<HfRecurrence> ReadLightning(const HfFields& fields, const HfSizes& sizes) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t heads, fields.Size({"num_attention_heads"}, kMaxHfHeads));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t dim, fields.Size({"head_dim"}, kMaxHfHeadDim));
  return HfRecurrence{.state_values = heads * dim * dim, .weights = 5 * sizes.width * heads * dim};
}

// LFM2: a gated convolution over the last inputs.
Result<HfRecurrence> ReadShortConvolution(const HfFields& fields, const HfSizes& sizes) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t kernel, fields.Size({"conv_L_cache"}, kMaxHfHeadDim));
  return HfRecurrence{.conv_values = sizes.width * (kernel - 1), .weights = sizes.width * (4 * sizes.width + kernel)};
}

}  // namespace

Result<HfRecurrence> ReadRecurrence(const HfFields& fields, const HfArchitecture& architecture, const HfSizes& sizes) {
  switch (architecture.recurrent) {
    case HfRecurrent::kMamba: return ReadMamba(fields, sizes);
    case HfRecurrent::kMamba2: return ReadMamba2(fields, sizes);
    case HfRecurrent::kGatedDelta: return ReadGatedDelta(fields, sizes);
    case HfRecurrent::kChannelDelta: return ReadChannelDelta(fields, sizes);
    case HfRecurrent::kLightning: return ReadLightning(fields, sizes);
    case HfRecurrent::kShortConvolution: return ReadShortConvolution(fields, sizes);
    case HfRecurrent::kNone: break;
  }
  return fields.Error("layer_types", fmt::format("lists recurrent layers, which {} has not", architecture.model_type));
}

}  // namespace cachalot::model
