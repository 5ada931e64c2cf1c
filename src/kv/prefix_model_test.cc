#include <gtest/gtest.h>

#include "base/random.h"
#include "kv/eviction.h"
#include "kv/testing/prefix_model.h"

namespace cachalot::kv {
namespace {

PrefixModelReport RunAndExpectNoProblem(const PrefixModelRun& run) {
  PrefixModelReport report = RunPrefixModel(run);
  EXPECT_TRUE(report.problems.empty()) << "seed " << run.seed << ": " << report.problems.front();
  return report;
}

TEST(PrefixModel, FindsAllThatWasComputedWhileNothingIsEvicted) {
  uint64_t exact = 0, whole = 0, awaited = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const PrefixModelReport report = RunAndExpectNoProblem(
        {.geometry = {.block_tokens = 4, .windows = {0, 0}, .slots = 20000}, .seed = seed, .operations = 400});
    EXPECT_EQ(report.evicted_slots, 0u);
    exact += report.exact_checks;
    whole += report.whole_hits;
    awaited += report.awaited;
  }
  EXPECT_GT(exact, 500u);
  EXPECT_GT(whole, 50u);
  EXPECT_GT(awaited, 5u);
}

TEST(PrefixModel, EveryVictimMayGo) {
  uint64_t attached = 0, evicted = 0, refusals = 0, rollbacks = 0, watched = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const PrefixModelReport report =
        RunAndExpectNoProblem({.geometry = {.block_tokens = 4, .windows = {0}, .slots = 40},
                               .seed = seed,
                               .operations = 600,
                               .alphabet = 2,
                               .salts = 2});
    attached += report.attached_tokens;
    evicted += report.evicted_slots;
    refusals += report.refusals;
    rollbacks += report.rollbacks;
    watched += report.watched_hits;
  }
  EXPECT_GT(attached, 1000u);
  EXPECT_GT(evicted, 1000u);
  EXPECT_GT(refusals, 100u);
  EXPECT_GT(rollbacks, 500u);
  EXPECT_GT(watched, 1000u);
}

TEST(PrefixModel, HoldsForEveryPolicyAndAnyHints) {
  for (const std::string_view policy : EvictionPolicyNames()) {
    uint64_t evicted = 0, expired = 0, scrubbed = 0, held = 0;
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      const std::vector<uint32_t> windows = seed % 2 == 0 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{0, 9, 9};
      const PrefixModelReport report =
          RunAndExpectNoProblem({.geometry = {.block_tokens = 4, .windows = windows, .slots = 100},
                                 .seed = seed,
                                 .operations = 700,
                                 .salts = 2,
                                 .policy = std::string(policy),
                                 .hints = true});
      evicted += report.evicted_slots;
      expired += report.expired_slots;
      scrubbed += report.scrubbed_slots;
      held += report.held_tokens;
    }
    EXPECT_GT(evicted, 200u) << policy;
    EXPECT_GT(expired, 100u) << policy;
    EXPECT_GT(scrubbed, 100u) << policy;
    EXPECT_GT(held, 50u) << policy;
  }
}

TEST(PrefixModel, SlidingGroupsGoOnWhereTheirWindowsAreThere) {
  SplitMix64 random(7);
  uint64_t attached = 0, evicted = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const uint32_t block = 1u << random.Below(4);
    std::vector<uint32_t> windows;
    for (uint64_t groups = 1 + random.Below(3); groups > 0; --groups) {
      windows.push_back(random.Below(3) == 0 ? 0 : static_cast<uint32_t>(1 + random.Below(4 * block + 3)));
    }
    const uint32_t slots = static_cast<uint32_t>((random.Below(2) == 0 ? 400 : 12000) * windows.size() / block / 4);
    const PrefixModelReport report = RunAndExpectNoProblem(
        {.geometry = {.block_tokens = block, .windows = windows, .slots = slots}, .seed = seed, .operations = 500});
    attached += report.attached_tokens;
    evicted += report.evicted_slots;
  }
  EXPECT_GT(attached, 1000u);
  EXPECT_GT(evicted, 1000u);
}

TEST(PrefixModel, BlocksThatAreLoadedAboveOthersThatAreComputedAreAsIfComputed) {
  SplitMix64 random(11);
  uint64_t loaded = 0, met = 0, evicted = 0, refusals = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const uint32_t block = 1u << random.Below(4);
    std::vector<uint32_t> windows;
    for (uint64_t groups = 1 + random.Below(3); groups > 0; --groups) {
      windows.push_back(random.Below(2) == 0 ? 0 : static_cast<uint32_t>(1 + random.Below(4 * block + 3)));
    }
    const uint32_t slots = static_cast<uint32_t>((random.Below(3) > 0 ? 300 : 12000) * windows.size() / block / 4);
    const PrefixModelReport report = RunAndExpectNoProblem({.geometry = {block, windows, slots},
                                                            .seed = seed,
                                                            .operations = 600,
                                                            .salts = 2,
                                                            .loads = true,
                                                            .hints = seed % 3 == 0});
    loaded += report.loaded_tokens;
    met += report.met;
    evicted += report.evicted_slots;
    refusals += report.refusals;
  }
  EXPECT_GT(loaded, 1000u);
  EXPECT_GT(met, 100u);
  EXPECT_GT(evicted, 1000u);
  EXPECT_GT(refusals, 100u);
}

}  // namespace
}  // namespace cachalot::kv
