#include "kv/eviction_ranked.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"

namespace cachalot::kv {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<EvictionPolicy> Make(std::string_view name) {
  auto policy = MakeEvictionPolicy(name);
  EXPECT_TRUE(policy.ok()) << policy.status().message();
  return std::move(policy).value();
}

// Where a candidate stands above all policies, from all that was ever wished for it.
int RungOf(const std::vector<Retention>& wishes, Nanos now) {
  int rung = 0;
  for (const Retention& wish : wishes) {
    if (wish.deadline <= now) continue;
    rung = std::max(rung, 1 + static_cast<int>(wish.priority));
  }
  return rung;
}

// What the policies are told, kept plainly, and the same orders by looking at every candidate.
class Reference {
 public:
  struct Item {
    EntryInfo info;
    std::vector<Retention> wishes;
    uint64_t inserted = 0, touched = 0, touches = 0;
    bool candidate = false;
    // S3-FIFO
    bool in_main = false;
    uint64_t arrived = 0, uses = 0;
  };
  explicit Reference(std::string name) : name_(std::move(name)) {}

  void Insert(EntryId entry, const EntryInfo& info) {
    Item& item = items_[entry] = {.info = info, .wishes = {info.retention}};
    item.inserted = item.touched = ++calls_;
    item.touches = 1;
    const auto left = left_small_.find(entry);
    item.in_main = left != left_small_.end() && leavings_ - left->second < Residents(true);
    if (left != left_small_.end()) left_small_.erase(left);
    item.arrived = ++arrivals_;
  }
  void Touch(EntryId entry) {
    Item& item = items_.at(entry);
    item.touched = ++calls_;
    ++item.touches;
    item.uses = std::min<uint64_t>(3, item.uses + 1);
  }
  void Evict(EntryId entry) {
    if (!items_.at(entry).in_main) left_small_[entry] = ++leavings_;
    items_.erase(entry);
  }
  void Remove(EntryId entry) {
    if (items_.contains(entry)) Evict(entry);
    left_small_.erase(entry);
  }
  Item& At(EntryId entry) { return items_.at(entry); }
  bool Has(EntryId entry) const { return items_.contains(entry); }

  std::optional<EntryId> Victim(Nanos now) {
    std::optional<EntryId> best = Least(now, [&](const Item& item) { return KeyOf(item); });
    if (name_ != "s3fifo" || !best) return best;
    const int rung = RungOf(items_.at(*best), now);
    for (;;) {
      const bool small_full = Residents(false) * 10 >= Residents(false) + Residents(true);
      const auto small = Oldest(rung, now, false), main = Oldest(rung, now, true);
      const EntryId oldest = small && (small_full || !main) ? *small : *main;
      Item& item = items_.at(oldest);
      if (item.in_main ? item.uses == 0 : item.uses < 2) return oldest;
      item.uses = item.in_main ? item.uses - 1 : 0;
      item.in_main = true;
      item.arrived = ++arrivals_;
    }
  }

 private:
  static int RungOf(const Item& item, Nanos now) { return kv::RungOf(item.wishes, now); }
  std::pair<uint64_t, uint64_t> KeyOf(const Item& item) const {
    if (name_ == "lfu") return {item.touches, item.touched};
    if (name_ == "fifo") return {item.inserted, 0};
    if (name_ == "length") return {~item.info.position, item.touched};
    return {item.touched, 0};
  }
  template <class Key>
  std::optional<EntryId> Least(Nanos now, Key key) const {
    std::optional<EntryId> best;
    for (const auto& [entry, item] : items_) {
      if (!item.candidate) continue;
      if (!best ||
          std::pair(RungOf(item, now), key(item)) < std::pair(RungOf(items_.at(*best), now), key(items_.at(*best))))
        best = entry;
    }
    return best;
  }
  std::optional<EntryId> Oldest(int rung, Nanos now, bool in_main) const {
    std::optional<EntryId> best;
    for (const auto& [entry, item] : items_) {
      if (!item.candidate || item.in_main != in_main || RungOf(item, now) != rung) continue;
      if (!best || item.arrived < items_.at(*best).arrived) best = entry;
    }
    return best;
  }
  uint64_t Residents(bool in_main) const {
    return static_cast<uint64_t>(
        std::ranges::count_if(items_, [&](const auto& item) { return item.second.in_main == in_main; }));
  }

