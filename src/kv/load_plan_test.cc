#include "kv/load_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace cachalot::kv {
namespace {

TEST(LoadableTokens, WithFullAttentionEndsAtTheFirstGap) {
  const KvGeometry geometry{16, {0, 0}, 100};
  EXPECT_EQ(LoadableTokens(geometry, 3, {}), 0u);
  EXPECT_EQ(LoadableTokens(geometry, 3, std::vector<uint32_t>{3, 3, 3}), 96u);
  EXPECT_EQ(LoadableTokens(geometry, 3, std::vector<uint32_t>{3, 1, 3}), 64u);
  EXPECT_EQ(LoadableTokens(geometry, 0, std::vector<uint32_t>{2, 3}), 0u);
}

TEST(LoadableTokens, WithAWindowEndsWhereTheWindowIsThere) {
  const KvGeometry geometry{16, {0, 40}, 100};  // 39 positions before the next row: two blocks and a bit
  EXPECT_EQ(LoadableTokens(geometry, 0, std::vector<uint32_t>{1, 1, 3, 3, 3}), 80u);
  EXPECT_EQ(LoadableTokens(geometry, 0, std::vector<uint32_t>{1, 1, 3, 3, 3, 1, 1}), 80u);
  EXPECT_EQ(LoadableTokens(geometry, 0, std::vector<uint32_t>{1, 1, 1, 3, 3}), 0u);
  EXPECT_EQ(LoadableTokens(geometry, 9, std::vector<uint32_t>{3}), 160u);  // the sequence holds the rest of its window
  EXPECT_EQ(LoadableTokens(geometry, 9, std::vector<uint32_t>{1, 3, 3}), 0u);
}

// Position by position: what the row after the loaded ones sees.
TEST(LoadableTokens, IsTheLongestLengthWhoseNextRowSeesAll) {
  SplitMix64 random(3);
  for (int i = 0; i < 3000; ++i) {
    KvGeometry geometry{1u << random.Below(4), {}, 100};
    for (uint64_t groups = 1 + random.Below(3); groups > 0; --groups) {
      geometry.windows.push_back(random.Below(2) == 0 ? 0 : static_cast<uint32_t>(1 + random.Below(40)));
    }
    const uint64_t resident = random.Below(6), bt = geometry.block_tokens;
    std::vector<uint32_t> stored(random.Below(8));
    for (uint32_t& groups : stored) {
      for (uint32_t g = 0; g < geometry.windows.size(); ++g) groups |= random.Below(5) > 0 ? 1u << g : 0;
    }
    const auto last = static_cast<uint32_t>(1 + random.Below(bt));  // tokens of the last block
    uint64_t best = 0;
    for (uint64_t end = resident + 1; end <= resident + stored.size(); ++end) {
      const uint64_t row = end == resident + stored.size() ? (end - 1) * bt + last : end * bt;
      bool sees = true;
      for (uint32_t g = 0; g < geometry.windows.size(); ++g) {
        const uint64_t window = geometry.windows[g];
        // In mid-block it writes beside what is there.
        const uint64_t first = window == 0 || row < window ? 0 : std::min(row - window + 1, row - row % bt);
        for (uint64_t p = first; p < row; ++p) {
          if (p >= resident * bt && (stored[p / bt - resident] >> g & 1) == 0) sees = false;
        }
      }
      if (sees) best = row;
    }
    ASSERT_EQ(LoadableTokens(geometry, resident, stored, last), best) << i;
  }
}

}  // namespace
}  // namespace cachalot::kv
