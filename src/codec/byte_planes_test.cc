#include "codec/byte_planes.h"

#include <cmath>
#include <cstring>
#include <numbers>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::codec {
namespace {

using Bytes = std::vector<std::byte>;

BytePlanes Codec(int level = 1) { return BytePlanes::Make(level).value(); }

Bytes RandomBytes(size_t bytes, uint64_t seed) {
  SplitMix64 random(seed);
  Bytes result(bytes);
  for (std::byte& byte : result) byte = static_cast<std::byte>(random());
  return result;
}

// The upper bits of f32 normal values: bf16, whose exponents repeat as those of f16 do.
Bytes HalfNormals(size_t count, uint64_t seed) {
  SplitMix64 random(seed);
  Bytes result(count * 2);
  for (size_t i = 0; i < count; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
    const auto value = static_cast<float>(radius * std::cos(2 * std::numbers::pi * random.Uniform()));
    std::memcpy(&result[2 * i], reinterpret_cast<const char*>(&value) + 2, 2);
  }
  return result;
}

Bytes Encoded(BytePlanes& codec, const Bytes& raw, uint32_t element_bytes) {
  Bytes frame;
  const Status status = codec.Encode(raw, element_bytes, frame);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_LE(frame.size(), BytePlanes::FrameBound(raw.size(), element_bytes));
  return frame;
}

void ExpectRoundTrip(BytePlanes& codec, const Bytes& raw, uint32_t element_bytes) {
  const Bytes frame = Encoded(codec, raw, element_bytes);
  Bytes read(raw.size(), std::byte{0x5A});
  const Status status = codec.Decode(frame, read);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(read, raw) << raw.size() << " bytes, elements of " << element_bytes;
}

TEST(BytePlanes, GivesBackEveryBit) {
  for (const int level : {-5, 1, 3, 19}) {
    BytePlanes codec = Codec(level);
    for (const uint32_t element_bytes : {1u, 2u, 4u}) {
      for (const size_t bytes : {0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 1000, 4096, 65'537}) {
        ExpectRoundTrip(codec, RandomBytes(bytes, bytes), element_bytes);
        ExpectRoundTrip(codec, Bytes(bytes, std::byte{0}), element_bytes);
        ExpectRoundTrip(codec, HalfNormals(bytes / 2, bytes), element_bytes);
      }
    }
  }
}

TEST(BytePlanes, WhatIsLargerComesAfterWhatIsSmallerAndTheOtherWayRound) {
  BytePlanes codec = Codec();
  for (const size_t bytes : {100'000, 10, 0, 50'000}) ExpectRoundTrip(codec, HalfNormals(bytes / 2, 7), 2);
}

TEST(BytePlanes, ExponentsShrinkAndMantissasStayAsTheyAre) {
  BytePlanes codec = Codec();
  const Bytes raw = HalfNormals(100'000, 1);
  const Bytes frame = Encoded(codec, raw, 2);
  EXPECT_LT(frame.size(), raw.size() * 8 / 10);
  const Bytes noise = RandomBytes(200'000, 1);
  EXPECT_EQ(Encoded(codec, noise, 2).size(), BytePlanes::FrameBound(noise.size(), 2));
  const Bytes nothing(200'000);
  EXPECT_LT(Encoded(codec, nothing, 2).size(), 200u);
}

TEST(BytePlanes, EqualBytesGiveEqualFramesWhateverWasEncodedBefore) {
  BytePlanes used = Codec(), fresh = Codec();
  for (int i = 0; i < 5; ++i) Encoded(used, RandomBytes(10'000, i), 4);
  const Bytes raw = HalfNormals(5000, 3);
  EXPECT_EQ(Encoded(used, raw, 2), Encoded(fresh, raw, 2));
}

TEST(BytePlanes, AFrameIsOfOneSizeOnly) {
  BytePlanes codec = Codec();
  const Bytes frame = Encoded(codec, HalfNormals(500, 1), 2);
  for (const size_t bytes : {0, 1, 999, 1001, 2000}) {
    Bytes into(bytes);
    EXPECT_EQ(codec.Decode(frame, into).code(), Code::kCorrupt) << bytes;
  }
}

TEST(BytePlanes, AFrameThatWasCutOrExtendedIsRefused) {
  BytePlanes codec = Codec();
  for (const Bytes& raw : {HalfNormals(300, 1), RandomBytes(601, 2)}) {
    const Bytes frame = Encoded(codec, raw, 2);
    Bytes into(raw.size());
    for (size_t bytes = 0; bytes < frame.size(); ++bytes) {
      const Bytes cut(frame.begin(),
                      frame.begin() + static_cast<std::ptrdiff_t>(bytes));  // of its own, for the sanitizer
      EXPECT_EQ(codec.Decode(cut, into).code(), Code::kCorrupt) << bytes;
    }
    Bytes longer = frame;
    longer.push_back(std::byte{0});
    EXPECT_EQ(codec.Decode(longer, into).code(), Code::kCorrupt);
    EXPECT_TRUE(codec.Decode(frame, into).ok());  // and what was refused leaves no trace
    EXPECT_EQ(into, raw);
  }
}

TEST(BytePlanes, AForgedFrameIsRefusedOrFillsJustItsPlace) {
  BytePlanes codec = Codec();
  SplitMix64 random(4);
  const Bytes raw = HalfNormals(400, 5);
  const Bytes good = Encoded(codec, raw, 2);
  for (int i = 0; i < 20'000; ++i) {
    Bytes frame = good;
    for (uint64_t flips = 1 + random.Below(4); flips > 0; --flips) {
      frame[random.Below(random.Below(2) == 0 ? 64 : frame.size())] ^= static_cast<std::byte>(1 + random.Below(255));
    }
    Bytes into(raw.size());
    const Status status = codec.Decode(frame, into);
    EXPECT_TRUE(status.ok() || status.code() == Code::kCorrupt);
  }
}

TEST(BytePlanes, HeadersThatPromiseTooMuchAreNamed) {
  BytePlanes codec = Codec();
  const Bytes raw = HalfNormals(400, 5);
  const Bytes good = Encoded(codec, raw, 2);
  const auto error = [&](size_t at, int value) {
    Bytes frame = good;
    frame[at] = static_cast<std::byte>(value);
    Bytes into(raw.size());
    return codec.Decode(frame, into).message();
  };
  EXPECT_EQ(error(0, 'X'), "byte planes: not a frame");
  EXPECT_EQ(error(4, 3), "byte planes: elements of an unknown size");
  EXPECT_EQ(error(7, 1), "byte planes: elements of an unknown size");
  EXPECT_EQ(error(15, 255), "byte planes: the frame is of 18374686479671624480 bytes, expected 800");
  EXPECT_EQ(error(19, 255), "byte planes: a plane is larger than it may be");
  EXPECT_NE(error(20, 0), "");
}

TEST(BytePlanes, WhatCannotBeEncodedIsSaid) {
  EXPECT_EQ(BytePlanes::Make(1000).status().code(), Code::kInvalid);
  EXPECT_NE(BytePlanes::Make(1000).status().message().find("zstd level 1000: expected"), std::string::npos);
  BytePlanes codec = Codec();
  Bytes frame;
  for (const uint32_t element_bytes : {0u, 3u, 8u}) {
    EXPECT_EQ(codec.Encode(Bytes(16), element_bytes, frame).code(), Code::kInvalid);
  }
}

}  // namespace
}  // namespace cachalot::codec
