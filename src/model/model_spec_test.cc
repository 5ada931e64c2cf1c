#include "model/model_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "model/gguf.h"
#include "model/testing/tiny_model.h"
#include "model/weights.h"

namespace cachalot::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TinyModelOptions Options(const std::string& architecture) {
  TinyModelOptions options;
  options.architecture = architecture;
  return options;
}

Result<ModelSpec> SpecOf(const GgufBuilder& builder) {
  const std::string bytes = builder.Build();
  const Result<GgufFile> file = GgufFile::Parse(std::as_bytes(std::span(bytes)), "x.gguf");
  if (!file.ok()) return file.status();
  return ReadModelSpec(*file);
}

std::string ErrorOf(const GgufBuilder& builder) {
  const Result<ModelSpec> spec = SpecOf(builder);
  EXPECT_FALSE(spec.ok());
  EXPECT_EQ(spec.status().code(), Code::kInvalid);
  return spec.status().message();
}

std::vector<uint32_t> WindowsOf(const ModelSpec& spec) {
  std::vector<uint32_t> windows;
  for (const LayerSpec& layer : spec.layer) windows.push_back(layer.window);
  return windows;
}

TEST(ModelSpec, ReadsLlama) {
  const Result<ModelSpec> spec = SpecOf(TinyModel(Options("llama")));
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->architecture, "llama");
  EXPECT_EQ(spec->name, "tiny llama");
  EXPECT_EQ(spec->layers, 2u);
  EXPECT_EQ(spec->width, 40u);
  EXPECT_EQ(spec->heads, 5u);
  EXPECT_EQ(spec->kv_heads, 1u);
  EXPECT_EQ(spec->head_dim, 8u);
  EXPECT_EQ(spec->ffn_width, 48u);
  EXPECT_EQ(spec->vocabulary, 67u);
  EXPECT_EQ(spec->context_tokens, 256u);
  EXPECT_EQ(spec->norm_epsilon, 1e-5f);
  EXPECT_EQ(spec->attention_scale, 1.0f / std::sqrt(8.0f));
  EXPECT_EQ(spec->embedding_scale, 1.0f);
  EXPECT_EQ(spec->activation, Activation::kSilu);
  EXPECT_EQ(spec->rope_pairs, RopePairs::kInterleaved);
  EXPECT_FALSE(spec->qkv_bias || spec->qk_norm || spec->post_norms);
  EXPECT_TRUE(spec->tied_output);
  EXPECT_THAT(spec->ropes, ElementsAre(RopeSpec{.theta = 10000.0, .position_scale = 1.0, .dims = 8, .factors = {}}));
  EXPECT_THAT(WindowsOf(*spec), ElementsAre(0, 0));
}

TEST(ModelSpec, ReadsQwen2WithBiasesAndHalves) {
  TinyModelOptions options = Options("qwen2");
  options.tied_output = false;
  const Result<ModelSpec> spec = SpecOf(TinyModel(options));
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_TRUE(spec->qkv_bias);
  EXPECT_FALSE(spec->qk_norm || spec->post_norms || spec->tied_output);
  EXPECT_EQ(spec->rope_pairs, RopePairs::kHalves);
  EXPECT_EQ(spec->activation, Activation::kSilu);
}

TEST(ModelSpec, ReadsGemma3WithFiveSlidingLayersThenAGlobalOne) {
  TinyModelOptions options = Options("gemma3");
  options.layers = 8;
  GgufBuilder builder = TinyModel(options);
  builder.SetFloat("gemma3.rope.freq_base", 1e6f).SetString("gemma3.rope.scaling.type", "linear");
  builder.SetFloat("gemma3.rope.scaling.factor", 8.0f);
  const Result<ModelSpec> spec = SpecOf(builder);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_THAT(WindowsOf(*spec), ElementsAre(16, 16, 16, 16, 16, 0, 16, 16));
  EXPECT_THAT(spec->ropes, ElementsAre(RopeSpec{.theta = 1e6, .position_scale = 0.125, .dims = 8, .factors = {}},
                                       RopeSpec{.theta = 1e4, .position_scale = 1.0, .dims = 8, .factors = {}}));
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(spec->layer[i].rope, i == 5 ? 0u : 1u);
  EXPECT_TRUE(spec->qk_norm && spec->post_norms);
  EXPECT_FALSE(spec->qkv_bias);
  EXPECT_EQ(spec->activation, Activation::kGeluTanh);
  EXPECT_EQ(spec->rope_pairs, RopePairs::kHalves);
  EXPECT_EQ(spec->embedding_scale, std::sqrt(40.0f));
  EXPECT_EQ(spec->attention_scale, 1.0f / std::sqrt(8.0f));
}

