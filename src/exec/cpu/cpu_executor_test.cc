#include "exec/cpu/cpu_executor.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "exec/testing/executor_rig.h"
#include "exec/testing/tiny_model.h"
#include "kernels/kernel_table.h"

namespace cachalot::exec {
namespace {

std::vector<TokenId> RandomTokens(uint32_t count, uint32_t vocabulary, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& t : tokens) t = static_cast<TokenId>(random.Below(vocabulary));
  return tokens;
}

// The architectures, and every weight format, that the bits are checked on.
std::vector<TinyModelSpec> Specs() {
  std::vector<TinyModelSpec> specs;
  specs.push_back({.architecture = "llama", .width = 60, .heads = 5, .kv_heads = 1, .head_dim = 80, .tied = false});
  specs.push_back({.architecture = "qwen2", .heads = 6, .kv_heads = 2});
  specs.push_back({.architecture = "gemma3", .layers = 7, .heads = 3, .kv_heads = 1, .head_dim = 24, .window = 40});
  for (TensorType type :
       {TensorType::kF16, TensorType::kBF16, TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1,
        TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K}) {
    specs.push_back({.architecture = "llama",
                     .type = type,
                     .layers = 2,
                     .width = 256,
                     .heads = 4,
                     .kv_heads = 2,
                     .head_dim = 64,
                     .ffn_width = 256});
  }
  return specs;
}

std::string NameOf(const testing::TestParamInfo<TinyModelSpec>& info) {
  return info.param.architecture + "_" + InfoOf(info.param.type).name;
}

class ExecutorBits : public testing::TestWithParam<TinyModelSpec> {
 protected:
  static constexpr uint32_t kTokens = 150;

  void SetUp() override {
    file_ = MakeTinyModel(GetParam());
    tokens_ = RandomTokens(kTokens, GetParam().vocabulary, 11);
    ExecutorRig rig(file_, {.isa = "scalar"});
    expected_ = rig.RunWhole(0, tokens_, kTokens);
    expected_kv_ = rig.KvBytes(0);
    ASSERT_EQ(expected_.size(), GetParam().vocabulary);
    for (float logit : expected_) ASSERT_TRUE(std::isfinite(logit));
  }

  // The whole prompt in chunks gives the same bits.
  void ExpectSame(const RigOptions& options, uint32_t chunk) {
    ExecutorRig rig(file_, options);
    EXPECT_EQ(rig.RunWhole(0, tokens_, chunk), expected_);
    EXPECT_TRUE(rig.KvBytes(0) == expected_kv_);
  }

