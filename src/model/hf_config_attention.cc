#include <algorithm>

#include <fmt/format.h>

#include "model/hf_config_parts.h"

namespace cachalot::model {
namespace {

Result<uint64_t> ReadHeads(const HfFields& fields) {
  return fields.Size({"num_attention_heads", "n_head", "n_heads"}, kMaxHfHeads);
}

Result<uint64_t> ReadHeadDim(const HfFields& fields, const HfSizes& sizes, uint64_t heads, bool global) {
  if (global && fields.Find({"global_head_dim"}) != nullptr) return fields.Size({"global_head_dim"}, kMaxHfHeadDim);
  if (fields.Find({"head_dim", "attention_head_dim"}) == nullptr && sizes.width % heads != 0) {
    return fields.Error("num_attention_heads", fmt::format("is {}, which does not divide the hidden size of {} "
                                                           "(expected that, or a \"head_dim\")",
                                                           heads, sizes.width));
  }
  return fields.Size({"head_dim", "attention_head_dim"}, kMaxHfHeadDim, sizes.width / heads);
}

Result<uint64_t> ReadKvHeads(const HfFields& fields, const HfArchitecture& architecture, uint64_t heads, bool global) {
  const bool falcon = architecture.model_type == "falcon", bigcode = architecture.model_type == "gpt_bigcode";
  CACHALOT_ASSIGN_OR_RETURN(const bool multi_query, fields.Flag("multi_query", falcon || bigcode));
  CACHALOT_ASSIGN_OR_RETURN(const bool grouped, fields.Flag("new_decoder_architecture", false));
  if (falcon || bigcode) fields.Touch({"num_key_value_heads", "num_kv_heads"});  // older ones have one, or all
  if ((falcon || bigcode) && !grouped) return multi_query ? uint64_t{1} : heads;
  CACHALOT_ASSIGN_OR_RETURN(uint64_t kv_heads,
                            fields.Size({"num_key_value_heads", "num_kv_heads"}, kMaxHfHeads, heads));
  if (global && fields.Find({"num_global_key_value_heads"}) != nullptr) {
    CACHALOT_ASSIGN_OR_RETURN(kv_heads, fields.Size({"num_global_key_value_heads"}, kMaxHfHeads));
  }
  if (heads % kv_heads != 0) {
    return fields.Error("num_key_value_heads",
                        fmt::format("is {}, expected a divisor of the {} query heads", kv_heads, heads));
  }
  return kv_heads;
}

// A window that is never full is no window.
Result<uint32_t> ReadWindow(const HfFields& fields, const HfSizes& sizes, const HfLayerKind& kind) {
  if (!kind.sliding) return uint32_t{0};
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t window,
                            fields.Size({"sliding_window", "attention_chunk_size"}, kMaxHfContext));
  return static_cast<uint32_t>(sizes.context_tokens != 0 && window >= sizes.context_tokens ? 0 : window);
}

// Multi-head latent attention: one compressed vector per token serves all heads, and a rotated part beside it.
Result<HfAttention> ReadLatent(const HfFields& fields, const HfSizes& sizes, uint64_t heads) {
  fields.Touch({"num_key_value_heads", "num_kv_heads", "head_dim"});  // whatever they are, there is one latent
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t rank, fields.Size({"kv_lora_rank"}, kMaxHfRank));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t q_rank, fields.Count({"q_lora_rank"}, kMaxHfRank));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t rotated, fields.Size({"qk_rope_head_dim"}, kMaxHfHeadDim));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t plain, fields.Size({"qk_nope_head_dim"}, kMaxHfHeadDim));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t value, fields.Size({"v_head_dim"}, kMaxHfHeadDim));
  // Sparse attention (DSA) keeps a key per token for the indexer that chooses what is read.
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t index_dim, fields.Count({"index_head_dim"}, kMaxHfHeadDim));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t index_heads, fields.Count({"index_n_heads"}, kMaxHfHeads));
  HfAttention attention;
  attention.query_heads = static_cast<uint32_t>(heads);
  attention.kv = {
      .kv_heads = 1, .k_dim = static_cast<uint32_t>(rank + rotated), .v_dim = static_cast<uint32_t>(index_dim)};
  attention.score_dim = static_cast<uint32_t>(plain + rotated);
  attention.value_dim = static_cast<uint32_t>(value);
  const uint64_t query = heads * (plain + rotated);
  attention.weights = (q_rank == 0 ? sizes.width * query : q_rank * (sizes.width + query)) +
                      sizes.width * (rank + rotated) + rank * heads * (plain + value) + heads * value * sizes.width +
                      q_rank * index_heads * index_dim + sizes.width * (index_dim + index_heads);
  return attention;
}

}  // namespace

Result<HfAttention> ReadAttention(const HfFields& fields, const HfArchitecture& architecture, const HfSizes& sizes,
                                  const HfLayerKind& kind) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t heads, ReadHeads(fields));
  if (architecture.latent) return ReadLatent(fields, sizes, heads);
  const bool global = !kind.sliding;
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t head_dim, ReadHeadDim(fields, sizes, heads, global));
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t kv_heads, ReadKvHeads(fields, architecture, heads, global));
  CACHALOT_ASSIGN_OR_RETURN(const uint32_t window, ReadWindow(fields, sizes, kind));
  const bool delta = architecture.recurrent == HfRecurrent::kGatedDelta;
  CACHALOT_ASSIGN_OR_RETURN(const bool output_gate, fields.Flag("attn_output_gate", delta));
  CACHALOT_ASSIGN_OR_RETURN(const bool one_projection, fields.Flag("attention_k_eq_v", false));
  if (head_dim % 2 != 0) return fields.Error("head_dim", fmt::format("is {}, expected an even number", head_dim));
  HfAttention attention;
  attention.query_heads = static_cast<uint32_t>(heads);
  attention.kv = {.kv_heads = static_cast<uint32_t>(kv_heads),
                  .k_dim = static_cast<uint32_t>(head_dim),
                  .v_dim = static_cast<uint32_t>(head_dim),
                  .window = window};
  attention.owns_kv = !kind.shares_kv;
  attention.score_dim = attention.value_dim = static_cast<uint32_t>(head_dim);
  const uint64_t query_matrices = output_gate ? 3 : 2;  // query, output, and a gate beside the query
  const uint64_t kv_matrices = kind.shares_kv ? 0 : global && one_projection ? 1 : 2;
  attention.weights = sizes.width * head_dim * (query_matrices * heads + kv_matrices * kv_heads);
  return attention;
}

}  // namespace cachalot::model