TEST(ModelSpec, Gemma3FollowsAPatternInTheFile) {
  TinyModelOptions options = Options("gemma3");
  options.layers = 4;
  GgufBuilder period = TinyModel(options).SetUInt("gemma3.attention.sliding_window_pattern", 2);
  EXPECT_THAT(WindowsOf(*SpecOf(period)), ElementsAre(16, 0, 16, 0));
  const std::array<bool, 4> flags = {false, true, true, false};
  GgufBuilder listed = TinyModel(options).SetBools("gemma3.attention.sliding_window_pattern", flags);
  EXPECT_THAT(WindowsOf(*SpecOf(listed)), ElementsAre(0, 16, 16, 0));
  GgufBuilder short_list =
      TinyModel(options).SetBools("gemma3.attention.sliding_window_pattern", std::span(flags).first(3));
  EXPECT_THAT(ErrorOf(short_list), HasSubstr("is an array of 3 integers, expected a boolean for each of 4 layers"));
  EXPECT_EQ(SpecOf(TinyModel(options).SetFloat("gemma3.rope.freq_base_swa", 500.0f))->ropes[1].theta, 500.0);
}

TEST(ModelSpec, Gemma3Of27BScalesScoresByWidthPerHead) {
  TinyModelOptions options = Options("gemma3");
  options.layers = 62;
  options.width = 12;
  options.heads = 2;
  options.head_dim = 4;
  EXPECT_EQ(SpecOf(TinyModel(options))->attention_scale, 1.0f / std::sqrt(6.0f));
  options.layers = 48;
  EXPECT_EQ(SpecOf(TinyModel(options))->attention_scale, 0.5f);
}

TEST(ModelSpec, AcceptsOddShapes) {
  TinyModelOptions options = Options("llama");
  options.layers = 3;
  options.width = 96;
  options.head_dim = 80;
  options.vocabulary = 1003;
  const Result<ModelSpec> spec = SpecOf(TinyModel(options));
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->head_dim, 80u);
  EXPECT_EQ(spec->vocabulary, 1003u);
}

TEST(ModelSpec, DefaultsFollowTheFormat) {
  GgufBuilder builder = TinyModel(Options("llama"));
  for (const char* key :
       {"attention.key_length", "attention.value_length", "rope.freq_base", "attention.head_count_kv"}) {
    builder.Remove(std::string("llama.") + key);
  }
  const Result<ModelSpec> spec = SpecOf(builder);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->head_dim, 8u);
  EXPECT_EQ(spec->kv_heads, 5u);
  EXPECT_EQ(spec->ropes[0].theta, 10000.0);
}

TEST(ModelSpec, ReadsLlama31RopeFactors) {
  const std::vector<float> factors = {1, 1, 2.5f, 8};
  const Result<ModelSpec> spec = SpecOf(TinyModel(Options("llama")).AddF32("rope_freqs.weight", {4}, factors));
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec->ropes[0].factors, factors);
  const std::vector<float> zero = {1, 0, 1, 1};
  EXPECT_THAT(ErrorOf(TinyModel(Options("llama")).AddF32("rope_freqs.weight", {4}, zero)),
              HasSubstr("tensor 'rope_freqs.weight' holds 0, expected"));
  EXPECT_THAT(ErrorOf(TinyModel(Options("llama")).AddF32("rope_freqs.weight", {2, 2}, factors)),
              HasSubstr("is F32 of shape [2, 2], expected F32 of shape [4]"));
}

TEST(ModelSpec, LinearScalingDividesPositions) {
  const auto scale = [](const GgufBuilder& builder) { return SpecOf(builder)->ropes[0].position_scale; };
  GgufBuilder model = TinyModel(Options("llama"));
  EXPECT_EQ(scale(GgufBuilder(model).SetFloat("llama.rope.scaling.factor", 4.0f)), 0.25);
  EXPECT_EQ(scale(GgufBuilder(model).SetFloat("llama.rope.scale_linear", 2.0f)), 0.5);
  EXPECT_EQ(scale(GgufBuilder(model).SetFloat("llama.rope.scaling.factor", 0.0f)), 1.0);
  model.SetString("llama.rope.scaling.type", "none");
  EXPECT_EQ(scale(GgufBuilder(model).SetFloat("llama.rope.scaling.factor", 4.0f)), 1.0);
  EXPECT_THAT(ErrorOf(TinyModel(Options("llama")).SetFloat("llama.rope.scaling.factor", -1.0f)),
              HasSubstr("'llama.rope.scaling.factor' is -1"));
}

TEST(ModelSpec, OtherRopeScalingIsRefusedByName) {
  for (const char* type : {"yarn", "longrope", "llama3"}) {
    EXPECT_THAT(ErrorOf(TinyModel(Options("qwen2")).SetString("qwen2.rope.scaling.type", type)),
                HasSubstr(std::string("'qwen2.rope.scaling.type' is '") + type + "', which is not supported"));
  }
}

