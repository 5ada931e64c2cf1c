// Match and insert of the prefix index beside a plain loop over the same tokens.
#include <benchmark/benchmark.h>

#include <memory>
#include <numeric>
#include <vector>

#include "base/kv_layout.h"
#include "base/random.h"
#include "kv/eviction.h"
#include "kv/kv_manager.h"

namespace cachalot::kv {
namespace {

constexpr uint32_t kPrompts = 64, kTokens = 2048;

std::vector<std::vector<TokenId>> Prompts() {
  SplitMix64 random(1);
  std::vector<std::vector<TokenId>> prompts(kPrompts);
  for (size_t i = 0; i < kPrompts; ++i) {
    if (i % 4 != 0) prompts[i].assign(prompts[i - 1].begin(), prompts[i - 1].begin() + kTokens / 2);
    while (prompts[i].size() < kTokens) prompts[i].push_back(static_cast<TokenId>(random.Below(49152)));
  }
  return prompts;
}

KvManager Manager(bool with_shadow = false) {
  return KvManager({.block_tokens = 16, .windows = {0}, .slots = 16 * kPrompts * kTokens / 16},
                   MakeEvictionPolicy("cost").value(), nullptr, with_shadow);
}

void Insert(KvManager& manager, const std::vector<TokenId>& prompt) {
  const SequenceId id = manager.Create();
  const AttachedPrefix attached = manager.Attach(id, prompt, prompt.size() - 1);
  const std::span<const TokenId> rest = std::span(prompt).subspan(attached.tokens);
  const Growth growth{id, static_cast<uint32_t>(rest.size()), rest};
  std::move(manager.Reserve({&growth, 1})).value().Commit();
  manager.Free(id);
}

void PlainLoop(benchmark::State& state) {
  const auto prompts = Prompts();
  for (auto _ : state) {
    for (const auto& prompt : prompts) {
      uint64_t sum = 0;
      for (const TokenId token : prompt) benchmark::DoNotOptimize(sum += token);
    }
  }
  state.SetItemsProcessed(state.iterations() * kPrompts * kTokens);
}
BENCHMARK(PlainLoop);

void Match(benchmark::State& state) {
  const auto prompts = Prompts();
  KvManager manager = Manager();
  for (const auto& prompt : prompts) Insert(manager, prompt);
  for (auto _ : state) {
    for (const auto& prompt : prompts) benchmark::DoNotOptimize(manager.Find({}, prompt, prompt.size() - 1).tokens);
  }
  state.SetItemsProcessed(state.iterations() * kPrompts * kTokens);
}
BENCHMARK(Match);

// A prompt that is new from its first token on, with all that it takes: attach, reserve, commit, seal, end. With 1,
// the shadow index is told of it too.
void InsertNew(benchmark::State& state) {
  std::vector<TokenId> prompt(kTokens);
  std::iota(prompt.begin(), prompt.end(), 0);
  KvManager manager = Manager(state.range(0) != 0);
  for (auto _ : state) {
    ++prompt[0];
    Insert(manager, prompt);
  }
  state.SetItemsProcessed(state.iterations() * kTokens);
}
BENCHMARK(InsertNew)->Arg(0)->Arg(1);

// The same of prompts that are there already: what the shadow index adds to a hit.
void InsertKnown(benchmark::State& state) {
  const auto prompts = Prompts();
  KvManager manager = Manager(state.range(0) != 0);
  for (auto _ : state) {
    for (const auto& prompt : prompts) Insert(manager, prompt);
  }
  state.SetItemsProcessed(state.iterations() * kPrompts * kTokens);
}
BENCHMARK(InsertKnown)->Arg(0)->Arg(1);

// What an engine that runs does once a second; an item is a slot.
void Ledger(benchmark::State& state) {
  KvShape shape;
  shape.layers.push_back({.kv_heads = 2, .k_dim = 8, .v_dim = 8});
  const KvLayout layout = PlanKvLayout(shape, 1000).value();
  KvManager manager = Manager();
  std::vector<TokenId> prompt(kTokens);
  while (manager.free_slots() > 0) {
    ++prompt[0];
    Insert(manager, prompt);
  }
  for (auto _ : state) benchmark::DoNotOptimize(manager.Ledger(layout).live_bytes);
  state.SetItemsProcessed(state.iterations() * manager.geometry().slots);
}
BENCHMARK(Ledger);

// One step of `range` decoding sequences.
void DecodeStep(benchmark::State& state) {
  KvManager manager = Manager();
  std::vector<Growth> growth;
  const std::vector<TokenId> prompt(100, 7);
  const TokenId token = 9;
  for (int64_t i = 0; i < state.range(0); ++i) {
    std::vector<TokenId> own = prompt;
    own[0] = static_cast<TokenId>(i);
    growth.push_back({manager.Create(), 100, own});
    std::move(manager.Reserve({&growth.back(), 1})).value().Commit();
    growth.back() = {growth.back().sequence, 1, {&token, 1}};
  }
  for (auto _ : state) {
    if (manager.Length(growth[0].sequence) > 1000) {
      state.PauseTiming();
      for (Growth& g : growth) {
        manager.Free(g.sequence);
        g.sequence = manager.Create();
      }
      state.ResumeTiming();
    }
    std::move(manager.Reserve(growth)).value().Commit();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(DecodeStep)->Arg(1)->Arg(64)->Arg(256);

}  // namespace
}  // namespace cachalot::kv
