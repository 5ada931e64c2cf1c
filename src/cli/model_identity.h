// ModelIdentity gathers what the identity of a model's KV is made of (kv/identity.h).
// Threads:   pure function.
// Ownership: none.
// Invariant: as IdentityOf.
// Cost:      one SHA-256.
#pragma once

#include "base/hash.h"
#include "base/kv_layout.h"

namespace cachalot::model {
struct ModelSpec;
}

namespace cachalot::cli {

// `model` and `tokenizer`: fingerprints. There are no adapters and no codecs yet.
Digest ModelIdentity(const Digest& model, const Digest& tokenizer, const model::ModelSpec& spec, const KvLayout& layout,
                     const char* numerics_id);

}  // namespace cachalot::cli
