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

// What the policies are told, kept plainly, and the same orders by looking at every candidate.
class Reference {
 public:
  struct Item {
    EntryInfo info;
    Retention retention;
    uint64_t inserted = 0, touched = 0, touches = 0;
    bool candidate = false;
    // S3-FIFO
    bool in_main = false;
    uint64_t arrived = 0, uses = 0;
  };
  explicit Reference(std::string name) : name_(std::move(name)) {}

  void Insert(EntryId entry, const EntryInfo& info, const Retention& wish) {
    Item& item = items_[entry] = {.info = info, .retention = wish};
    item.inserted = item.touched = ++calls_;
    item.touches = 1;
    const auto left = left_small_.find(entry);
    item.in_main = left != left_small_.end() && leavings_ - left->second < Residents(true);
    if (left != left_small_.end()) left_small_.erase(left);
    item.arrived = ++arrivals_;
  }
  void Touch(EntryId entry, const Retention& wish, Nanos now) {
    Item& item = items_.at(entry);
    item.touched = ++calls_;
    ++item.touches;
    item.uses = std::min<uint64_t>(3, item.uses + 1);
    const bool passed = item.retention.deadline <= now;
    item.retention.priority = passed ? wish.priority : std::max(item.retention.priority, wish.priority);
    item.retention.deadline = passed ? wish.deadline : std::max(item.retention.deadline, wish.deadline);
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
  static int RungOf(const Item& item, Nanos now) {
    if (item.retention.deadline <= now) return 0;
    return 1 + 2 * static_cast<int>(item.retention.priority) + (item.info.has_lower_copy ? 0 : 1);
  }
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
    const Retention wish{.priority = static_cast<Priority>(random.Below(3)),
                         .deadline = random.Below(4) == 0 ? now + milliseconds(random.Below(3000)) : kNever};
    const VisitId visit = policy->StartVisit({.now = now, .retention = wish});
    if (!reference.Has(entry)) {
      const EntryInfo info{.position = random.Below(9), .has_lower_copy = random.Below(3) == 0, .visit = visit};
      policy->Insert(entry, info, now);
      reference.Insert(entry, info, wish);
      ghosts.erase(entry);
    } else if (random.Below(3) == 0) {
      policy->Touch(entry, now);
      reference.Touch(entry, wish, now);
    } else if (reference.At(entry).candidate) {
      policy->NotCandidate(entry);
      reference.At(entry).candidate = false;
    } else {
      policy->BecomeCandidate(entry);
      reference.At(entry).candidate = true;
    }
    policy->EndVisit(visit, now);
    if (reference.Has(entry) && random.Below(8) == 0) {
      const bool copy = random.Below(2) == 0;
      policy->SetLowerCopy(entry, copy, now);
      reference.At(entry).info.has_lower_copy = copy;
    }
    const std::optional<EntryId> expected = reference.Victim(now);
    ASSERT_EQ(policy->Victim(now), expected) << "call " << call;
    const std::optional<EntryId> late = policy->Expired(now);
    if (late) {
      ASSERT_LE(reference.At(*late).retention.deadline, now);
    }
    if (expected && reference.At(*expected).retention.deadline <= now) {
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

TEST_P(EveryPolicy, LetsExpiredGoFirstThenLowPriorityThenWhatALowerTierHolds) {
  const auto policy = Make(GetParam());
  const auto add = [&](EntryId entry, Priority priority, Nanos deadline, bool copy) {
    const VisitId visit = policy->StartVisit({.retention = {priority, deadline}});
    policy->Insert(entry, {.position = 16, .has_lower_copy = copy, .visit = visit}, Nanos(0));
    policy->EndVisit(visit, Nanos(0));
    policy->BecomeCandidate(entry);
  };
  add(0, Priority::kHigh, kNever, false);
  add(1, Priority::kHigh, kNever, true);
  add(2, Priority::kNormal, kNever, false);
  add(3, Priority::kNormal, kNever, true);
  add(4, Priority::kLow, kNever, false);
  add(5, Priority::kLow, kNever, true);
  add(6, Priority::kHigh, seconds(10), false);
  EXPECT_EQ(policy->Expired(seconds(9)), std::nullopt);
  EXPECT_EQ(policy->Victim(seconds(9)), EntryId{5});
  EXPECT_EQ(policy->Expired(seconds(10)), EntryId{6});
  for (const EntryId expected : {6u, 5u, 4u, 3u, 2u, 1u, 0u}) {
    ASSERT_EQ(policy->Victim(seconds(10)), expected);
    policy->Remove(expected);
  }
  EXPECT_EQ(policy->Victim(seconds(10)), std::nullopt);
}

TEST_P(EveryPolicy, AUseBeforeTheDeadlineCanMoveIt) {
  const auto policy = Make(GetParam());
  const VisitId first = policy->StartVisit({.retention = {.deadline = seconds(5)}});
  policy->Insert(3, {.position = 16, .visit = first}, Nanos(0));
  policy->EndVisit(first, Nanos(0));
  policy->BecomeCandidate(3);
  const VisitId second = policy->StartVisit({.now = seconds(4), .retention = {.deadline = seconds(8)}});
  policy->Touch(3, seconds(4));
  policy->EndVisit(second, seconds(4));
  EXPECT_EQ(policy->Expired(seconds(7)), std::nullopt);
  EXPECT_EQ(policy->Expired(seconds(8)), EntryId{3});
}

TEST_P(EveryPolicy, ANumberUsedAgainHasNoPast) {
  const auto policy = Make(GetParam());
  const VisitId visit = policy->StartVisit({.retention = {Priority::kHigh, seconds(5)}});
  policy->Insert(0, {.visit = visit}, Nanos(0));
  policy->EndVisit(visit, Nanos(0));
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
