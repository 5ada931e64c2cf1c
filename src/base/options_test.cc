#include "base/options.h"

#include <gtest/gtest.h>

#include <limits>

namespace cachalot {
namespace {

struct SampleOptions {
  bool verbose = true;
  uint32_t block_tokens = 16;
  uint64_t ram_bytes = uint64_t{4} << 30;
  int32_t offset = -3;
  double fraction = 0.25;
  float scale = 0.5f;
  std::string host = "127.0.0.1";
  std::optional<uint32_t> threads;

  template <class F>
  void Visit(F&& f) {
    f("verbose", verbose, "Say more.");
    f("block-tokens", block_tokens, "Tokens per block.");
    f("ram-bytes", ram_bytes, "Bytes.");
    f("offset", offset, "An offset.");
    f("fraction", fraction, "A fraction.");
    f("scale", scale, "A scale.");
    f("host", host, "Where to listen.");
    f("threads", threads, "Threads; unset: all.");
  }
};

TEST(OptionsAsJson, HoldsEverySettingInOrder) {
  EXPECT_EQ(OptionsAsJson(SampleOptions()).Dump(),
            R"({"verbose":true,"block-tokens":16,"ram-bytes":4294967296,"offset":-3,"fraction":0.25,"scale":0.5,)"
            R"("host":"127.0.0.1","threads":null})");
}

TEST(OptionsAsJson, ShowsChangedValues) {
  SampleOptions options;
  options.threads = 3;
  options.ram_bytes = std::numeric_limits<uint64_t>::max();
  const Json dump = OptionsAsJson(options);
  EXPECT_EQ(*dump.Find("threads"), Json(3));
  EXPECT_EQ(dump.Find("ram-bytes")->AsNumber(), 0x1p64);
}

}  // namespace
}  // namespace cachalot
