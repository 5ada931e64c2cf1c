// ModelOptions: which model is loaded, and how it is held and run.
// Threads:   plain data.
// Ownership: none.
// Invariant: each setting is declared once (base/options.h).
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "cli/tier_options.h"

namespace cachalot::cli {

struct ModelOptions {
  std::string model;  // path or catalogue name
  uint32_t threads = 0;
  std::string isa = "auto";
  bool reference = false;
  uint64_t context = 0;
  ByteSize kv_memory;
  std::string kv_type = "f16";
  uint32_t block_tokens = 16;
  std::string device = "cpu";
  std::string calibration;
  std::string weight_cache;
  TierOptions tiers;  // for those commands that have them
  template <class F>
  void Visit(F&& f) {
    f("threads", threads, "Compute threads; 0: one per usable processor.");
    f("isa", isa, "Kernels: auto, scalar, avx2 or avx512. All give the same bits.");
    f("reference", reference, "Dequantised weights, activations and KV in f32: slow, for comparison.");
    f("context", context, "Longest sequence in tokens; 0: what the model was trained for.");
    f("kv-memory", kv_memory,
      "Hard budget of the KV cache, e.g. 4GiB. 0, the default: eight full-length sequences, at most a quarter of what "
      "is available.");
    f("kv-type", kv_type, "Element type of the KV cache: f32, f16 or bf16.");
    f("block-tokens", block_tokens, "Tokens per KV block, a multiple of 16.");
    f("calibration", calibration,
      "File with the cost of steps that `cachalot calibrate` measured. The default is the one in the cache folder, if "
      "there is one for this model, kernels, threads and KV type.");
    f("weight-cache", weight_cache,
      "Folder that keeps packed weights, about the model file's size, so that the next start maps them. Empty: none.");
    f("device", device, "Where the KV cache lies: cpu, or simlink (a separate arena behind a simulated link).");
  }
};

}  // namespace cachalot::cli
