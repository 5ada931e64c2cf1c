#include "cost/packing.h"

#include <gtest/gtest.h>

namespace cachalot::cost {
namespace {

constexpr TierRate Link(double bytes_per_second) {
  return {.latency_seconds = 0, .bytes_per_second = bytes_per_second};
}

TEST(Packing, PaysWhereTheLinkIsSlowerThanWhatItSaves) {
  const PackingSpeed speed{.ratio = 1.25,
                           .unpacked_bytes_per_second = 1e9};  // a fifth of the link's time for 1 ns a byte
  EXPECT_TRUE(PackingPays(Link(1.9e8), speed));
  EXPECT_FALSE(PackingPays(Link(2.1e8), speed));
}

TEST(Packing, UnpackingBesideTheTransferHasOnlyToKeepUp) {
  const PackingSpeed speed{.ratio = 1.25, .unpacked_bytes_per_second = 1e9, .overlapped = true};
  EXPECT_TRUE(PackingPays(Link(9e8), speed));
  EXPECT_FALSE(PackingPays(Link(1.1e9), speed));
}

TEST(Packing, WhatDoesNotShrinkNeverPays) {
  for (const bool overlapped : {false, true}) {
    EXPECT_FALSE(PackingPays(Link(1), {.ratio = 1, .unpacked_bytes_per_second = 1e12, .overlapped = overlapped}));
  }
}

}  // namespace
}  // namespace cachalot::cost
