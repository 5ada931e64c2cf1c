#include "model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/gguf.h"
#include "model/model_spec.h"
#include "model/testing/tiny_model.h"

namespace cachalot::model {
namespace {

using ::testing::HasSubstr;

TinyModelOptions Options(const std::string& architecture) {
  TinyModelOptions options;
  options.architecture = architecture;
  return options;
}

// A file with its bytes; what BindWeights returns views into it.
struct Loaded {
  explicit Loaded(const GgufBuilder& builder)
      : bytes(builder.Build()), file(GgufFile::Parse(std::as_bytes(std::span(bytes)), "x.gguf")) {}
  std::string bytes;
  Result<GgufFile> file;
};

std::string ErrorOf(const GgufBuilder& builder) {
  const Loaded loaded(builder);
  const Result<ModelSpec> spec = ReadModelSpec(*loaded.file);
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  const Result<Weights> weights = BindWeights(*loaded.file, *spec);
  EXPECT_FALSE(weights.ok());
  EXPECT_EQ(weights.status().code(), Code::kInvalid);
  return weights.status().message();
}

TEST(Weights, BindsEveryRoleOfEachArchitecture) {
  for (const char* architecture : {"llama", "qwen2", "gemma3"}) {
    const Loaded loaded(TinyModel(Options(architecture)));
    const Result<ModelSpec> spec = ReadModelSpec(*loaded.file);
    ASSERT_TRUE(spec.ok()) << spec.status().message();
    const Result<Weights> weights = BindWeights(*loaded.file, *spec);
    ASSERT_TRUE(weights.ok()) << weights.status().message();
    EXPECT_EQ(weights->output, weights->embedding);
    ASSERT_EQ(weights->layers.size(), 2u);
    const LayerWeights& layer = weights->layers[1];
    EXPECT_EQ(layer.q->name, "blk.1.attn_q.weight");
    EXPECT_EQ(layer.down->name, "blk.1.ffn_down.weight");
    EXPECT_EQ(layer.k_bias != nullptr, spec->qkv_bias);
    EXPECT_EQ(layer.q_norm != nullptr, spec->qk_norm);
    EXPECT_EQ(layer.ffn_post_norm != nullptr, spec->post_norms);
  }
}

TEST(Weights, BindsAnOwnOutputMatrixAndLlamaBiases) {
  TinyModelOptions options = Options("llama");
  options.tied_output = false;
  GgufBuilder builder = TinyModel(options);
  for (const char* prefix : {"blk.0.", "blk.1."}) {
    builder.AddF32(std::string(prefix) + "attn_q.bias", {40}, std::vector<float>(40));
    builder.AddF32(std::string(prefix) + "attn_k.bias", {8}, std::vector<float>(8));
    builder.AddF32(std::string(prefix) + "attn_v.bias", {8}, std::vector<float>(8));
  }
  const Loaded loaded(builder);
  const Result<ModelSpec> spec = ReadModelSpec(*loaded.file);
  ASSERT_TRUE(spec.ok() && spec->qkv_bias);
  const Result<Weights> weights = BindWeights(*loaded.file, *spec);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_EQ(weights->output->name, "output.weight");
  EXPECT_EQ(weights->layers[1].v_bias->name, "blk.1.attn_v.bias");
}

TEST(Weights, NamesAMissingTensor) {
  EXPECT_EQ(ErrorOf(TinyModel(Options("llama")).Remove("blk.1.ffn_up.weight")),
            "x.gguf: tensor 'blk.1.ffn_up.weight' is missing, expected with shape [40, 48]");
  EXPECT_THAT(ErrorOf(TinyModel(Options("qwen2")).Remove("blk.0.attn_q.bias")),
              HasSubstr("'blk.0.attn_q.bias' is missing"));
}

TEST(Weights, NamesAWrongShape) {
  GgufBuilder builder = TinyModel(Options("llama"));
  builder.Remove("blk.0.attn_k.weight").AddF32("blk.0.attn_k.weight", {8, 40}, std::vector<float>(320));
  EXPECT_EQ(ErrorOf(builder), "x.gguf: tensor 'blk.0.attn_k.weight' has the shape [8, 40], expected [40, 8]");
}

TEST(Weights, NormsMustBeF32) {
  GgufBuilder builder = TinyModel(Options("llama"));
  builder.Remove("output_norm.weight").AddTensor("output_norm.weight", TensorType::kF16, {40}, std::string(80, '\0'));
  EXPECT_THAT(ErrorOf(builder), HasSubstr("tensor 'output_norm.weight' is F16, expected F32 for a norm or bias"));
}

TEST(Weights, ATensorThatTheArchitectureDoesNotUseIsRefused) {
  GgufBuilder builder = TinyModel(Options("llama"));
  builder.AddF32("blk.0.ffn_gate.bias", {48}, std::vector<float>(48));
  EXPECT_EQ(ErrorOf(builder),
            "x.gguf: tensor 'blk.0.ffn_gate.bias' is not part of architecture 'llama' as it is supported");
  EXPECT_THAT(ErrorOf(TinyModel(Options("qwen2")).AddF32("rope_freqs.weight", {4}, std::vector<float>(4, 1.0f))),
              HasSubstr("'rope_freqs.weight' is not part"));
}

}  // namespace
}  // namespace cachalot::model
