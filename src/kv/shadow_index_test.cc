#include "kv/shadow_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <numeric>
#include <string>

#include "base/random.h"

namespace cachalot::kv {
namespace {

using Tokens = std::vector<TokenId>;
constexpr uint32_t kBlock = 4;

KvGeometry Geometry(std::vector<uint32_t> windows, uint32_t slots) {
  return {.block_tokens = kBlock, .windows = std::move(windows), .slots = slots};
}

Tokens Plus(Tokens tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

Tokens Made(size_t count, TokenId from) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

// A request: computes its prompt, then answers; the pool keeps all whole blocks.
struct Client {
  explicit Client(ShadowIndex& index) : shadow(index) {}

  ShadowSight Begin(const Tokens& prompt, PrefixScope asked = {}) {
    scope = asked;
    history = {};
    chain = {};
    ShadowSight sight;
    visit = shadow.Arrive(scope, prompt, &sight);
    lost.assign(sight.lost.begin(), sight.lost.end());
    Compute(prompt);
    return sight;
  }
  void Compute(const Tokens& tokens) {
    for (const TokenId token : tokens) {
      history.push_back(token);
      if (history.size() % kBlock != 0) continue;
      chain = ExtendChain(chain, std::span(history).last(kBlock), SaltAt(scope, history.size()));
      shadow.Seal(visit, static_cast<uint32_t>(history.size() / kBlock - 1), chain);
    }
  }
  void End() {
    const size_t rest = history.size() % kBlock;
    shadow.End(visit, history.size(),
               rest == 0 ? chain.content : ExtendContent(chain.content, std::span(history).last(rest)));
  }
  ShadowSight Ask(const Tokens& prompt, const Tokens& answer = {}, PrefixScope asked = {}) {
    const ShadowSight sight = Begin(prompt, asked);
    Compute(answer);
    End();
    return sight;
  }

  ShadowIndex& shadow;
  ShadowVisit visit = 0;
  PrefixScope scope;
  Tokens history;
  BlockChain chain;
  std::vector<ShadowSight::Lost> lost;
};

constexpr size_t kHalf = 0, kOnce = 1, kTwice = 2, kForever = kShadowNames.size() - 1;

TEST(ShadowIndex, TellsWhatCachesOfOtherSizesWouldHaveHad) {
  ShadowIndex shadow(Geometry({0}, 8));
  Client client(shadow);
  client.Ask(Made(16, 0));    // 4 blocks
  client.Ask(Made(20, 100));  // 5 blocks above them
  const ShadowSight sight = client.Ask(Made(18, 0));
  EXPECT_EQ(sight.seen_tokens, 16u);
  EXPECT_EQ(sight.hit_tokens[kHalf], 0u);
  EXPECT_EQ(sight.hit_tokens[kOnce], 12u);
  EXPECT_EQ(sight.hit_tokens[kTwice], 16u);
  EXPECT_EQ(sight.hit_tokens[kForever], 16u);
}

TEST(ShadowIndex, OnlyWhatWasComputedIsKnown) {
  ShadowIndex shadow(Geometry({0}, 100));
  ShadowSight sight;
  const ShadowVisit cancelled = shadow.Arrive({}, Made(16, 0), &sight);
  shadow.End(cancelled, 0, 0);
  Client client(shadow);
  EXPECT_EQ(client.Ask(Made(16, 0)).seen_tokens, 0u);
  EXPECT_EQ(client.Ask(Made(16, 0)).seen_tokens, 16u);
}

TEST(ShadowIndex, AnEvictedBlockIsLostUntilItIsComputedAgain) {
  ShadowIndex shadow(Geometry({0}, 100));
  Client client(shadow);
  const Tokens prompt = Made(20, 0);
  client.Ask(prompt);
  BlockChain chain;
  for (uint32_t end = kBlock; end <= 20; end += kBlock) {
    chain = ExtendChain(chain, std::span(prompt).subspan(end - kBlock, kBlock), {});
    if (end == 12 || end == 16) shadow.OnEvicted(chain, Loss::kCapacity);
    if (end == 20) shadow.OnEvicted(chain, Loss::kCleared);
  }
  client.Ask(Made(8, 50));
  client.Begin(prompt);
  ASSERT_EQ(client.lost.size(), 2u);
  EXPECT_EQ(client.lost[0].begin, 8u);
  EXPECT_EQ(client.lost[0].end, 16u);
  EXPECT_EQ(client.lost[0].loss, Loss::kCapacity);
  EXPECT_EQ(client.lost[0].distance, 2u + 4u);
  EXPECT_EQ(client.lost[1].loss, Loss::kCleared);
  EXPECT_EQ(client.lost[1].distance, 2u + 5u);
  client.End();
  client.Begin(prompt);
  EXPECT_TRUE(client.lost.empty());
}

TEST(ShadowIndex, TenantsNeitherSeeEachOtherNorLeaveThePublicPrefix) {
  ShadowIndex shadow(Geometry({0}, 100));
  Client client(shadow);
  const PrefixScope a{{1, 2}, 8}, b{{1, 3}, 8}, none{{1, 2}, 0};
  const Tokens prompt = Made(32, 0);
  client.Ask(prompt, {}, a);
  EXPECT_EQ(client.Ask(Made(32, 0), {}, a).others_tokens, 32u);
  const ShadowSight sight = client.Ask(prompt, {}, b);
  EXPECT_EQ(sight.seen_tokens, 8u);
  EXPECT_EQ(sight.others_tokens, 32u);
  EXPECT_EQ(sight.own_from, 8u);
  EXPECT_EQ(client.Ask(prompt, {}, none).seen_tokens, 0u);
  EXPECT_EQ(client.Ask(prompt, {}, none).seen_tokens, 32u);
  EXPECT_EQ(client.Ask(Made(32, 7), {}, b).others_tokens, 0u);
}

TEST(ShadowIndex, KnowsTheNextTurnOfAConversation) {
  ShadowIndex shadow(Geometry({0}, 100));
  Client client(shadow);
  const Tokens system = Made(8, 0), first = Plus(system, Made(6, 100)), answer = Made(7, 200);
  client.Ask(first, answer);
  EXPECT_EQ(client.Ask(first).own_from, 12u) << "the same again is no next turn";
  client.Ask(first, answer);
  client.Ask(Plus(system, Made(9, 300)));
  const ShadowSight next = client.Ask(Plus(Plus(first, answer), Made(5, 400)));
  EXPECT_EQ(next.seen_tokens, 20u);
  EXPECT_EQ(next.own_from, 8u) << "others used the system prompt since";
  EXPECT_EQ(next.rendered_differently_to, 0u);
}

TEST(ShadowIndex, NoticesAnAnswerThatComesBackInOtherTokens) {
  ShadowIndex shadow(Geometry({0}, 100));
  Client client(shadow);
  const Tokens first = Made(10, 0), answer = Made(20, 200);
  Tokens other = answer;
  other[9] = 999;
  client.Ask(first, answer);
  const ShadowSight next = client.Ask(Plus(Plus(first, other), Made(5, 400)));
  EXPECT_EQ(next.seen_tokens, 16u);
  EXPECT_EQ(next.rendered_differently_to, 30u);
  EXPECT_EQ(client.Ask(Made(10, 0)).rendered_differently_to, 0u);
  // Short answers, of which no whole block is known, are compared just so.
  client.Ask(Made(10, 50), Made(1, 70));
  EXPECT_EQ(client.Ask(Plus(Made(10, 50), Made(9, 80))).rendered_differently_to, 11u);
  client.Ask(Made(10, 55), Made(1, 70));
  EXPECT_EQ(client.Ask(Plus(Plus(Made(10, 55), Made(1, 70)), Made(9, 80))).rendered_differently_to, 0u);
  // A prompt that stops within the answer repeats it so far.
  client.Ask(Made(10, 60), answer);
  EXPECT_EQ(client.Ask(Plus(Made(10, 60), Made(7, 200))).rendered_differently_to, 0u);
}

TEST(ShadowIndex, ForksRememberTheirOwnAnswers) {
  ShadowIndex shadow(Geometry({0}, 100));
  Client a(shadow);
  const Tokens prompt = Made(10, 0), one = Made(20, 100), other = Made(13, 200);
  a.Begin(prompt);
  Client b = a;
  b.visit = shadow.Fork(a.visit, prompt.size());
  a.Compute(one);
  b.Compute(other);
  a.End();
  b.End();
  Client next(shadow);
  ShadowSight sight = next.Ask(Plus(Plus(prompt, other), Made(9, 300)));
  EXPECT_EQ(sight.seen_tokens, 20u);
  EXPECT_EQ(sight.own_from, 8u);
  EXPECT_EQ(sight.rendered_differently_to, 0u);
  sight = next.Ask(Plus(Plus(prompt, one), Made(9, 300)));
  EXPECT_EQ(sight.seen_tokens, 28u);
  EXPECT_EQ(sight.own_from, 8u);
}

// Real LRU caches of each size over the same prompts: lists of blocks, used last in front.
class LruCaches {
 public:
  explicit LruCaches(uint64_t pool) {
    for (const double size : kShadowSizes) sizes_.push_back(static_cast<size_t>(size * pool));
    sizes_.push_back(SIZE_MAX);
    caches_.resize(sizes_.size());
  }
  std::vector<uint64_t> Ask(const Tokens& prompt) {
    std::vector<Tokens> chain;
    for (size_t end = kBlock; end <= prompt.size(); end += kBlock)
      chain.emplace_back(prompt.begin(), prompt.begin() + end);
    std::vector<uint64_t> hits;
    for (size_t c = 0; c < caches_.size(); ++c) {
      std::list<Tokens>& cache = caches_[c];
      uint64_t hit = 0;
      while (hit < chain.size() && std::ranges::find(cache, chain[hit]) != cache.end()) ++hit;
      for (auto block = chain.rbegin(); block != chain.rend(); ++block) {
        cache.remove(*block);
        cache.push_front(*block);
      }
      while (cache.size() > sizes_[c]) cache.pop_back();
      hits.push_back(hit * kBlock);
    }
    return hits;
  }

 private:
  std::vector<size_t> sizes_;
  std::vector<std::list<Tokens>> caches_;
};

// Prompts over few tokens, so that they often begin alike.
Tokens RandomPrompt(SplitMix64& random, std::vector<Tokens>& made) {
  Tokens prompt;
  if (!made.empty() && random.Below(5) > 0) {
    const Tokens& from = made[random.Below(made.size())];
    prompt.assign(from.begin(), from.begin() + static_cast<ptrdiff_t>(random.Below(from.size() + 1)));
  }
  for (uint64_t more = random.Below(30); more > 0; --more) prompt.push_back(static_cast<TokenId>(random.Below(9)));
  if (made.size() < 30) {
    made.push_back(prompt);
  } else {
    made[random.Below(30)] = prompt;
  }
  return prompt;
}

TEST(ShadowIndex, EqualsRealLruCachesOfEverySize) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SplitMix64 random(seed);
    const uint32_t pool = static_cast<uint32_t>(4 + random.Below(60));
    ShadowIndex shadow(Geometry({0}, pool));
    LruCaches caches(pool);
    Client client(shadow);
    std::vector<Tokens> made;
    uint64_t total = 0;
    for (int i = 0; i < 1500; ++i) {
      const Tokens prompt = RandomPrompt(random, made);
      const std::vector<uint64_t> expected = caches.Ask(prompt);
      const ShadowSight sight = client.Ask(prompt);
      ASSERT_TRUE(std::ranges::equal(sight.hit_tokens, expected)) << "seed " << seed << " prompt " << i;
      total += expected[kOnce];
    }
    EXPECT_GT(total, 1000u);
  }
}

// The stack as its definition says it, with names instead of hashes.
class NaiveStack {
 public:
  NaiveStack(KvGeometry geometry, size_t limit) : geometry_(std::move(geometry)), limit_(limit) {}

