#include "sim/repeated_text.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/prefix_match.h"

namespace cachalot::sim {
namespace {

constexpr uint64_t kMostWork = 32;  // comparisons per word

// Hash of the kLeastRun words from a place on, moved along word by word.
class RollingHash {
 public:
  RollingHash(std::span<const uint32_t> words, uint64_t begin) : words_(words), begin_(begin) {
    for (uint64_t i = 0; i < RepeatedText::kLeastRun; ++i) sum_ = sum_ * kFactor + words_[begin_ + i] + 1;
  }
  uint64_t value() const {
    const uint64_t mixed = (sum_ ^ sum_ >> 32) * 0xD6E8FEB86659FD93;
    return mixed ^ mixed >> 32;
  }
  void Next() {
    sum_ = (sum_ - (words_[begin_] + uint64_t{1}) * kTopFactor) * kFactor;
    sum_ += words_[begin_ + RepeatedText::kLeastRun] + 1;
    ++begin_;
  }

 private:
  static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;
  static constexpr uint64_t kTopFactor = [] {
    uint64_t power = 1;
    for (uint64_t i = 1; i < RepeatedText::kLeastRun; ++i) power *= kFactor;
    return power;
  }();

  std::span<const uint32_t> words_;
  uint64_t begin_;
  uint64_t sum_ = 0;
};

}  // namespace

const RepeatedText::Place* RepeatedText::PlaceOf(std::span<const uint32_t> words, uint64_t hash, size_t texts) const {
  if (hash % one_of_ != 0) return nullptr;
  const auto found = places_.find(hash);
  if (found == places_.end() || found->second.text >= texts) return nullptr;
  const Place& place = found->second;
  return std::ranges::equal(words, texts_[place.text].subspan(place.place, kLeastRun)) ? &place : nullptr;
}

std::vector<RepeatedRun> RepeatedText::LongestRuns(std::span<const uint32_t> words, uint64_t from, size_t texts) const {
  std::vector<RepeatedRun> runs;
  if (from + kLeastRun > words.size()) return runs;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> ends;  // of runs, by text and shift
  uint64_t work = kMostWork * words.size();                // words that may still be compared
  RollingHash hash(words, from);
  for (uint64_t at = from;; ++at, hash.Next()) {
    const Place* found = PlaceOf(words.subspan(at, kLeastRun), hash.value(), texts);
    uint64_t* end = found == nullptr ? nullptr : &ends[{found->text, found->place - at}];
    if (end != nullptr && *end <= at && work > 0) {
      const std::span<const uint32_t> there = texts_[found->text];
      uint64_t begin = at, place = found->place;
      while (begin > from && place > 0 && words[begin - 1] == there[place - 1]) --begin, --place;
      *end = at + CommonLength(words.subspan(at), there.subspan(found->place));
      runs.push_back({.begin = begin, .words = *end - begin, .text = found->text, .place = place});
      work -= std::min(work, *end - begin);
    }
    if (at + kLeastRun == words.size()) return runs;
  }
}

std::vector<RepeatedRun> RepeatedText::Find(std::span<const uint32_t> words, uint64_t from, size_t texts) const {
  std::vector<RepeatedRun> longest = LongestRuns(words, from, texts);
  std::ranges::sort(longest, {}, [](const RepeatedRun& run) { return std::tuple(run.text, run.place, run.begin); });
  std::map<uint64_t, RepeatedRun> taken;  // by begin; the first to have a word takes it
  for (const RepeatedRun& run : longest) {
    const uint64_t end = run.begin + run.words;
    auto next = taken.upper_bound(run.begin);
    uint64_t at = run.begin;
    if (next != taken.begin()) at = std::max(at, std::prev(next)->first + std::prev(next)->second.words);
    while (at < end) {
      const uint64_t until = next == taken.end() ? end : std::min(end, next->first);
      if (until > at) {
        taken.emplace(at, RepeatedRun{at, until - at, run.text, run.place + (at - run.begin)});
      }
      if (next == taken.end()) break;
      at = std::max(at, next->first + next->second.words);
      ++next;
    }
  }
  std::vector<RepeatedRun> runs;
  for (const auto& [begin, run] : taken) runs.push_back(run);
  return runs;
}

void RepeatedText::Add(std::span<const uint32_t> words, uint64_t from) {
  const auto text = static_cast<uint32_t>(texts_.size());
  texts_.push_back(words);
  uint64_t at = from - std::min(from, kLeastRun - 1);
  if (at + kLeastRun > words.size()) return;
  for (RollingHash hash(words, at);; hash.Next(), ++at) {
    if (hash.value() % one_of_ == 0) places_.emplace(hash.value(), Place{text, at});
    if (at + kLeastRun == words.size()) return;
  }
}

}  // namespace cachalot::sim
