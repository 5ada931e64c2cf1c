#include "engine/changed_answers.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::engine {
namespace {

TEST(ChangedAnswers, WhoAsksAgainGetsTheSameAndOnlyChangesAreKept) {
  SplitMix64 random(1);
  AnswerWriter<uint32_t> writer(7);
  AnswerReader<uint32_t> reader(7);
  std::vector<uint32_t> world(10, 7);
  uint64_t asked = 0, kept = 0;
  for (int step = 0; step < 1000; ++step) {
    std::vector<std::pair<uint64_t, uint32_t>> answers;
    for (uint64_t n = random.Below(8); n > 0; --n) {
      const uint64_t key = random.Below(world.size());
      if (random.Below(10) == 0) world[key] = static_cast<uint32_t>(random.Below(9));  // in mid-step as well
      writer.Note(key, world[key]);
      answers.push_back({key, world[key]});
    }
    std::vector<ChangedAnswer<uint32_t>> changed = writer.Take();
    asked += answers.size();
    kept += changed.size();
    reader.Begin(std::move(changed));
    for (const auto& [key, answer] : answers) ASSERT_EQ(reader.Answer(key), answer) << "step " << step;
  }
  EXPECT_GT(kept, 100u);
  EXPECT_LT(kept, asked / 5);
}

TEST(ChangedAnswers, WhoAsksOtherwiseGetsWhatWasAnsweredByTheEndOfTheStep) {
  AnswerWriter<uint32_t> writer(0);
  for (uint64_t key = 1; key <= 3; ++key) writer.Note(key, 5);
  AnswerReader<uint32_t> reader(0);
  reader.Begin(writer.Take());
  EXPECT_EQ(reader.Answer(9), 0u);
  EXPECT_EQ(reader.Answer(3), 0u) << "asked before it was";
  reader.Begin({});
  EXPECT_EQ(reader.Answer(3), 5u);
}

}  // namespace
}  // namespace cachalot::engine
