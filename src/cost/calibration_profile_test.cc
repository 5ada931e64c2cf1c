#include "cost/calibration_profile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cachalot::cost {
namespace {

const CalibrationProfile kProfile = {.key = {"ab12", "cpu-1", "avx2", 2, "f16"},
                                     .source = "a test",
                                     .relative_error = 0.03,
                                     .curve = {2e-3, 3e-4, 5e-9, 0, 4e-4}};

std::string ErrorOf(const std::string& text) {
  const Result<CalibrationProfile> profile = ParseProfile(text);
  EXPECT_FALSE(profile.ok()) << text;
  EXPECT_EQ(profile.status().code(), Code::kInvalid);
  return profile.status().message();
}

TEST(CalibrationProfile, IsReadBackAsItWasWritten) {
  const Result<CalibrationProfile> read = ParseProfile(ProfileText(kProfile));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->key, kProfile.key);
  EXPECT_EQ(read->source, kProfile.source);
  EXPECT_EQ(read->curve, kProfile.curve);
  EXPECT_EQ(read->relative_error, kProfile.relative_error);
}

TEST(CalibrationProfile, HoldsTheRatesOfTiersThatWereMeasured) {
  CalibrationProfile profile = kProfile;
  EXPECT_FALSE(nlohmann::json::parse(ProfileText(profile)).contains("tiers"));
  profile.tiers[TierIndex(TierId::kDisk)] = {TierRate{1e-4, 3.5e8}, TierRate{2e-4, 2e8}};
  profile.tiers[TierIndex(TierId::kRemote)][0] = TierRate{0, 1e6};
  const Result<CalibrationProfile> read = ParseProfile(ProfileText(profile));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->tiers, profile.tiers);
  nlohmann::json wrong = nlohmann::json::parse(ProfileText(profile));
  wrong["tiers"]["disk"]["up"]["latency"] = -1;
  EXPECT_EQ(ErrorOf(wrong.dump()), "tiers: disk: up: latency: expected a number of seconds, 0 to 1000000");
}

TEST(CalibrationProfile, WhatIsWrongIsNamed) {
  const nlohmann::json good = nlohmann::json::parse(ProfileText(kProfile));
  const auto with = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json changed = good;
    changed[nlohmann::json::json_pointer(pointer)] = value;
    return changed.dump();
  };
  EXPECT_EQ(ErrorOf("[1]"), "expected an object, got array");
  EXPECT_EQ(ErrorOf("{}"), "version: expected 1, got none");
  EXPECT_EQ(ErrorOf(with("/version", 2)), "version: expected 1, got 2");
  EXPECT_EQ(ErrorOf(with("/model", 5)), "model: expected a string");
  EXPECT_EQ(ErrorOf(with("/isa", nullptr)), "isa: expected a string");
  EXPECT_EQ(ErrorOf(with("/threads", 0)), "threads: expected an integer above 0");
  EXPECT_EQ(ErrorOf(with("/threads", "2")), "threads: expected an integer above 0");
  EXPECT_EQ(ErrorOf(with("/relative_error", -1)), "relative_error: expected a number, 0 or more");
  EXPECT_EQ(ErrorOf(with("/source", 5)), "source: expected a string");
  EXPECT_EQ(ErrorOf(with("/source", "\x1b[2J")), "source: expected one line of up to 200 bytes");
  EXPECT_EQ(ErrorOf(with("/source", std::string(201, 'x'))), "source: expected one line of up to 200 bytes");
  EXPECT_EQ(ErrorOf(with("/seconds", 1)), "seconds: step: expected a number of seconds, 0 to 1000000");
  EXPECT_EQ(ErrorOf(with("/seconds/row", -1e-3)), "seconds: row: expected a number of seconds, 0 to 1000000");
}

TEST(CalibrationProfile, WhateverIsToldOfItsSourceIsReadAgain) {
  CalibrationProfile profile = kProfile;
  for (const std::string& told : {std::string(250, 'x'), std::string(199, 'x') + "\u00e9",
                                  std::string("a\tb\xff\xc2\x9b"), std::string("\0", 1)}) {
    profile.source = SourceLine(told);
    const Result<CalibrationProfile> read = ParseProfile(ProfileText(profile));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->source, profile.source);
  }
  EXPECT_EQ(SourceLine("a\tb\xc2\x9b"), "a b ");
  EXPECT_EQ(SourceLine(std::string(199, 'x') + "\u00e9").size(), 199u);
}

TEST(CalibrationProfile, ATornFileIsRefusedWhereverItEnds) {
  const std::string text = ProfileText(kProfile);
  for (size_t bytes = 0; bytes + 2 < text.size(); ++bytes) ErrorOf(text.substr(0, bytes));
}

TEST(CalibrationProfile, EachPartOfTheKeyHasAFileOfItsOwn) {
  std::vector<CalibrationKey> keys(6, kProfile.key);
  keys[1].model = "ab13";
  keys[2].numerics = "cpu-reference-1";
  keys[3].isa = "avx512";
  keys[4].threads = 3;
  keys[5].kv_type = "f32";
  for (size_t a = 0; a < keys.size(); ++a) {
    for (size_t b = 0; b < keys.size(); ++b) {
      EXPECT_EQ(ProfileFileName(keys[a]) == ProfileFileName(keys[b]), a == b);
      EXPECT_EQ(DifferenceOf(keys[a], keys[b]).empty(), a == b);
    }
  }
  EXPECT_EQ(DifferenceOf(keys[4], keys[0]), "threads 3 instead of 2");
}

}  // namespace
}  // namespace cachalot::cost
