#include "exec/device_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"

namespace cachalot::exec {
namespace {

constexpr uint64_t kSlotBytes = 256;
constexpr uint32_t kSlots = 12;

using Bytes = std::vector<std::byte>;
using MemoryResult = Result<std::unique_ptr<DeviceMemory>>;

Bytes Pattern(uint8_t seed) {
  Bytes bytes(kSlotBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(seed + 3 * i);
  return bytes;
}

std::byte* SlotOf(DeviceMemory& memory, uint32_t slot) { return memory.arena() + slot * memory.slot_bytes(); }

void Fill(DeviceMemory& memory, uint32_t slot, const Bytes& bytes) {
  std::memcpy(SlotOf(memory, slot), bytes.data(), bytes.size());
}

Bytes Read(DeviceMemory& memory, uint32_t slot) { return {SlotOf(memory, slot), SlotOf(memory, slot) + kSlotBytes}; }

// --- What every backend promises.

struct Backend {
  const char* name;
  MemoryResult (*make)(uint64_t slot_bytes, uint32_t slots, Clock& clock);
};

MemoryResult MakeCpu(uint64_t slot_bytes, uint32_t slots, Clock&) { return MakeCpuMemory(slot_bytes, slots); }
MemoryResult MakeSimLink(uint64_t slot_bytes, uint32_t slots, Clock& clock) {
  return MakeSimLinkMemory(slot_bytes, slots, {}, clock);
}

class DeviceMemoryContract : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    MemoryResult made = GetParam().make(kSlotBytes, kSlots, clock_);
    ASSERT_TRUE(made.ok()) << made.status().message();
    memory_ = std::move(made).value();
  }
  ManualClock clock_;
  std::unique_ptr<DeviceMemory> memory_;
};

TEST_P(DeviceMemoryContract, OffersTheSlotsThatWereAskedFor) {
  EXPECT_STREQ(memory_->name(), GetParam().name);
  EXPECT_EQ(memory_->slot_bytes(), kSlotBytes);
  EXPECT_EQ(memory_->slots(), kSlots);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory_->arena()) % 64, 0u);
  for (uint32_t slot = 0; slot < kSlots; ++slot) Fill(*memory_, slot, Pattern(static_cast<uint8_t>(slot)));
  for (uint32_t slot = 0; slot < kSlots; ++slot) EXPECT_EQ(Read(*memory_, slot), Pattern(static_cast<uint8_t>(slot)));
}

TEST_P(DeviceMemoryContract, CopiesMoveASlotOutInAndWithin) {
  Fill(*memory_, 3, Pattern(1));
  Bytes out(kSlotBytes);
  EXPECT_TRUE(memory_->Wait(memory_->CopyOut(SlotId(3), out)).ok());
  EXPECT_EQ(out, Pattern(1));
  const Bytes in = Pattern(2);
  EXPECT_TRUE(memory_->Wait(memory_->CopyIn(in, SlotId(4))).ok());
  EXPECT_EQ(Read(*memory_, 4), in);
  const BlockCopy copies[] = {{SlotId(3), SlotId(0)}, {SlotId(4), SlotId(11)}, {SlotId(4), SlotId(5)}};
  EXPECT_TRUE(memory_->Wait(memory_->CopyWithin(copies)).ok());
  EXPECT_EQ(Read(*memory_, 0), Pattern(1));
  EXPECT_EQ(Read(*memory_, 11), Pattern(2));
  EXPECT_EQ(Read(*memory_, 5), Pattern(2));
  EXPECT_EQ(Read(*memory_, 3), Pattern(1));
}

TEST_P(DeviceMemoryContract, SlotsAreComparedAsFarAsTheyAreUsed) {
  Bytes other = Pattern(1);
  other[10] ^= std::byte{1};
  Fill(*memory_, 3, Pattern(1));
  Fill(*memory_, 4, Pattern(1));
  Fill(*memory_, 5, other);
  EXPECT_TRUE(memory_->Same(SlotId(3), SlotId(4), kSlotBytes).value());
  EXPECT_TRUE(memory_->Same(SlotId(3), SlotId(5), 10).value());
  EXPECT_FALSE(memory_->Same(SlotId(3), SlotId(5), 11).value());
}

