#include "sched/fair_share.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::sched {
namespace {

constexpr TenantId kA{0}, kB{1}, kC{2};

constexpr auto kEverybody = [](TenantId) { return true; };

TEST(FairShare, TurnsAreByTokensNotByRequests) {
  FairShare share(100);
  share.Enter(kA);
  share.Enter(kB);
  uint64_t a = 0, b = 0;
  for (int i = 0; i < 3000; ++i) {
    const TenantId next = share.Next(kEverybody).value();
    share.Charge(next, next == kA ? 7 : 130);
    (next == kA ? a : b) += next == kA ? 7 : 130;
  }
  EXPECT_LE(std::max(a, b) - std::min(a, b), 100u + 130);
}

TEST(FairShare, AWeightIsAMultipleOfTheShare) {
  FairShare share(100);
  share.SetWeight(kB, 3);
  share.Enter(kA);
  share.Enter(kB);
  uint64_t a = 0, b = 0;
  for (int i = 0; i < 8000; ++i) {
    const TenantId next = share.Next(kEverybody).value();
    share.Charge(next, 10);
    (next == kA ? a : b) += 10;
  }
  EXPECT_EQ(a, 20000u);
  EXPECT_EQ(b, 60000u);
}

TEST(FairShare, WhoComesLateWaitsForOneTurnOfEachOther) {
  FairShare share(100);
  for (int i = 0; i < 1000; ++i) share.Enter(kA);
  for (int i = 0; i < 1000; ++i) share.Enter(kC);
  share.Charge(kA, 30);
  share.Enter(kB);
  uint64_t before = 0;
  while (share.Next(kEverybody) != kB) {
    share.Charge(*share.Next(kEverybody), 10);
    before += 10;
  }
  EXPECT_LE(before, 200u);
}

TEST(FairShare, AloneNobodyOwesAnything) {
  FairShare share(100);
  share.Enter(kA);
  EXPECT_EQ(share.Next(kEverybody), kA);
  share.Charge(kA, 1'000'000);
  EXPECT_EQ(share.Next(kEverybody), kA);
  share.Enter(kB);
  EXPECT_EQ(share.Next(kEverybody), kA);  // in the middle of its turn
  share.Charge(kA, 100);
  EXPECT_EQ(share.Next(kEverybody), kB);
}

TEST(FairShare, WhatIsOwedOutlivesTheQueueOnlyWhileOthersWait) {
  FairShare share(100);
  share.Enter(kA);
  share.Enter(kB);
  ASSERT_EQ(share.Next(kEverybody), kA);
  share.Leave(kA);        // it runs,
  share.Charge(kA, 350);  // and generates
  share.Enter(kA);
  int turns = 0;
  while (share.Next(kEverybody) == kB) {
    share.Charge(kB, 100);
    ++turns;
  }
  EXPECT_EQ(turns, 4);
  share.Charge(kA, 5000);
  share.Leave(kB);
  share.Leave(kA);  // nobody waits any more
  share.Enter(kA);
  share.Enter(kB);
  EXPECT_EQ(share.Next(kEverybody), kA);
}

TEST(FairShare, WhatIsLeftIsLostWithNothingWaiting) {
  FairShare share(100);
  share.Enter(kA);
  share.Enter(kB);
  ASSERT_EQ(share.Next(kEverybody), kA);
  share.Charge(kA, 1);
  share.Leave(kA);
  share.Enter(kA);
  EXPECT_EQ(share.Next(kEverybody), kB);  // it lost its place too
}

TEST(FairShare, WhoCannotRunKeepsItsPlaceButGathersNothing) {
  FairShare share(100);
  share.Enter(kA);
  share.Enter(kB);
  const auto only_b = [](TenantId tenant) { return tenant == kB; };
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(share.Next(only_b), kB);
    share.Charge(kB, 60);
  }
  uint64_t a = 0;
  while (share.Next(kEverybody) == kA) {
    share.Charge(kA, 10);
    a += 10;
  }
  EXPECT_EQ(a, 100u);
  EXPECT_EQ(share.Next([](TenantId) { return false; }), std::nullopt);
}

// The same by the letter: visits the round over and over, one quantum at a time.
class NaiveShare {
 public:
  struct Tenant {
    uint32_t id;
    int64_t left = 0;
    bool begun = false;
  };

  explicit NaiveShare(std::map<uint32_t, int64_t> quanta) : quanta_(std::move(quanta)) {}

