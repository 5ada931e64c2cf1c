#include "engine/expected_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

namespace cachalot::engine {
namespace {

TEST(ExpectedBlocks, AreThoseOfWhoStillWaits) {
  ExpectedBlocks expected;
  const std::array<Digest, 3> keys = {Digest{1}, Digest{2}, Digest{3}};
  std::optional<ExpectedBlocks::Hold> first = expected.Take(std::span(keys).first(2));
  std::optional<ExpectedBlocks::Hold> second = expected.Take(std::span(keys).last(2));
  const auto contains = [&] {
    return std::array{expected.Contains(keys[0]), expected.Contains(keys[1]), expected.Contains(keys[2])};
  };
  EXPECT_EQ(contains(), (std::array{true, true, true}));
  ExpectedBlocks::Hold moved = std::move(*first);
  first.reset();
  EXPECT_EQ(contains(), (std::array{true, true, true}));
  second.reset();
  EXPECT_EQ(contains(), (std::array{true, true, false}));
  moved = expected.Take({});
  EXPECT_EQ(contains(), (std::array{false, false, false}));
}

}  // namespace
}  // namespace cachalot::engine