TEST_P(DeviceMemoryContract, CopiesAreDoneInTheOrderGiven) {
  // A slot is saved, refilled and copied on, all in flight together.
  Fill(*memory_, 0, Pattern(1));
  Bytes saved(kSlotBytes);
  const Bytes in = Pattern(2);
  const CopyTicket out = memory_->CopyOut(SlotId(0), saved);
  const CopyTicket refill = memory_->CopyIn(in, SlotId(0));
  const BlockCopy copy[] = {{SlotId(0), SlotId(1)}};
  EXPECT_TRUE(memory_->Wait(memory_->CopyWithin(copy)).ok());
  EXPECT_EQ(saved, Pattern(1));
  EXPECT_EQ(Read(*memory_, 0), in);
  EXPECT_EQ(Read(*memory_, 1), in);
  EXPECT_TRUE(memory_->Done(out) && memory_->Done(refill));
}

TEST_P(DeviceMemoryContract, WhatWasGivenBeforeADoneCopyIsDone) {
  Bytes host[4];
  std::vector<CopyTicket> tickets;
  for (Bytes& bytes : host) {
    bytes.resize(kSlotBytes);
    tickets.push_back(memory_->CopyOut(SlotId(0), bytes));
  }
  EXPECT_EQ(memory_->Done(tickets[0]), !memory_->asynchronous());
  EXPECT_TRUE(memory_->Wait(tickets[1]).ok());
  EXPECT_TRUE(memory_->Done(tickets[0]) && memory_->Done(tickets[1]));
  EXPECT_EQ(memory_->Done(tickets[2]), !memory_->asynchronous());
  EXPECT_EQ(memory_->NextDone().has_value(), memory_->asynchronous());
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(memory_->Done(tickets[3]));
  EXPECT_EQ(memory_->NextDone(), std::nullopt);
  for (const CopyTicket ticket : tickets) EXPECT_TRUE(memory_->Wait(ticket).ok());  // done long ago
}

TEST_P(DeviceMemoryContract, AnEmptyListOfCopiesHasATicketToo) {
  const CopyTicket ticket = memory_->CopyWithin({});
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(memory_->Done(ticket));
}

TEST_P(DeviceMemoryContract, PartsOfSlotsAreFilledAndNothingBesideThem) {
  Fill(*memory_, 1, Pattern(1));
  Fill(*memory_, 2, Pattern(2));
  const Bytes in = Pattern(9);
  const SlotFill fills[] = {{std::span(in).subspan(16, 32), SlotId(1), 64},
                            {std::span(in).first(8), SlotId(2), 0},
                            {std::span(in).subspan(8, 24), SlotId(2), kSlotBytes - 24}};
  EXPECT_TRUE(memory_->Wait(memory_->CopyIn(fills)).ok());
  Bytes one = Pattern(1), two = Pattern(2);
  std::copy_n(in.begin() + 16, 32, one.begin() + 64);
  std::copy_n(in.begin(), 8, two.begin());
  std::copy_n(in.begin() + 8, 24, two.end() - 24);
  EXPECT_EQ(Read(*memory_, 1), one);
  EXPECT_EQ(Read(*memory_, 2), two);
}