  std::string file_;
  std::vector<TokenId> tokens_;
  std::vector<float> expected_;
  std::string expected_kv_;
};

TEST_P(ExecutorBits, AreTheSameForEveryInstructionSet) {
  for (const kernels::KernelTable* table : kernels::RunnableTables()) {
    SCOPED_TRACE(table->isa);
    ExpectSame({.isa = table->isa}, kTokens);
  }
}

TEST_P(ExecutorBits, AreTheSameForEveryChunking) {
  for (uint32_t chunk : {1u, 16u, 17u, 100u}) {
    SCOPED_TRACE(chunk);
    ExpectSame({}, chunk);
  }
}

TEST_P(ExecutorBits, AreTheSameForEveryThreadCount) {
  for (size_t threads : {2u, 3u}) ExpectSame({.threads = threads}, 64);
}

TEST_P(ExecutorBits, AreTheSameWhereverBlocksLie) {
  for (uint64_t seed : {1u, 2u}) ExpectSame({.scatter_seed = seed}, 50);
}

TEST_P(ExecutorBits, OfLogitsAreTheSameForEveryBlockSize) {
  for (uint32_t block_tokens : {32u, 48u}) {
    ExecutorRig rig(file_, {.model = {.block_tokens = block_tokens}});
    EXPECT_EQ(rig.RunWhole(0, tokens_, 33), expected_);
  }
}

TEST_P(ExecutorBits, AreTheSameInABatchWithOthers) {
  for (uint32_t others : {1u, 6u, 31u}) {
    ExecutorRig rig(file_, {.threads = 2, .scatter_seed = 5});
    std::vector<float> logits;
    for (size_t done = 0; done < kTokens; done += 10) {
      std::vector<ExecutorRig::Piece> pieces;
      for (uint32_t o = 0; o < others; ++o) {
        pieces.push_back({o + 1, RandomTokens(1 + (o + done) % 4, GetParam().vocabulary, o + done), o % 2});
      }
      pieces.insert(pieces.begin() + others / 2, {0, {tokens_.begin() + done, tokens_.begin() + done + 10}, 1});
      uint32_t row = 0;
      for (uint32_t i = 0; i < others / 2; ++i) row += pieces[i].logit_rows;
      const std::vector<float> all = rig.Run(pieces);
      logits.assign(all.begin() + row * GetParam().vocabulary, all.begin() + (row + 1) * GetParam().vocabulary);
    }
    EXPECT_EQ(logits, expected_) << others;
    EXPECT_TRUE(rig.KvBytes(0) == expected_kv_) << others;
  }
}

// Forks decode side by side over the blocks of their common prompt, at different depths of sharing and lengths.
TEST_P(ExecutorBits, AreTheSameOverSharedBlocks) {
  for (size_t threads : {1u, 3u}) {
    ExecutorRig rig(file_, {.threads = threads, .scatter_seed = 9});
    const auto tokens = [&](size_t begin, size_t count) {
      return std::vector<TokenId>(tokens_.begin() + begin, tokens_.begin() + begin + count);
    };
    rig.RunWhole(0, tokens(0, 90), 90);
    for (uint32_t fork = 1; fork <= 4; ++fork) rig.Fork(0, fork);
    rig.RunWhole(4, RandomTokens(3, GetParam().vocabulary, 4), 3);
    rig.RunWhole(0, tokens(90, 40), 40);
    for (uint32_t fork = 5; fork <= 7; ++fork) rig.Fork(0, fork);
    std::vector<float> logits;
    for (size_t done = 130; done < kTokens; ++done) {
      std::vector<ExecutorRig::Piece> pieces;
      for (uint32_t fork = 1; fork <= 7; ++fork) {
        pieces.push_back({fork, RandomTokens(1, GetParam().vocabulary, 100 * fork + done), fork % 2});
      }
      pieces.push_back({0, tokens(done, 1), 1});
      const std::vector<float> all = rig.Run(pieces);
      logits.assign(all.end() - GetParam().vocabulary, all.end());
    }
    EXPECT_EQ(logits, expected_) << threads;
    EXPECT_TRUE(rig.KvBytes(0) == expected_kv_) << threads;
  }
}

TEST_P(ExecutorBits, OfEveryRowAreThoseOfAPromptThatEndsThere) {
  ExecutorRig all(file_, {});
  const std::vector<float> rows = all.Run({{0, tokens_, kTokens}});
  for (uint32_t length : {1u, 16u, 17u, 99u}) {
    ExecutorRig one(file_, {});
    const auto begin = rows.begin() + (length - 1) * GetParam().vocabulary;
    EXPECT_EQ(one.RunWhole(0, {tokens_.begin(), tokens_.begin() + length}, 7),
              std::vector<float>(begin, begin + GetParam().vocabulary))
        << length;
  }
}

// A gate through which a sequence's KV comes back, layer after layer, as late as it may.
class LateKv final : public LayerGate {
 public:
  // What the sequence has is taken away until a layer is asked for.
  LateKv(ExecutorRig& rig, uint32_t sequence, uint32_t fails_from)
      : rig_(rig), fails_from_(fails_from), kept_(rig.model().layout().groups.size()) {
    const uint64_t slot_bytes = rig.memory().slot_bytes();
    for (uint32_t group = 0; group < kept_.size(); ++group) {
      for (const uint32_t slot : rig.SlotsOf(sequence, group)) {
        std::byte* const bytes = rig.memory().arena() + slot * slot_bytes;
        kept_[group].push_back({SlotId(slot), {bytes, bytes + slot_bytes}});
        std::memset(bytes, 0xff, slot_bytes);
      }
    }
  }

  bool Await(uint32_t layer) override {
    EXPECT_EQ(layer, asked_++);
    if (layer >= fails_from_) return false;
    const KvLayout& layout = rig_.model().layout();
    const LayerPlace& place = layout.places[layer];
    const uint64_t bytes = KvBytesPerToken(layout.shape.layers[layer], layout.shape.type) * layout.shape.block_tokens;
    std::vector<SlotFill> fills;
    for (const auto& [slot, kept] : kept_[place.group]) {
      fills.push_back({std::span(kept).subspan(place.k_offset, bytes), slot, place.k_offset});
    }
    return rig_.memory().Wait(rig_.memory().CopyIn(fills)).ok();
  }
  uint32_t asked() const { return asked_; }

