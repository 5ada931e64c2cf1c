#include "cli/model_identity.h"

#include "kv/identity.h"
#include "model/model_spec.h"

namespace cachalot::cli {

Digest ModelIdentity(const Digest& model, const Digest& tokenizer, const model::ModelSpec& spec, const KvLayout& layout,
                     const char* numerics_id) {
  kv::IdentityFields fields{.model = model, .tokenizer = tokenizer, .layout = layout, .numerics = numerics_id};
  for (const model::RopeSpec& rope : spec.ropes) {
    fields.positions.push_back({rope.theta, rope.position_scale, rope.dims, rope.factors});
  }
  return kv::IdentityOf(fields);
}

}  // namespace cachalot::cli