TEST_P(DeviceMemoryContract, RandomCopiesInFlightEndAsIfDoneOneByOne) {
  SplitMix64 random(5);
  std::vector<Bytes> slots;
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    slots.push_back(Pattern(static_cast<uint8_t>(7 * slot)));
    Fill(*memory_, slot, slots.back());
  }
  std::vector<Bytes> host(8, Pattern(200));
  std::vector<Bytes> expected_host = host;
  CopyTicket last{0};
  for (int i = 0; i < 1000; ++i) {
    const auto a = static_cast<uint32_t>(random.Below(kSlots));
    const auto b = static_cast<uint32_t>((a + 1 + random.Below(kSlots - 1)) % kSlots);
    const size_t h = random.Below(host.size());
    const uint64_t kind = random.Below(3);
    if (kind == 0) {
      last = memory_->CopyOut(SlotId(a), host[h]);
      expected_host[h] = slots[a];
    } else if (kind == 1) {
      last = memory_->CopyIn(host[h], SlotId(a));
      slots[a] = expected_host[h];
    } else {
      const BlockCopy copy[] = {{SlotId(a), SlotId(b)}};
      last = memory_->CopyWithin(copy);
      slots[b] = slots[a];
    }
    if (random.Below(10) == 0) clock_.Advance(Nanos(static_cast<Nanos::rep>(random.Below(50'000))));
    if (random.Below(10) == 0) (void)memory_->Done(CopyTicket(0));
  }
  EXPECT_TRUE(memory_->Wait(last).ok());
  EXPECT_EQ(host, expected_host);
  for (uint32_t slot = 0; slot < kSlots; ++slot) EXPECT_EQ(Read(*memory_, slot), slots[slot]);
}

TEST_P(DeviceMemoryContract, MoreThanTheMachineHasIsRefusedWithAskedAndAvailable) {
  const MemoryResult refused = GetParam().make(uint64_t{1} << 30, 1u << 20, clock_);  // 1 PiB
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kUnavailable);
  EXPECT_NE(refused.status().message().find("1048576 slots of 1 GiB"), std::string::npos) << refused.status().message();
  EXPECT_NE(refused.status().message().find("available"), std::string::npos) << refused.status().message();
}

TEST_P(DeviceMemoryContract, SizesThatOverflowOrAreEmptyAreRefused) {
  for (const uint64_t slot_bytes : {UINT64_MAX, uint64_t{1} << 62, (uint64_t{1} << 32) + 1}) {
    const MemoryResult refused = GetParam().make(slot_bytes, UINT32_MAX, clock_);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), Code::kUnavailable);
  }
  EXPECT_EQ(GetParam().make(0, 5, clock_).status().code(), Code::kInvalid);
  EXPECT_EQ(GetParam().make(64, 0, clock_).status().code(), Code::kInvalid);
}

using DeviceMemoryDeathTest = DeviceMemoryContract;

TEST_P(DeviceMemoryDeathTest, MisuseStops) {
  Bytes host(kSlotBytes);
  const Bytes too_long(kSlotBytes + 1);
  const BlockCopy onto_itself[] = {{SlotId(1), SlotId(1)}};
  EXPECT_DEATH(memory_->CopyOut(SlotId(kSlots), host), "check failed");
  EXPECT_DEATH(memory_->CopyOut(SlotId(0), std::span(host).first(kSlotBytes - 1)), "check failed");
  EXPECT_DEATH(memory_->CopyIn(too_long, SlotId(0)), "check failed");
  const SlotFill beyond[] = {{.host = host, .to = SlotId(1), .offset = 1}};
  EXPECT_DEATH(memory_->CopyIn(beyond), "check failed");
  EXPECT_DEATH(memory_->CopyWithin(onto_itself), "check failed");
  EXPECT_DEATH((void)memory_->Wait(CopyTicket(1)), "check failed");
}

const auto kBackends = testing::Values(Backend{"cpu", MakeCpu}, Backend{"simlink", MakeSimLink});
std::string NameOf(const testing::TestParamInfo<Backend>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Backends, DeviceMemoryContract, kBackends, NameOf);
INSTANTIATE_TEST_SUITE_P(Backends, DeviceMemoryDeathTest, kBackends, NameOf);

// --- What the link adds: 256 bytes at 256 MB/s take 1 us, after 10 us of latency.

