#include "tier/host_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace cachalot::tier {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr MemoryInfo kMemory = {200 * kMiB, 100 * kMiB, false};

TEST(HostArena, GivesExactlyWhatWasAskedForZeroedAndAtAPage) {
  Result<HostArena> arena = HostArena::Claim({.bytes = 3 * kMiB + 17}, kMemory, {});
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  EXPECT_EQ(arena->bytes().size(), 3 * kMiB + 17);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->bytes().data()) % 4096, 0u);
  EXPECT_TRUE(std::ranges::all_of(arena->bytes(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(arena->placement(), "one memory node");
}

TEST(HostArena, RefusesMoreThanItsShareAndSaysWhatThereIs) {
  EXPECT_TRUE(CheckClaim({.bytes = 80 * kMiB}, kMemory).ok());
  const Status status = HostArena::Claim({.bytes = 81 * kMiB}, kMemory, {}).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find("asked for 81 MiB, available 100 MiB"), std::string::npos) << status.message();
  EXPECT_NE(CheckClaim({.bytes = 81 * kMiB}, {kMemory.total_bytes, kMemory.available_bytes, true})
                .message()
                .find("control group"),
            std::string::npos);
  EXPECT_EQ(CheckClaim({.bytes = 0}, kMemory).code(), Code::kInvalid);
  EXPECT_EQ(CheckClaim({.bytes = std::numeric_limits<uint64_t>::max()}, kMemory).code(), Code::kUnavailable);
}

TEST(HostArena, MemoryThatTheSystemDoesNotHaveIsUnavailable) {
  const uint64_t bytes = uint64_t{1} << 62;
  const MemoryInfo boast = {std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max(), false};
  EXPECT_EQ(HostArena::Claim({.bytes = bytes}, boast, {}).status().code(), Code::kUnavailable);
}

TEST(HostArena, ARefusalToPinNamesTheLimitThatIsTooLow) {
  const Status low = PinRefused(16 * kMiB, 8 * kMiB, ENOMEM);
  EXPECT_EQ(low.code(), Code::kUnavailable);
  EXPECT_NE(low.message().find("cannot pin 16 MiB (RLIMIT_MEMLOCK is 8 MiB"), std::string::npos) << low.message();
  EXPECT_EQ(PinRefused(kMiB, 8 * kMiB, ENOMEM).message().find("RLIMIT_MEMLOCK"), std::string::npos);
}

TEST(HostArena, PinningWorksOrSaysWhyNot) {
  const Result<HostArena> arena = HostArena::Claim({.bytes = 64 << 10, .pin = true}, kMemory, {});
  EXPECT_TRUE(arena.ok() || arena.status().message().find("cannot pin") != std::string::npos);
}

TEST(HostArena, NodesThatThisMachineLacksDoNoHarmAndAreReported) {
  NumaTopology topology;
  for (const uint32_t id : {1022u, 1023u}) topology.nodes.push_back({id, {}, 64 * kMiB, {10, 10}});
  Result<HostArena> arena = HostArena::Claim({.bytes = 4 * kMiB}, kMemory, topology);
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  EXPECT_NE(arena->placement().find("placed by the system; node 1022"), std::string::npos) << arena->placement();
  EXPECT_NE(arena->placement().find("refused"), std::string::npos) << arena->placement();
  EXPECT_TRUE(std::ranges::all_of(arena->bytes(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(HostArena, SharesOfNodesThatAreThereAreAccepted) {
  NumaTopology topology;  // node 0 exists everywhere; the second one has no memory
  topology.nodes.push_back({0, {0}, 64 * kMiB, {10, 21}});
  topology.nodes.push_back({1, {}, 0, {21, 10}});
  const Result<HostArena> arena = HostArena::Claim({.bytes = 4 * kMiB, .near_nodes = {0}}, kMemory, topology);
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  const bool placed = arena->placement() == "node 0 (distance 10): 4 MiB";
  EXPECT_TRUE(placed || arena->placement().find("refused") != std::string::npos) << arena->placement();
}

}  // namespace
}  // namespace cachalot::tier
