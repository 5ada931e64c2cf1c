#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "exec/numerics.h"
#include "exec/sampler.h"
#include "exec/testing/executor_rig.h"
#include "exec/testing/tiny_model.h"
#include "kernels/kernel_table.h"

namespace cachalot::exec {
namespace {

constexpr const char* kGoldenFile = CACHALOT_SOURCE_DIR "/tests/data/exec/golden_digests.json";
constexpr uint32_t kTokens = 200;

std::string DigestOf(const TinyModelSpec& spec, const CpuModelOptions& options) {
  ExecutorRig rig(MakeTinyModel(spec), {.model = options});
  std::vector<TokenId> tokens;
  for (uint32_t i = 0; i < kTokens; ++i) tokens.push_back((i * i + 5 * i) % spec.vocabulary);
  const std::vector<float> logits = rig.RunWhole(0, tokens, 64);
  Sampler sampler(*kernels::RunnableTables().front());
  const SampledToken scored = sampler.Score(logits, tokens.back(), 20);

  Sha256 hash;
  hash.UpdateField(rig.KvBytes(0));
  hash.Update(std::as_bytes(std::span(logits)));
  hash.Update(std::as_bytes(std::span(&scored.logprob, 1)));
  for (const TokenLogprob& t : scored.top) hash.Update(std::as_bytes(std::span(&t.logprob, 1)));
  return HexOf(hash.Finish()).substr(0, 32);
}

nlohmann::json AllDigests() {
  nlohmann::json digests;
  digests["numerics"] = kCpuNumericsId;
  digests["reference_numerics"] = kCpuReferenceNumericsId;
  for (TensorType type :
       {TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,
        TensorType::kQ5_1, TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K}) {
    const TinyModelSpec spec{.type = type, .layers = 2, .width = 256, .head_dim = 64, .ffn_width = 256};
    for (KvType kv : {KvType::kF32, KvType::kF16, KvType::kBF16}) {
      digests[InfoOf(type).name][KvTypeName(kv)] = DigestOf(spec, {.kv_type = kv});
    }
    digests[InfoOf(type).name]["reference"] = DigestOf(spec, {.reference = true});
  }
  digests["qwen2"]["f16"] = DigestOf({.architecture = "qwen2"}, {});
  digests["gemma3"]["f16"] = DigestOf({.architecture = "gemma3", .layers = 7}, {});
  return digests;
}

TEST(Golden, NoBitOfKvOrLogitsChangesWithoutABumpOfTheNumericsId) {
  std::ifstream in(kGoldenFile);
  ASSERT_TRUE(in.good()) << kGoldenFile;
  const nlohmann::json recorded = nlohmann::json::parse(in, nullptr, false);
  const nlohmann::json actual = AllDigests();
  if (actual == recorded) return;
  const std::string path = testing::TempDir() + "golden_digests.json";
  std::ofstream(path) << actual.dump(1) << "\n";
  ADD_FAILURE() << "the bits of KV, logits or logprobs are not those of " << kGoldenFile
                << ".\nIf that is intended, bump "
                << "kCpuNumericsId in exec/numerics.h, run this test again, and copy " << path << " over that file.\n"
                << nlohmann::json::diff(recorded, actual).dump(1);
}

}  // namespace
}  // namespace cachalot::exec
