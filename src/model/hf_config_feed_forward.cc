#include <optional>

#include <fmt/format.h>

#include "model/hf_config_parts.h"

namespace cachalot::model {
namespace {

// LFM2 writes a width of which two thirds are used, rounded up to a multiple.
Result<uint64_t> ReadAdjustedWidth(const HfFields& fields) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t width, fields.Size({"intermediate_size", "block_ff_dim"}, kMaxHfFfnWidth));
  CACHALOT_ASSIGN_OR_RETURN(const bool adjust, fields.Flag("block_auto_adjust_ff_dim", true));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t multiple, fields.Size({"block_multiple_of"}, kMaxHfWidth, 256));
  return adjust ? (2 * width / 3 + multiple - 1) / multiple * multiple : width;
}

// One width, or one per layer.
Result<uint64_t> ReadDenseWidth(const HfFields& fields, const HfArchitecture& architecture, const HfSizes& sizes,
                                uint64_t layer) {
  const Json* value = fields.Find({"intermediate_size"});
  if (value != nullptr && value->AsArray() != nullptr) {
    CACHALOT_ASSIGN_OR_RETURN(const auto widths, fields.Integers({"intermediate_size"}, sizes.layers));
    if (widths.size() != sizes.layers || widths[layer] < 1 || widths[layer] > static_cast<int64_t>(kMaxHfFfnWidth)) {
      return fields.Error("intermediate_size",
                          fmt::format("is an array, expected {} integers from 1 to {}", sizes.layers, kMaxHfFfnWidth));
    }
    return static_cast<uint64_t>(widths[layer]);
  }
  if (architecture.recurrent == HfRecurrent::kShortConvolution) return ReadAdjustedWidth(fields);
  // Architectures of two matrices make them four times as wide.
  const std::optional<uint64_t> usual = architecture.gated ? std::nullopt : std::optional(4 * sizes.width);
  return fields.Size({"intermediate_size_mlp", "intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner"},
                     kMaxHfFfnWidth, usual);
}

// The width of all shared experts together.
Result<uint64_t> ReadSharedWidth(const HfFields& fields, const HfArchitecture& architecture, uint64_t expert_width) {
  if (architecture.model_type == "llama4_text") return expert_width;
  const HfFields::Keys direct = {"shared_expert_intermediate_size", "shared_intermediate_size",
                                 "moe_shared_expert_intermediate_size"};
  if (fields.Find(direct) != nullptr) return fields.Count(direct, kMaxHfFfnWidth);
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t shared, fields.Count({"n_shared_experts", "num_shared_experts"}, 256));
  return shared * expert_width;
}

struct Experts {
  uint64_t count = 0, chosen = 0;
};

Result<Experts> ReadExperts(const HfFields& fields) {
  Experts experts;
  CACHALOT_ASSIGN_OR_RETURN(
      experts.count,
      fields.Count({"num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts"}, kMaxHfExperts));
  if (experts.count == 0) return experts;
  CACHALOT_ASSIGN_OR_RETURN(experts.chosen, fields.Size({"num_experts_per_tok", "num_experts_per_token",
                                                         "experts_per_token", "top_k_experts"},
                                                        experts.count));
  return experts;
}

}  // namespace

Result<HfFeedForward> ReadFeedForward(const HfFields& fields, const HfArchitecture& architecture, const HfSizes& sizes,
                                      const HfLayerKind& kind, uint64_t layer) {
  const uint64_t matrices = architecture.gated ? 3 : 2;
  HfFeedForward feed;
  // Granite's hybrids have a shared expert in every layer and no other dense part.
  const bool shared_only = architecture.model_type == "granitemoehybrid";
  if (!shared_only && (kind.feed == HfFeed::kDense || kind.feed == HfFeed::kBoth)) {
    CACHALOT_ASSIGN_OR_RETURN(uint64_t width, ReadDenseWidth(fields, architecture, sizes, layer));
    CACHALOT_ASSIGN_OR_RETURN(const bool wide, fields.Flag("use_double_wide_mlp", false));
    if (wide && kind.shares_kv) width *= 2;
    feed.weights += matrices * sizes.width * width;
    feed.inner_values += (matrices - 1) * width;
  }
  if (kind.feed == HfFeed::kDense && !shared_only) return feed;

  CACHALOT_ASSIGN_OR_RETURN(const Experts experts, ReadExperts(fields));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t expert_width,
                            fields.Size({"moe_intermediate_size", "intermediate_size"}, kMaxHfFfnWidth));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t shared_width, ReadSharedWidth(fields, architecture, expert_width));
  // Nemotron 3: experts work on a narrower latent, between two matrices.
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t latent, fields.Count({"moe_latent_size"}, kMaxHfWidth));
  const uint64_t expert_input = latent == 0 ? sizes.width : latent;
  const uint64_t per_expert = matrices * expert_input * expert_width;
  feed.weights += experts.count * sizes.width + matrices * sizes.width * shared_width + 2 * sizes.width * latent;
  feed.expert_weights = experts.count * per_expert;
  feed.chosen_expert_weights = experts.chosen * per_expert;
  feed.inner_values += (matrices - 1) * (experts.chosen * expert_width + shared_width);
  return feed;
}

}  // namespace cachalot::model