  void Enter(uint32_t t) {
    if (waiting_[t]++ == 0 && Find(t) == round_.end()) round_.push_back({t});
  }
  void Leave(uint32_t t) {
    if (--waiting_[t] > 0) return;
    const auto found = Find(t);
    found->left = std::min<int64_t>(found->left, 0);
    if (found->left == 0) round_.erase(found);
    if (std::ranges::all_of(waiting_, [](const auto& w) { return w.second == 0; })) round_.clear();
  }
  void Charge(uint32_t t, int64_t tokens) {
    if (std::ranges::all_of(round_, [&](const Tenant& x) { return x.id == t; })) return;
    if (tokens == 0) return;
    if (Find(t) == round_.end()) round_.push_back({t});
    const auto found = Find(t);
    found->left -= tokens;
    if (!found->begun || found->left > 0) return;
    found->begun = false;
    std::rotate(found, found + 1, round_.end());
  }
  std::optional<uint32_t> Next(uint32_t can_run) {
    const auto able = [&](const Tenant& x) { return (can_run >> x.id & 1) != 0; };
    if (std::ranges::none_of(round_, [&](const Tenant& x) { return waiting_[x.id] > 0 && able(x); }))
      return Sweep(able);
    for (;;) {
      if (const auto next = Sweep(able)) return next;
    }
  }

 private:
  std::vector<Tenant>::iterator Find(uint32_t t) { return std::ranges::find(round_, t, &Tenant::id); }

  template <class Able>
  std::optional<uint32_t> Sweep(Able able) {
    std::vector<Tenant> passed_over, later;
    while (!round_.empty()) {
      Tenant x = round_.front();
      if (waiting_[x.id] > 0 && !able(x)) {
        passed_over.push_back(x);
        round_.erase(round_.begin());
        continue;
      }
      if (!x.begun) x.left = std::min(x.left + quanta_[x.id], waiting_[x.id] > 0 ? quanta_[x.id] : 0);
      x.begun = waiting_[x.id] > 0 && x.left > 0;
      round_.front() = x;
      if (x.begun) break;
      round_.erase(round_.begin());
      if (waiting_[x.id] > 0 || x.left < 0) later.push_back(x);
    }
    const std::optional<uint32_t> next = round_.empty() ? std::nullopt : std::optional(round_.front().id);
    round_.insert(round_.begin(), passed_over.begin(), passed_over.end());
    round_.insert(round_.end(), later.begin(), later.end());
    return next;
  }

  std::map<uint32_t, int64_t> quanta_;
  std::map<uint32_t, int> waiting_;
  std::vector<Tenant> round_;
};

TEST(FairShare, DoesWhatTheNaiveOneDoes) {
  uint64_t answers = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SplitMix64 random(seed);
    constexpr uint32_t kTenants = 6;
    FairShare share(50);
    std::map<uint32_t, int64_t> quanta;
    for (uint32_t t = 0; t < kTenants; ++t) {
      const auto weight = static_cast<uint32_t>(1 + random.Below(4));
      share.SetWeight(TenantId(t), weight);
      quanta[t] = 50 * weight;
    }
    NaiveShare naive(quanta);
    uint32_t waiting[kTenants] = {};
    for (int i = 0; i < 1000; ++i) {
      const auto t = static_cast<uint32_t>(random.Below(kTenants));
      const auto can_run = static_cast<uint32_t>(random.Below(4) == 0 ? random.Below(1 << kTenants) : ~0u);
      const uint64_t tokens = random.Below(random.Below(20) == 0 ? 20000 : 120);
      switch (random.Below(5)) {
        case 0: share.Enter(TenantId(t)), naive.Enter(t), ++waiting[t]; break;
        case 1:
          if (waiting[t] > 0) share.Leave(TenantId(t)), naive.Leave(t), --waiting[t];
          break;
        case 2: share.Charge(TenantId(t), tokens), naive.Charge(t, static_cast<int64_t>(tokens)); break;
        default:
          const auto got = share.Next([&](TenantId tenant) { return (can_run >> tenant.value & 1) != 0; });
          const auto expected = naive.Next(can_run);
          ASSERT_EQ(got ? std::optional(got->value) : std::nullopt, expected) << seed << " " << i;
          if (got) {
            ++answers;
            share.Charge(*got, tokens), naive.Charge(got->value, static_cast<int64_t>(tokens));
          }
      }
      ASSERT_EQ(share.waiting(TenantId(t)), waiting[t]);
    }
  }
  EXPECT_GT(answers, 20000u);
}

}  // namespace
}  // namespace cachalot::sched