 private:
  ExecutorRig& rig_;
  const uint32_t fails_from_;
  std::vector<std::vector<std::pair<SlotId, std::vector<std::byte>>>> kept_;  // by group
  uint32_t asked_ = 0;
};

TEST_P(ExecutorBits, LayersThatComeWhileTheStepRunsGiveTheSameBits) {
  ExecutorRig rig(file_, {});
  rig.RunWhole(0, {tokens_.begin(), tokens_.end() - 10}, 70);
  LateKv gate(rig, 0, UINT32_MAX);
  EXPECT_EQ(rig.Run({{0, {tokens_.end() - 10, tokens_.end()}, 1, &gate}}), expected_);
  EXPECT_EQ(gate.asked(), rig.model().layers().size());
  EXPECT_EQ(rig.KvBytes(0), expected_kv_);
}

TEST_P(ExecutorBits, ALayerThatNeverComesHarmsNobodyElse) {
  for (uint32_t fails_from = 0; fails_from < 2; ++fails_from) {
    ExecutorRig rig(file_, {});
    rig.RunWhole(0, {tokens_.begin(), tokens_.end() - 10}, 70);
    rig.RunWhole(1, {tokens_.rbegin(), tokens_.rend() - 10}, 70);
    LateKv gate(rig, 1, fails_from);
    const std::vector<float> logits =
        rig.Run({{1, {tokens_.begin(), tokens_.begin() + 5}, 1, &gate}, {0, {tokens_.end() - 10, tokens_.end()}, 1}});
    EXPECT_TRUE(
        std::equal(expected_.begin(), expected_.end(), logits.end() - static_cast<ptrdiff_t>(expected_.size())));
    EXPECT_EQ(rig.KvBytes(0), expected_kv_);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, ExecutorBits, testing::ValuesIn(Specs()), NameOf);

TEST(Executor, ReferenceModeAgreesWithTransformersOnOddShapes) {
  std::ifstream in(CACHALOT_SOURCE_DIR "/tests/data/exec/tiny_logits.json");
  const nlohmann::json recorded = nlohmann::json::parse(in);
  ASSERT_GE(recorded["cases"].size(), 20u);
  for (const auto& c : recorded["cases"]) {
    const auto& s = c["shape"];
    const TinyModelSpec spec{s["architecture"], TensorType::kF32, s["layers"],    s["width"],      s["heads"],
                             s["kv_heads"],     s["head_dim"],    s["ffn_width"], s["vocabulary"], 2048,
                             s["window"],       s["tied"],        s["seed"]};
    std::vector<TokenId> tokens;
    const uint64_t length = c["length"];
    for (uint64_t i = 0; i < length; ++i) {
      tokens.push_back(static_cast<TokenId>((7 * i * i + 3 * i + length) % spec.vocabulary));
    }
    ExecutorRig rig(MakeTinyModel(spec), {.model = {.reference = true}});
    const std::vector<float> logits = rig.RunWhole(0, tokens, 64);
    const double range = c["max"].get<double>() - c["min"].get<double>();
    const uint32_t stride = recorded["stride"];
    double worst = 0;
    for (size_t i = 0; i < c["sample"].size(); ++i) {
      worst = std::max(worst, std::abs(logits[i * stride] - c["sample"][i].get<double>()));
    }
    EXPECT_LE(worst / range, 2e-3) << s.dump() << " at " << length << " tokens";
    EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), c["argmax"].get<int64_t>())
        << s.dump() << " at " << length << " tokens";
  }
}

TEST(Executor, RefusesWhatItCannotRunAndWritesNothing) {
  const TinyModelSpec spec{.context = 64};
  ExecutorRig rig(MakeTinyModel(spec), {.limits = {.rows = 8, .logit_rows = 2}});
  (void)rig.Run({{0, {1, 2, 3}, 1}});
  const std::string before = rig.KvBytes(0);
  const std::vector<TokenId> unknown = {spec.vocabulary}, many(9, 1), one = {1};
  const uint32_t slots[] = {0, 1, 2, 3};
  const std::vector<PageTableRef> pages = {{slots, 4, 0}};
  Executor& executor = rig.executor();
  const auto code_of = [&](const SequenceRows& rows) {
    const Result<Logits> result = executor.Run({{&rows, 1}});
    return result.ok() ? Code::kOk : result.status().code();
  };
  EXPECT_EQ(code_of({unknown, 3, pages, 1}), Code::kInvalid);
  EXPECT_EQ(code_of({many, 3, pages, 1}), Code::kInvalid);
  EXPECT_EQ(code_of({one, 64, pages, 1}), Code::kInvalid);
  EXPECT_EQ(code_of({one, 3, pages, 2}), Code::kInternal);
  EXPECT_TRUE(rig.KvBytes(0) == before);
}

}  // namespace
}  // namespace cachalot::exec
