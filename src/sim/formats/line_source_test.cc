#include "sim/formats/line_source.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cachalot::sim {
namespace {

TEST(LineSource, ReadsNoMoreOfALineThatDoesNotEnd) {
  LineSource lines = LineSource::Open("/dev/zero", 10'000).value();
  std::string_view line;
  EXPECT_EQ(lines.Next(&line).status().message(), "line 1: longer than 10000 bytes");
}

}  // namespace
}  // namespace cachalot::sim
