#include "text/flat_map.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace cachalot::text {
namespace {

TEST(FlatMap, EqualsAMapThroughGrowth) {
  FlatMap<uint32_t> map;
  std::map<uint64_t, uint32_t> expected;
  SplitMix64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t key = random.Below(3) == 0 ? random.Below(5000) : random.Below(5000) << 32;
    map.Set(key, static_cast<uint32_t>(i));
    expected[key] = static_cast<uint32_t>(i);
  }
  EXPECT_EQ(map.size(), expected.size());
  for (uint64_t key = 0; key < 5000; ++key) {
    for (uint64_t k : {key, key << 32}) {
      const uint32_t* found = map.Find(k);
      ASSERT_EQ(found != nullptr, expected.contains(k));
      if (found != nullptr) {
        ASSERT_EQ(*found, expected[k]);
      }
    }
  }
}

}  // namespace
}  // namespace cachalot::text