  struct Sight {
    std::vector<uint64_t> distances;  // of the blocks known
    uint64_t others = 0;
  };
  Sight Arrive(int id, const std::vector<std::string>& names, const std::vector<std::string>& contents) {
    Sight sight;
    uint64_t farthest = 0;
    std::vector<std::string> taken;
    for (const std::string& name : names) {
      const std::optional<uint64_t> distance = DistanceOf(name);
      if (!distance) break;
      sight.distances.push_back(farthest = std::max(farthest, *distance));
      taken.push_back(name);
    }
    sight.others = taken.size();
    while (sight.others < names.size() && Known(contents[sight.others])) ++sight.others;
    for (auto& [other, held] : held_)
      std::erase_if(held, [&](const auto& n) { return std::ranges::count(taken, n) > 0; });
    held_[id] = taken;
    for (const std::string& name : taken) content_[name] = contents[&name - taken.data()];
    return sight;
  }
  void Seal(int id, const std::string& name, const std::string& content) {
    for (auto& [other, held] : held_) std::erase(held, name);
    held_[id].push_back(name);
    content_[name] = content;
    size_t all = 0;
    for (const auto& [other, held] : held_) all += held.size();
    if (all <= limit_) return;
    for (auto& [other, held] : held_) {
      if (held.empty()) continue;
      held.pop_back();
      return;
    }
  }