  const std::string name_;
  std::map<EntryId, Item> items_;
  std::map<EntryId, uint64_t> left_small_;
  uint64_t calls_ = 0, arrivals_ = 0, leavings_ = 0;
};

class AgainstReference : public testing::TestWithParam<const char*> {};

TEST_P(AgainstReference, HundredThousandRandomCallsGiveTheSameVictims) {
  constexpr EntryId kEntries = 60;
  const auto policy = Make(GetParam());
  Reference reference(GetParam());
  SplitMix64 random(7);
  Nanos now{0};
  std::set<EntryId> ghosts;
  uint64_t victims = 0, expired = 0;
  for (int call = 0; call < 100'000; ++call) {
    now += milliseconds(random.Below(50));
    const auto entry = static_cast<EntryId>(random.Below(kEntries));
    const Retention wish{.priority = static_cast<RetentionPriority>(random.Below(3)),
                         .deadline = random.Below(4) == 0 ? now + milliseconds(random.Below(3000)) : kNever};
    const VisitId visit = policy->StartVisit({.now = now});
    if (!reference.Has(entry)) {
      const EntryInfo info{.position = random.Below(9), .visit = visit, .retention = wish};
      policy->Insert(entry, info, now);
      reference.Insert(entry, info);
      ghosts.erase(entry);
    } else if (random.Below(3) == 0) {
      policy->Touch(entry, now);
      reference.Touch(entry);
    } else if (random.Below(3) == 0) {
      policy->Retain(entry, wish, now);
      reference.At(entry).wishes.push_back(wish);
    } else if (reference.At(entry).candidate) {
      policy->NotCandidate(entry);
      reference.At(entry).candidate = false;
    } else {
      policy->BecomeCandidate(entry);
      reference.At(entry).candidate = true;
    }
    policy->EndVisit(visit, now);
    const std::optional<EntryId> expected = reference.Victim(now);
    ASSERT_EQ(policy->Victim(now), expected) << "call " << call;
    const std::optional<EntryId> late = policy->Expired(now);
    if (late) {
      ASSERT_EQ(RungOf(reference.At(*late).wishes, now), 0);
      ASSERT_LE(policy->NextExpiry(), now);
    }
    if (expected && RungOf(reference.At(*expected).wishes, now) == 0) {
      ASSERT_TRUE(late);
    }
    expired += late ? 1 : 0;
    if (!expected || random.Below(3) != 0) continue;
    ++victims;
    if (random.Below(2) == 0) {
      policy->Evict(*expected);
      reference.Evict(*expected);
      ghosts.insert(*expected);
    } else {
      policy->Remove(*expected);
      reference.Remove(*expected);
    }
    if (!ghosts.empty() && random.Below(4) == 0) {
      policy->Remove(*ghosts.begin());
      reference.Remove(*ghosts.begin());
      ghosts.erase(ghosts.begin());
    }
  }
  EXPECT_GT(victims, 10'000u);
  EXPECT_GT(expired, 1'000u);
}

INSTANTIATE_TEST_SUITE_P(Policies, AgainstReference, testing::Values("lru", "lfu", "fifo", "length", "s3fifo"));

class EveryPolicy : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryPolicy, LetsExpiredGoFirstThenLowPriority) {
  const auto policy = Make(GetParam());
  const auto add = [&](EntryId entry, RetentionPriority priority, Nanos deadline) {
    policy->Insert(entry, {.position = 16, .retention = {priority, deadline}}, Nanos(0));
    policy->BecomeCandidate(entry);
  };
  add(0, RetentionPriority::kHigh, kNever);
  add(1, RetentionPriority::kNormal, kNever);
  add(2, RetentionPriority::kLow, kNever);
  add(3, RetentionPriority::kHigh, seconds(10));
  EXPECT_EQ(policy->Expired(seconds(9)), std::nullopt);
  EXPECT_EQ(policy->Victim(seconds(9)), EntryId{2});
  EXPECT_EQ(policy->Expired(seconds(10)), EntryId{3});
  for (const EntryId expected : {3u, 2u, 1u, 0u}) {
    ASSERT_EQ(policy->Victim(seconds(10)), expected);
    policy->Remove(expected);
  }
  EXPECT_EQ(policy->Victim(seconds(10)), std::nullopt);
}

TEST_P(EveryPolicy, AUseBeforeTheDeadlineCanMoveIt) {
  const auto policy = Make(GetParam());
  policy->Insert(3, {.position = 16, .retention = {.deadline = seconds(5)}}, Nanos(0));
  policy->BecomeCandidate(3);
  EXPECT_EQ(policy->NextExpiry(), seconds(5));
  policy->Touch(3, seconds(4));
  policy->Retain(3, {.deadline = seconds(8)}, seconds(4));
  EXPECT_EQ(policy->Expired(seconds(7)), std::nullopt);
  EXPECT_EQ(policy->NextExpiry(), seconds(8));
  EXPECT_EQ(policy->Expired(seconds(8)), EntryId{3});
}

TEST_P(EveryPolicy, APriorityEndsWithItsDeadlineAndTheNextOneHolds) {
  const auto policy = Make(GetParam());
  policy->Insert(0, {.retention = {RetentionPriority::kHigh, seconds(5)}}, Nanos(0));
  policy->Insert(1, {.retention = {RetentionPriority::kNormal, kNever}}, Nanos(0));
  policy->Retain(0, {RetentionPriority::kLow, seconds(9)}, Nanos(0));
  policy->BecomeCandidate(0);
  policy->BecomeCandidate(1);
  EXPECT_EQ(policy->Victim(seconds(4)), EntryId{1});
  EXPECT_EQ(policy->Victim(seconds(5)), EntryId{0});
  EXPECT_EQ(policy->Expired(seconds(8)), std::nullopt);
  EXPECT_EQ(policy->Expired(seconds(9)), EntryId{0});
}

// Whatever the policy's own order is: the expired first, then low priority before high.
TEST_P(EveryPolicy, NothingGoesWhileSomethingStandsBelowIt) {
  struct Item {
    std::vector<Retention> wishes;
    bool candidate = false;
  };
  const auto policy = Make(GetParam());
  std::map<EntryId, Item> items;
  SplitMix64 random(11);
  Nanos now{0};
  int victims[4] = {};
  for (int call = 0; call < 100'000; ++call) {
    now += milliseconds(random.Below(40));
    const auto entry = static_cast<EntryId>(random.Below(80));
    const Retention wish{.priority = static_cast<RetentionPriority>(random.Below(3)),
                         .deadline = random.Below(2) == 0 ? now + milliseconds(random.Below(4000)) : kNever};
    const auto found = items.find(entry);
    if (found == items.end()) {
      policy->Insert(entry, {.position = 16, .retention = wish}, now);
      items[entry] = {{wish}, false};
    } else if (const uint64_t dice = random.Below(5); dice < 2) {
      found->second.candidate ? policy->NotCandidate(entry) : policy->BecomeCandidate(entry);
      found->second.candidate = !found->second.candidate;
    } else if (dice == 2) {
      policy->Touch(entry, now);
    } else if (dice == 3) {
      policy->Retain(entry, wish, now);
      found->second.wishes.push_back(wish);
    }
    if (random.Below(2) == 0) continue;
    int lowest = 4;
    for (const auto& [id, item] : items) {
      if (item.candidate) lowest = std::min(lowest, RungOf(item.wishes, now));
    }
    const std::optional<EntryId> victim = policy->Victim(now);
    ASSERT_EQ(victim.has_value(), lowest < 4);
    if (!victim) continue;
    const Item& item = items.at(*victim);
    ASSERT_TRUE(item.candidate);
    ASSERT_EQ(RungOf(item.wishes, now), lowest) << "call " << call;
    ++victims[lowest];
    policy->Remove(*victim);
    items.erase(*victim);
  }
  for (const int count : victims) EXPECT_GT(count, 20);
}

TEST_P(EveryPolicy, ANumberUsedAgainHasNoPast) {
  const auto policy = Make(GetParam());
  policy->Insert(0, {.retention = {RetentionPriority::kHigh, seconds(5)}}, Nanos(0));
  policy->BecomeCandidate(0);
  policy->Remove(0);
  EXPECT_EQ(policy->Victim(seconds(1)), std::nullopt);
  policy->Insert(0, {}, seconds(2));
  policy->BecomeCandidate(0);
  EXPECT_EQ(policy->Expired(seconds(6)), std::nullopt);
  EXPECT_EQ(policy->Victim(seconds(6)), EntryId{0});
}

// Elementary steps per victim and reinsertion with that many candidates.
double StepsPerVictim(std::string_view name, EntryId entries) {
  const auto policy = Make(name);
  auto& ranked = dynamic_cast<RankedPolicy&>(*policy);
  Nanos now{0};
  const auto add = [&](EntryId entry) {
    now += milliseconds(20);
    const VisitId visit = policy->StartVisit({.now = now, .prompt_tokens = 512, .whole_tokens = 512});
    policy->Insert(entry, {.position = 512, .visit = visit}, now);
    policy->EndVisit(visit, now);
    policy->BecomeCandidate(entry);
  };
  for (EntryId entry = 0; entry < entries; ++entry) add(entry);
  constexpr int kVictims = 20'000;
  const uint64_t before = ranked.steps();
  for (int i = 0; i < kVictims; ++i) {
    const EntryId victim = *policy->Victim(now);
    policy->Remove(victim);
    add(victim);
  }
  return static_cast<double>(ranked.steps() - before) / kVictims;
}

TEST_P(EveryPolicy, AVictimCostsNoMoreAmongManyThanAmongFewButForALogarithm) {
  const double few = StepsPerVictim(GetParam(), 1'000);
  const double many = StepsPerVictim(GetParam(), 64'000);
  EXPECT_GT(few, 0);
  // A heap is six levels deeper. Cost: 24 words of a bitmap, and two steps for each of 24 idle times that pass.
  EXPECT_LE(many, GetParam() == "cost" ? 24 + 2 * 24 + 8 : few + 2 * 6) << few;
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy, testing::ValuesIn(EvictionPolicyNames()));

TEST(EvictionPolicy, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const auto policy = MakeEvictionPolicy("clock");
  ASSERT_FALSE(policy.ok());
  EXPECT_EQ(policy.status().code(), Code::kInvalid);
  EXPECT_EQ(policy.status().message(),
            "unknown eviction policy \"clock\": expected one of cost, lru, lfu, fifo, s3fifo, length");
}

}  // namespace
}  // namespace cachalot::kv