TEST(ModelSpec, AMistralWindowHoldsInEveryLayer) {
  EXPECT_THAT(WindowsOf(*SpecOf(TinyModel(Options("llama")).SetUInt("llama.attention.sliding_window", 32))),
              ElementsAre(32, 32));
  EXPECT_THAT(WindowsOf(*SpecOf(TinyModel(Options("llama")).SetUInt("llama.attention.sliding_window", 256))),
              ElementsAre(0, 0));
  EXPECT_THAT(ErrorOf(TinyModel(Options("qwen2")).SetUInt("qwen2.attention.sliding_window", 32)),
              HasSubstr("'qwen2.attention.sliding_window' is 32, which is not supported"));
  EXPECT_THAT(ErrorOf(TinyModel(Options("gemma3")).Remove("gemma3.attention.sliding_window")),
              HasSubstr("'gemma3.attention.sliding_window' is missing"));
}

TEST(ModelSpec, NamesUnknownArchitecturesWithThoseSupported) {
  EXPECT_EQ(ErrorOf(GgufBuilder().SetString("general.architecture", "mamba")),
            "x.gguf: architecture 'mamba' is not supported, expected one of llama, qwen2, gemma3");
  EXPECT_THAT(ErrorOf(GgufBuilder()), HasSubstr("metadata key 'general.architecture' is missing"));
  EXPECT_THAT(ErrorOf(GgufBuilder().SetUInt("general.architecture", 1)), HasSubstr("expected a string"));
}

TEST(ModelSpec, SettingsThatChangeTheArithmeticAreRefusedByName) {
  const GgufBuilder model = TinyModel(Options("llama"));
  EXPECT_THAT(ErrorOf(GgufBuilder(model).SetUInt("llama.expert_count", 8)),
              HasSubstr("'llama.expert_count' is 8, which is not supported (expected 0)"));
  EXPECT_THAT(ErrorOf(GgufBuilder(model).SetFloat("llama.final_logit_softcapping", 30.0f)), HasSubstr("is 30"));
  EXPECT_THAT(ErrorOf(GgufBuilder(model).SetFloat("llama.logit_scale", 0.5f)), HasSubstr("is 0.5"));
  EXPECT_THAT(ErrorOf(GgufBuilder(model).SetBool("llama.attention.causal", false)), HasSubstr("only causal"));
  EXPECT_THAT(ErrorOf(GgufBuilder(model).SetUInt("split.count", 3)), HasSubstr("one of 3 parts of a split model"));
  EXPECT_TRUE(SpecOf(GgufBuilder(model).SetUInt("llama.expert_count", 0).SetFloat("llama.logit_scale", 1.0f)).ok());
}

TEST(ModelSpec, NumbersOutOfRangeAreNamed) {
  struct Bad {
    const char* key;
    uint32_t value;
    const char* message;
  };
  for (const Bad& bad :
       {Bad{"block_count", 0, "is 0, expected 1 to 1024"}, Bad{"block_count", 5000, "is 5000, expected"},
        Bad{"embedding_length", 0, "is 0, expected"}, Bad{"embedding_length", 2000000, "is 2000000"},
        Bad{"feed_forward_length", 0, "is 0"}, Bad{"context_length", 0, "is 0"}, Bad{"attention.head_count", 0, "is 0"},
        Bad{"attention.head_count_kv", 0, "is 0"},
        Bad{"attention.head_count_kv", 3, "is 3, which does not divide the 5 query heads"},
        Bad{"attention.key_length", 0, "is 0"}, Bad{"attention.value_length", 4, "is 4, expected the key length 8"},
        Bad{"rope.dimension_count", 7, "is 7, expected an even number"},
        Bad{"rope.dimension_count", 10, "is 10, expected 1 to 8"}}) {
    const std::string key = std::string("llama.") + bad.key;
    EXPECT_THAT(ErrorOf(TinyModel(Options("llama")).SetUInt(key, bad.value)),
                HasSubstr("'" + key + "' " + bad.message));
  }
  EXPECT_THAT(ErrorOf(TinyModel(Options("llama")).SetFloat("llama.rope.freq_base", NAN)), HasSubstr("is nan"));
  EXPECT_THAT(ErrorOf(TinyModel(Options("llama")).SetFloat("llama.attention.layer_norm_rms_epsilon", 0.0f)),
              HasSubstr("is 0, expected 0 < x < 1"));
}

TEST(ModelSpec, MissingKeysAreNamed) {
  for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length",
                          "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    EXPECT_THAT(ErrorOf(TinyModel(Options("llama")).Remove(std::string("llama.") + key)),
                HasSubstr(std::string("metadata key 'llama.") + key + "' is missing"));
  }
  EXPECT_THAT(ErrorOf(TinyModel(Options("llama")).Remove("token_embd.weight")),
              HasSubstr("'token_embd.weight' is missing"));
}

}  // namespace
}  // namespace cachalot::model