 private:
  uint64_t SlotsOf(size_t blocks) const { return SlotsHeld(geometry_, blocks * geometry_.block_tokens); }
  std::optional<uint64_t> DistanceOf(const std::string& name) const {
    uint64_t above = 0;
    for (auto held = held_.rbegin(); held != held_.rend(); ++held) {
      const auto at = std::ranges::find(held->second, name);
      if (at != held->second.end()) return above + SlotsOf(static_cast<size_t>(at - held->second.begin()) + 1);
      above += SlotsOf(held->second.size());
    }
    return std::nullopt;
  }
  bool Known(const std::string& content) const {
    for (const auto& [id, held] : held_) {
      if (std::ranges::any_of(held, [&](const std::string& n) { return content_.at(n) == content; })) return true;
    }
    return false;
  }

  const KvGeometry geometry_;
  const size_t limit_;
  std::map<int, std::vector<std::string>> held_;  // by request, in the order of arrival
  std::map<std::string, std::string> content_;
};

std::string NameOf(const Tokens& tokens, size_t end, const PrefixScope* scope) {
  std::string name;
  for (size_t i = 0; i < end; ++i) {
    name += std::to_string(tokens[i]) + ' ';
    if (scope != nullptr && (i + 1) % kBlock == 0) name += '/' + std::to_string(SaltAt(*scope, i + 1).low) + '/';
  }
  return name;
}

TEST(ShadowIndex, EqualsTheDefinitionWithWindowsAnswersSaltsAndForgetting) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SplitMix64 random(seed);
    const std::vector<uint32_t> windows = seed % 2 == 0 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{0, 9, 9, 30};
    const KvGeometry geometry = Geometry(windows, 60);
    const size_t limit = 50 + random.Below(200);
    ShadowIndex shadow(geometry, limit);
    NaiveStack naive(geometry, limit);
    std::vector<Tokens> made;
    uint64_t known = 0;
    for (int i = 0; i < 700; ++i) {
      const PrefixScope scope{{0, random.Below(2)}, random.Below(2) * 2 * kBlock};
      const Tokens prompt = RandomPrompt(random, made);
      Tokens answer(random.Below(12));
      for (TokenId& token : answer) token = static_cast<TokenId>(random.Below(9));
      const Tokens all = Plus(prompt, answer);
      std::vector<std::string> names, contents;
      for (size_t end = kBlock; end <= all.size(); end += kBlock) {
        names.push_back(NameOf(all, end, &scope));
        contents.push_back(NameOf(all, end, nullptr));
      }
      const size_t whole = prompt.size() / kBlock;
      const NaiveStack::Sight expected =
          naive.Arrive(i, {names.begin(), names.begin() + whole}, {contents.begin(), contents.begin() + whole});
      for (size_t b = 0; b < names.size(); ++b) naive.Seal(i, names[b], contents[b]);

      Client client(shadow);
      const ShadowSight sight = client.Ask(prompt, answer, scope);
      ASSERT_EQ(sight.seen_tokens, expected.distances.size() * kBlock) << "seed " << seed << " request " << i;
      ASSERT_EQ(sight.others_tokens, expected.others * kBlock) << "seed " << seed << " request " << i;
      for (size_t c = 0; c < kShadowSizes.size(); ++c) {
        const auto fits = std::ranges::upper_bound(expected.distances, kShadowSizes[c] * geometry.slots);
        ASSERT_EQ(sight.hit_tokens[c], static_cast<uint64_t>(fits - expected.distances.begin()) * kBlock)
            << "seed " << seed << " request " << i << " cache " << c;
      }
      ASSERT_LE(shadow.blocks(), limit);
      known += sight.seen_tokens;
      if (random.Below(4) == 0) made[random.Below(made.size())] = all;
    }
    EXPECT_GT(known, 2000u);
  }
}

}  // namespace
}  // namespace cachalot::kv
