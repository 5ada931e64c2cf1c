// RepeatedText finds stretches of a text that stood in an earlier one, wherever they stood there.
// Threads:   one.
// Ownership: borrows the texts that were added.
// Invariant: runs do not overlap. A word is in one if it is in kLeastRun words that an earlier text has too, in this
//            order; unless not every place is remembered, and none of those is. A run tells where its words stood
//            first: of two texts that have them, the earlier.
// Cost:      linear in the words, and a table entry per remembered place. Of text that repeats itself over and over
//            only a part is looked at.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace cachalot::sim {

struct RepeatedRun {
  uint64_t begin = 0;  // in the text that was asked about
  uint64_t words = 0;
  uint32_t text = 0;  // where it stood first, by number of addition
  uint64_t place = 0;
};

class RepeatedText {
 public:
  static constexpr uint64_t kLeastRun = 16;

  // One place in `one_of`, chosen by what stands there, is remembered.
  explicit RepeatedText(uint32_t one_of = 4) : one_of_(one_of) {}

  // Runs in words[from, end), in their order, of what stood in the first `texts` texts.
  std::vector<RepeatedRun> Find(std::span<const uint32_t> words, uint64_t from, size_t texts) const;
  // What stands before `from` was added before.
  void Add(std::span<const uint32_t> words, uint64_t from);

 private:
  struct Place {
    uint32_t text = 0;
    uint64_t place = 0;
  };
  // Null when these words stood in none of them, or that is not remembered.
  const Place* PlaceOf(std::span<const uint32_t> words, uint64_t hash, size_t texts) const;
  // As long as they can be, and so they may overlap.
  std::vector<RepeatedRun> LongestRuns(std::span<const uint32_t> words, uint64_t from, size_t texts) const;

  const uint32_t one_of_;
  std::vector<std::span<const uint32_t>> texts_;
  std::unordered_map<uint64_t, Place> places_;  // by hash of the kLeastRun words there
};

}  // namespace cachalot::sim
