#include "model/hf_config.h"

#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

namespace cachalot::model {
namespace {

using nlohmann::json;

json Llama() {
  return {{"model_type", "llama"},    {"hidden_size", 64},
          {"intermediate_size", 128}, {"num_hidden_layers", 4},
          {"num_attention_heads", 8}, {"num_key_value_heads", 2},
          {"vocab_size", 1000},       {"max_position_embeddings", 4096}};
}

HfConfig Read(const json& config) {
  const Result<HfConfig> read = ParseHfConfig(config.dump(), "config.json");
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read.ok() ? *read : HfConfig{};
}

std::string ErrorOf(const std::string& text) {
  const Result<HfConfig> read = ParseHfConfig(text, "config.json");
  EXPECT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), Code::kInvalid);
  return read.status().message();
}

std::string ErrorOf(const json& config) { return ErrorOf(config.dump()); }

std::vector<uint32_t> WindowsOf(const HfConfig& config) {
  std::vector<uint32_t> windows;
  for (const HfLayer& layer : config.layers) windows.push_back(layer.attention ? layer.attention->kv.window : 1);
  return windows;
}

TEST(HfConfig, GroupedQueriesKeepTheirKvHeads) {
  const HfConfig config = Read(Llama());
  ASSERT_EQ(config.layers.size(), 4u);
  EXPECT_EQ(config.layers[0].attention->kv, (LayerKvShape{.kv_heads = 2, .k_dim = 8, .v_dim = 8}));
  EXPECT_EQ(config.layers[0].attention->weights, 64u * 8 * (8 + 8 + 2 + 2));
  EXPECT_EQ(config.layers[0].feed_forward->weights, 3u * 64 * 128);
  EXPECT_EQ(config.embedding_weights, 64'000u);
  EXPECT_FALSE(config.tied_output);
}

TEST(HfConfig, WithoutKvHeadsEveryHeadHasItsOwn) {
  json config = Llama();
  config.erase("num_key_value_heads");
  EXPECT_EQ(Read(config).layers[0].attention->kv.kv_heads, 8u);
  config["num_key_value_heads"] = nullptr;
  EXPECT_EQ(Read(config).layers[0].attention->kv.kv_heads, 8u);
}

TEST(HfConfig, ListedLayersSlideAndTheOthersDoNot) {
  json config = Llama();
  config["model_type"] = "gemma3_text";
  config["sliding_window"] = 512;
  config["layer_types"] = {"full_attention", "sliding_attention", "sliding_attention", "full_attention"};
  EXPECT_EQ(WindowsOf(Read(config)), (std::vector<uint32_t>{0, 512, 512, 0}));
}

TEST(HfConfig, APatternMakesEveryNthLayerGlobal) {
  json config = Llama();
  config["model_type"] = "gemma2";
  config["sliding_window"] = 512;
  EXPECT_EQ(WindowsOf(Read(config)), (std::vector<uint32_t>{512, 0, 512, 0}));
  config["model_type"] = "gemma3_text";
  config["sliding_window_pattern"] = 4;
  EXPECT_EQ(WindowsOf(Read(config)), (std::vector<uint32_t>{512, 512, 512, 0}));
}

TEST(HfConfig, AWindowThatIsNeverFullIsNone) {
  json config = Llama();
  config["model_type"] = "mistral";
  config["sliding_window"] = 4096;
  EXPECT_EQ(WindowsOf(Read(config)), (std::vector<uint32_t>{0, 0, 0, 0}));
  config["sliding_window"] = 4095;
  EXPECT_EQ(WindowsOf(Read(config)), (std::vector<uint32_t>(4, 4095)));
}

TEST(HfConfig, QwenSlidesOnlyWhereItIsSwitchedOn) {
  json config = Llama();
  config["model_type"] = "qwen2";
  config["sliding_window"] = 128;
  config["max_window_layers"] = 3;
  EXPECT_EQ(WindowsOf(Read(config)), (std::vector<uint32_t>{0, 0, 0, 0}));
  config["use_sliding_window"] = true;
  EXPECT_EQ(WindowsOf(Read(config)), (std::vector<uint32_t>{0, 0, 0, 128}));
}

TEST(HfConfig, ALatentIsOneVectorForAllHeads) {
  json config = Llama();
  config["model_type"] = "deepseek_v3";
  config.update({{"kv_lora_rank", 512},
                 {"qk_rope_head_dim", 64},
                 {"qk_nope_head_dim", 128},
                 {"v_head_dim", 128},
                 {"q_lora_rank", nullptr}});
  EXPECT_EQ(Read(config).layers[0].attention->kv, (LayerKvShape{.kv_heads = 1, .k_dim = 576, .v_dim = 0}));
}

TEST(HfConfig, TheLastLayersMayShareTheKvOfEarlierOnes) {
  json config = Llama();
  config["model_type"] = "gemma3n_text";
  config.update({{"sliding_window", 512}, {"num_kv_shared_layers", 3}, {"hidden_size_per_layer_input", 0}});
  const HfConfig read = Read(config);
  EXPECT_TRUE(read.layers[0].attention->owns_kv);
  for (size_t i : {1u, 2u, 3u}) EXPECT_FALSE(read.layers[i].attention->owns_kv);
}

TEST(HfConfig, RecurrentLayersKeepAStateAndNoKv) {
  json config = Llama();
  config["model_type"] = "qwen3_next";
  config.update({{"linear_num_key_heads", 2},
                 {"linear_num_value_heads", 4},
                 {"linear_key_head_dim", 16},
                 {"linear_value_head_dim", 8},
                 {"linear_conv_kernel_dim", 4}});
  const HfConfig read = Read(config);
  EXPECT_FALSE(read.layers[0].attention.has_value());
  EXPECT_EQ(read.layers[0].recurrence->state_values, 4u * 16 * 8);
  EXPECT_EQ(read.layers[0].recurrence->conv_values, (2u * 2 * 16 + 4 * 8) * 3);
  EXPECT_TRUE(read.layers[3].attention.has_value());
  EXPECT_FALSE(read.layers[3].recurrence.has_value());
}

TEST(HfConfig, Lfm2RoundsTwoThirdsOfItsWidth) {
  json config = Llama();
  config["model_type"] = "lfm2";
  config.update({{"conv_L_cache", 3}, {"full_attn_idxs", {2}}, {"intermediate_size", 12'288}});
  const HfConfig read = Read(config);
  EXPECT_EQ(read.layers[0].feed_forward->weights, 3u * 64 * 8192);
  EXPECT_EQ(read.layers[0].recurrence->conv_values, 64u * 2);
  EXPECT_TRUE(read.layers[2].attention.has_value());
}

TEST(HfConfig, ExpertsCountOnceStoredAndOnceChosen) {
  json config = Llama();
  config["model_type"] = "qwen3_moe";
  config.update(
      {{"num_experts", 16}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 32}, {"mlp_only_layers", {0}}});
  const HfConfig read = Read(config);
  EXPECT_EQ(read.layers[0].feed_forward->expert_weights, 0u);
  EXPECT_EQ(read.layers[1].feed_forward->expert_weights, 16u * 3 * 64 * 32);
  EXPECT_EQ(read.layers[1].feed_forward->chosen_expert_weights, 2u * 3 * 64 * 32);
}

TEST(HfConfigErrors, NoExpertsCannotBeChosenFromAndNoTypeIsMadeUp) {
  json config = Llama();
  config["model_type"] = "mixtral";
  config.update({{"num_local_experts", 0}, {"num_experts_per_tok", 2}});
  EXPECT_NE(ParseHfConfig(config.dump(), "x").status().message().find("num_local_experts"), std::string::npos);
  config["model_type"] = "qwen3_moe";
  EXPECT_NE(ParseHfConfig(config.dump(), "x").status().message().find("num_experts_per_tok"), std::string::npos);
  config = Llama();
  config["torch_dtype"] = "float77";
  EXPECT_NE(ParseHfConfig(config.dump(), "x").status().message().find("torch_dtype"), std::string::npos);
  config["torch_dtype"] = "bfloat16";
  EXPECT_TRUE(ParseHfConfig(config.dump(), "x").ok());
}

TEST(HfConfig, KeysOnWhichKvHangsElsewhereAreNamedWhereTheArchitectureHasNone) {
  json config = Llama();
  config.update({{"kv_lora_rank", 512}, {"cross_layer_kv_share", 2}, {"sliding_window", 128}, {"head_dim", 8}});
  EXPECT_EQ(Read(config).ignored_keys,
            (std::vector<std::string>{"kv_lora_rank", "sliding_window", "cross_layer_kv_share"}));
  config = Llama();
  config.update(
      {{"sliding_window", 128}, {"use_sliding_window", false}, {"kv_lora_rank", nullptr}, {"multi_query", false}});
  EXPECT_TRUE(Read(config).ignored_keys.empty());
  config["model_type"] = "qwen2";
  config["max_window_layers"] = 4;
  EXPECT_TRUE(Read(config).ignored_keys.empty());
  config["model_type"] = "mistral";
  config.erase("use_sliding_window");
  EXPECT_TRUE(Read(config).ignored_keys.empty());
  config["layer_types"] = std::vector<std::string>(4, "full_attention");
  EXPECT_TRUE(Read(config).ignored_keys.empty());
}

TEST(HfConfig, KeysThatNobodyKnowsAreNamedWhereTheirNamesSpeakOfKv) {
  json config = Llama();
  config.update({{"kv_sharing_factor", 2}, {"local_window", 64}, {"bos_token_id", 1}, {"kv_norm", false}});
  EXPECT_EQ(Read(config).ignored_keys, (std::vector<std::string>{"kv_sharing_factor", "local_window"}));
  config["local_window"] = -64;
  EXPECT_EQ(ErrorOf(config), "config.json: \"local_window\" is -64, expected none below 0");
}

TEST(HfConfigErrors, NumbersBelow0AreRefusedThoughNobodyReadsThem) {
  json config = Llama();
  config["sliding_window"] = -3;
  EXPECT_EQ(ErrorOf(config), "config.json: \"sliding_window\" is -3, expected none below 0");
  config = Llama();
  config["kv_lora_rank"] = -1;
  EXPECT_EQ(ErrorOf(config), "config.json: \"kv_lora_rank\" is -1, expected none below 0");
}

TEST(HfConfigErrors, AnArchitectureOfExpertsHasSome) {
  json config = Llama();
  config["model_type"] = "mixtral";
  EXPECT_EQ(ErrorOf(config), "config.json: \"num_local_experts\" is missing, expected an integer from 1 to 16384");
  config["num_local_experts"] = 0;
  EXPECT_EQ(ErrorOf(config), "config.json: \"num_local_experts\" is 0, expected an integer from 1 to 16384");
}

TEST(HfConfig, AMultimodalConfigIsReadAsItsTextPart) {
  json text = Llama();
  text["model_type"] = "gemma3_text";
  text["sliding_window"] = 512;
  const json config = {{"model_type", "gemma3"}, {"text_config", text}, {"vision_config", {{"hidden_size", 7}}}};
  EXPECT_EQ(Read(config).architecture, "gemma3_text");
  EXPECT_EQ(Read(config).width, 64u);
}

TEST(HfConfigErrors, NameFileKeyValueAndWhatWasExpected) {
  json config = Llama();
  config["num_hidden_layers"] = 0;
  EXPECT_EQ(ErrorOf(config), "config.json: \"num_hidden_layers\" is 0, expected an integer from 1 to 1024");
  config["num_hidden_layers"] = -3;
  EXPECT_EQ(ErrorOf(config), "config.json: \"num_hidden_layers\" is -3, expected an integer from 1 to 1024");
  config["num_hidden_layers"] = 1'000'000'000'000'000'000;
  EXPECT_EQ(ErrorOf(config),
            "config.json: \"num_hidden_layers\" is 1000000000000000000, expected an integer from 1 to 1024");
  config["num_hidden_layers"] = "many";
  EXPECT_EQ(ErrorOf(config), "config.json: \"num_hidden_layers\" is \"many\", expected an integer from 1 to 1024");
  config["num_hidden_layers"] = 2.5;
  EXPECT_EQ(ErrorOf(config), "config.json: \"num_hidden_layers\" is 2.5, expected an integer from 1 to 1024");
  config.erase("num_hidden_layers");
  EXPECT_EQ(ErrorOf(config), "config.json: \"num_hidden_layers\" is missing, expected an integer from 1 to 1024");
}

TEST(HfConfigErrors, HeadsMustDivide) {
  json config = Llama();
  config["num_attention_heads"] = 7;
  EXPECT_NE(ErrorOf(config).find("is 7, which does not divide the hidden size of 64"), std::string::npos);
  config = Llama();
  config["num_key_value_heads"] = 3;
  EXPECT_NE(ErrorOf(config).find("is 3, expected a divisor of the 8 query heads"), std::string::npos);
}

TEST(HfConfigErrors, UnknownArchitecturesAreNotGuessedAt) {
  json config = Llama();
  config["model_type"] = "frankenstein";
  const std::string message = ErrorOf(config);
  EXPECT_NE(message.find("\"model_type\" is 'frankenstein', which is not known; expected one of llama,"),
            std::string::npos)
      << message;
  config.erase("model_type");
  EXPECT_NE(ErrorOf(config).find("\"model_type\" is missing"), std::string::npos);
}

TEST(HfConfigErrors, WhatIsNoObjectIsNoConfig) {
  EXPECT_NE(ErrorOf(std::string("[1, 2")).find("config.json"), std::string::npos);
  EXPECT_EQ(ErrorOf(std::string("[]")), "config.json: is array, expected an object with \"model_type\"");
  EXPECT_FALSE(ErrorOf(std::string("")).empty());
}

TEST(HfConfigErrors, ListsHaveOneEntryPerLayer) {
  json config = Llama();
  config["model_type"] = "gemma3_text";
  config["sliding_window"] = 512;
  config["layer_types"] = {"full_attention"};
  EXPECT_NE(ErrorOf(config).find("\"layer_types\" is of 1, expected an array of 4 strings"), std::string::npos);
  config["layer_types"] = {"full_attention", "full_attention", "full_attention", "magic"};
  EXPECT_NE(ErrorOf(config).find("holds a name that is not known"), std::string::npos);
}

TEST(HfConfigErrors, ASlidingLayerNeedsAWindow) {
  json config = Llama();
  config["model_type"] = "gemma2";
  EXPECT_NE(ErrorOf(config).find("\"sliding_window\" is missing"), std::string::npos);
}

TEST(HfConfigErrors, ModelsThatCannotExistAreRefused) {
  json config = Llama();
  config.update({{"hidden_size", 1 << 20},
                 {"num_hidden_layers", 1024},
                 {"intermediate_size", 1 << 22},
                 {"num_attention_heads", 1 << 10}});
  EXPECT_NE(ErrorOf(config).find("more than 2^50 weights"), std::string::npos);
}

}  // namespace
}  // namespace cachalot::model
