#include "exec/sim/sim_memory.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::exec {
namespace {

using std::chrono::milliseconds;

TEST(SimMemory, CopiesEndWhenThoseOfASimulatedLinkDo) {
  constexpr uint64_t kSlotBytes = 4096;
  const LinkSpec link{.bytes_per_second = 1e8, .latency = Nanos(3000)};
  ManualClock clock;
  SimMemory sim(kSlotBytes, 16, link, clock);
  const auto real = MakeSimLinkMemory(kSlotBytes, 16, link, clock).value();
  std::vector<std::byte> host(kSlotBytes);
  SplitMix64 random(5);
  std::vector<CopyTicket> tickets;
  uint64_t out = 0, in = 0;
  for (int step = 0; step < 500; ++step) {
    const SlotId slot(static_cast<uint32_t>(random.Below(15)));
    const BlockCopy within{slot, SlotId(15)};
    CopyTicket ticket{0}, real_ticket{0};
    switch (random.Below(3)) {
      case 0:
        ticket = sim.CopyOut(slot, host);
        real_ticket = real->CopyOut(slot, host);
        ++out;
        break;
      case 1: {
        DeviceMemory& memory = sim;
        ticket = memory.CopyIn(host, slot);
        real_ticket = real->CopyIn(host, slot);
        ++in;
        break;
      }
      default: ticket = sim.CopyWithin({&within, 1}); real_ticket = real->CopyWithin({&within, 1});
    }
    ASSERT_EQ(ticket, real_ticket);
    tickets.push_back(ticket);
    ASSERT_EQ(sim.NextDone(), real->NextDone());
    clock.Advance(Nanos(static_cast<Nanos::rep>(random.Below(60'000))));
    for (const CopyTicket each : tickets) ASSERT_EQ(sim.Done(each), real->Done(each));
  }
  EXPECT_EQ(sim.bytes_out(), out * kSlotBytes);
  EXPECT_EQ(sim.bytes_in(), in * kSlotBytes);
}

TEST(SimMemory, WaitingTakesTimeAndIsCounted) {
  ManualClock clock;
  SimMemory memory(1000, 4, LinkSpec{.bytes_per_second = 1e6, .latency = Nanos(0)}, clock);
  const CopyTicket ticket = memory.CopyOut(SlotId(0), {});
  ASSERT_TRUE(memory.Wait(ticket).ok());
  EXPECT_EQ(clock.Now(), milliseconds(1));
  EXPECT_EQ(memory.waited(), milliseconds(1));
  EXPECT_TRUE(memory.Done(ticket));
}

TEST(SimMemory, WithoutALinkCopiesAreDoneAtOnce) {
  ManualClock clock;
  SimMemory memory(1000, 4, std::nullopt, clock);
  EXPECT_FALSE(memory.asynchronous());
  EXPECT_TRUE(memory.Done(memory.CopyOut(SlotId(0), {})));
  EXPECT_FALSE(memory.NextDone());
  EXPECT_EQ(memory.bytes_out(), 1000u);
}

}  // namespace
}  // namespace cachalot::exec