class SimLink : public testing::Test {
 protected:
  void SetUp() override {
    MemoryResult made =
        MakeSimLinkMemory(kSlotBytes, kSlots, {.bytes_per_second = 256e6, .latency = Nanos(10'000)}, clock_);
    ASSERT_TRUE(made.ok());
    memory_ = std::move(made).value();
  }
  void AdvanceTo(int64_t nanos) { clock_.Advance(Nanos(nanos) - clock_.Now()); }

  ManualClock clock_;
  std::unique_ptr<DeviceMemory> memory_;
};

TEST_F(SimLink, ACopyTakesLatencyPlusBytesOverBandwidth) {
  const Bytes in = Pattern(1);
  const CopyTicket ticket = memory_->CopyIn(in, SlotId(2));
  AdvanceTo(10'999);
  EXPECT_FALSE(memory_->Done(ticket));
  EXPECT_EQ(memory_->NextDone(), Nanos(11'000));
  EXPECT_NE(Read(*memory_, 2), in);
  AdvanceTo(11'000);
  EXPECT_TRUE(memory_->Done(ticket));
  EXPECT_EQ(Read(*memory_, 2), in);
}

TEST_F(SimLink, ListsOfCopiesPayLatencyOnceAndBytesEach) {
  const BlockCopy copies[] = {{SlotId(0), SlotId(4)}, {SlotId(1), SlotId(5)}, {SlotId(2), SlotId(6)}};
  const CopyTicket ticket = memory_->CopyWithin(copies);
  AdvanceTo(12'999);
  EXPECT_FALSE(memory_->Done(ticket));
  AdvanceTo(13'000);
  EXPECT_TRUE(memory_->Done(ticket));
}

TEST_F(SimLink, AListOfPartsTakesItsBytesAndIsThereAtOnceAtTheEnd) {
  const Bytes in = Pattern(1);
  const SlotFill first[] = {{std::span(in).first(128), SlotId(0), 0}, {std::span(in).first(128), SlotId(1), 0}};
  const SlotFill second[] = {{std::span(in).last(128), SlotId(0), 128}, {std::span(in).last(128), SlotId(1), 128}};
  const CopyTicket half = memory_->CopyIn(first), all = memory_->CopyIn(second);  // done at 11 us and 22 us
  AdvanceTo(11'000);
  EXPECT_TRUE(memory_->Done(half));
  EXPECT_FALSE(memory_->Done(all));
  EXPECT_TRUE(std::equal(in.begin(), in.begin() + 128, SlotOf(*memory_, 1)));
  EXPECT_EQ(SlotOf(*memory_, 1)[128], std::byte{0xFF});
  AdvanceTo(22'000);
  EXPECT_TRUE(memory_->Done(all));
  EXPECT_EQ(Read(*memory_, 0), in);
  EXPECT_EQ(Read(*memory_, 1), in);
}

TEST_F(SimLink, CopiesOfOneDirectionQueueAndDirectionsOverlap) {
  Bytes out(kSlotBytes);
  const Bytes in = Pattern(1);
  const CopyTicket first = memory_->CopyIn(in, SlotId(0));         // done at 11 us
  const CopyTicket second = memory_->CopyIn(in, SlotId(1));        // 22 us
  const CopyTicket overtaking = memory_->CopyOut(SlotId(2), out);  // alone 11 us, but not before the second
  AdvanceTo(21'999);
  EXPECT_TRUE(memory_->Done(first));
  EXPECT_FALSE(memory_->Done(second) || memory_->Done(overtaking));
  AdvanceTo(22'000);
  EXPECT_TRUE(memory_->Done(second) && memory_->Done(overtaking));
}

TEST_F(SimLink, AnIdleLinkStartsAtOnce) {
  const Bytes in = Pattern(1);
  (void)memory_->CopyIn(in, SlotId(0));
  AdvanceTo(100'000);
  const CopyTicket second = memory_->CopyIn(in, SlotId(1));
  AdvanceTo(111'000);
  EXPECT_TRUE(memory_->Done(second));
}

TEST_F(SimLink, WaitSleepsUntilTheCopysEndAndNoLonger) {
  const Bytes in = Pattern(1);
  (void)memory_->CopyIn(in, SlotId(0));
  const CopyTicket second = memory_->CopyIn(in, SlotId(1));
  (void)memory_->CopyIn(in, SlotId(2));
  EXPECT_TRUE(memory_->Wait(second).ok());
  EXPECT_EQ(clock_.Now(), Nanos(22'000));
  EXPECT_EQ(Read(*memory_, 1), in);
  EXPECT_NE(Read(*memory_, 2), in);
  EXPECT_TRUE(memory_->Wait(second).ok());
  EXPECT_EQ(clock_.Now(), Nanos(22'000));
}

TEST_F(SimLink, ReusingASlotOrABufferTooEarlyShows) {
  Fill(*memory_, 0, Pattern(1));
  Bytes out(kSlotBytes);
  const CopyTicket save = memory_->CopyOut(SlotId(0), out);
  Fill(*memory_, 0, Pattern(9));  // not ours yet
  EXPECT_TRUE(memory_->Wait(save).ok());
  EXPECT_EQ(out, Pattern(9));
  Bytes in = Pattern(2);
  const CopyTicket load = memory_->CopyIn(in, SlotId(1));
  const Bytes later = Pattern(8);
  std::copy(later.begin(), later.end(), in.begin());
  EXPECT_TRUE(memory_->Wait(load).ok());
  EXPECT_EQ(Read(*memory_, 1), Pattern(8));
}

TEST_F(SimLink, CopiesInFlightEndWithTheMemory) {
  Bytes out = Pattern(5);
  (void)memory_->CopyOut(SlotId(0), out);
  memory_.reset();
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(out, Pattern(5));
}

TEST_F(SimLink, UnwrittenSlotsReadAsNan) {
  float value = 0;
  std::memcpy(&value, memory_->arena(), sizeof(value));
  EXPECT_NE(value, value);
}

TEST_F(SimLink, LinksThatCannotBeAreRefused) {
  for (const double bandwidth : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const MemoryResult refused = MakeSimLinkMemory(kSlotBytes, kSlots, {.bytes_per_second = bandwidth}, clock_);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), Code::kInvalid);
  }
  EXPECT_FALSE(MakeSimLinkMemory(kSlotBytes, kSlots, {.latency = Nanos(-1)}, clock_).ok());
  // The slowest link that is allowed neither wraps around nor ends.
  MemoryResult slow = MakeSimLinkMemory(kSlotBytes, kSlots, {.bytes_per_second = 1e-300}, clock_);
  ASSERT_TRUE(slow.ok());
  const BlockCopy copy[] = {{SlotId(0), SlotId(1)}};
  const CopyTicket first = (*slow)->CopyWithin(copy);
  for (int i = 0; i < 100; ++i) (void)(*slow)->CopyWithin(copy);
  clock_.Advance(std::chrono::hours(24 * 365));
  EXPECT_FALSE((*slow)->Done(first));
}

TEST(SimLinkOnASteadyClock, WaitReturnsOnceTheTimeHasPassed) {
  SteadyClock clock;
  MemoryResult made =
      MakeSimLinkMemory(kSlotBytes, kSlots, {.bytes_per_second = 1e9, .latency = Nanos(200'000)}, clock);
  ASSERT_TRUE(made.ok());
  const Bytes in = Pattern(3);
  const Nanos begin = clock.Now();
  EXPECT_TRUE((*made)->Wait((*made)->CopyIn(in, SlotId(0))).ok());
  EXPECT_GE(clock.Now() - begin, Nanos(200'000));
  EXPECT_EQ(Read(**made, 0), in);
}

}  // namespace
}  // namespace cachalot::exec
