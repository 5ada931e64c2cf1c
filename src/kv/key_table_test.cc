#include "kv/key_table.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace cachalot::kv {
namespace {

TEST(KeyTable, IsAMapWhateverCollides) {
  for (const uint64_t spread : {7u, 64u, 5000u}) {
    SplitMix64 random(spread);
    KeyTable table(1);
    std::map<uint64_t, uint32_t> expected;
    for (int i = 0; i < 20000; ++i) {
      // With that secret the highest bits choose: long runs of cells that wrap around the end.
      const uint64_t key = random.Below(spread) + ((random.Below(3) + 5) << 61);
      const uint32_t* found = table.Find(key);
      ASSERT_EQ(found != nullptr, expected.contains(key));
      if (found == nullptr) {
        table.Insert(key, static_cast<uint32_t>(i));
        expected[key] = static_cast<uint32_t>(i);
      } else {
        ASSERT_EQ(*found, expected[key]);
        table.Erase(key);
        expected.erase(key);
      }
      ASSERT_EQ(table.size(), expected.size());
    }
    for (const auto& [key, value] : expected) EXPECT_EQ(*table.Find(key), value);
  }
}

}  // namespace
}  // namespace cachalot::kv
