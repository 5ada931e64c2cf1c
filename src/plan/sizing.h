// Sizing: how many bytes of KV a sequence takes on a device, and what fits into a pool.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: bytes are those of the block layout that the server uses (base/kv_layout.h), slots those that its
//            admission sets aside (kv/geometry.h); an encoded format shrinks blocks in proportion.
// Cost:      SizeKv is O(layers^2), the rest O(groups * log tokens).
#pragma once

#include <cstdint>

#include "base/kv_layout.h"
#include "base/status.h"
#include "kv/geometry.h"
#include "plan/formats.h"
#include "plan/model_shape.h"

namespace cachalot::plan {

struct KvOptions {
  Format format;
  uint32_t block_tokens = 16;
  uint32_t step_tokens = 512;      // most rows of one sequence in a step
  uint64_t reference_tokens = 0;   // for which layer groups are cut
  uint32_t state_value_bytes = 4;  // of recurrent states
};

struct KvSizes {
  KvShape shape;
  Format format;
  kv::KvGeometry geometry;   // its slots are 0
  uint64_t token_bytes = 0;  // of one token while every layer keeps it
  uint64_t slot_bytes = 0;   // of one block of one layer group
  uint64_t state_bytes = 0;  // of recurrent layers, per sequence
  uint32_t step_tokens = 512;

  // Of one block of tokens in all layer groups, padding included.
  uint64_t block_bytes() const { return slot_bytes * geometry.windows.size(); }
};

Result<KvSizes> SizeKv(const ModelShape& shape, const KvOptions& options);

// The same layers and windows with the bytes that they take in that format, rounded up to 4 for a layer and token: for
// simulations, to which nothing but bytes matters.
KvShape EncodedShape(const KvShape& shape, const Format& format);

// What a sequence of `tokens` really holds: no rounding to blocks, no padding.
uint64_t LiveBytes(const KvSizes& sizes, uint64_t tokens);
// What it holds in whole blocks.
uint64_t PagedBytes(const KvSizes& sizes, uint64_t tokens);
// What admission sets aside for it: the most that it holds while it grows.
uint64_t ReservedBytes(const KvSizes& sizes, uint64_t tokens);

// Sequences of `tokens` that a pool holds; kMaxSequences where one takes nothing.
uint64_t SequencesThatFit(const KvSizes& sizes, uint64_t pool_bytes, uint64_t tokens);
// The longest of `sequences` equal sequences that a pool holds together, at most `limit` tokens; 0 when none fits.
uint64_t TokensThatFit(const KvSizes& sizes, uint64_t pool_bytes, uint64_t sequences, uint64_t limit);
// Bytes that `sequences` of `tokens` need. kInvalid past 64 bits.
Result<uint64_t> PoolBytes(const KvSizes& sizes, uint64_t sequences, uint64_t tokens);

inline constexpr uint64_t kMaxSequences = 1'000'000'000;

}  // namespace cachalot::plan
