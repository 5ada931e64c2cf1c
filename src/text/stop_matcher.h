// StopMatcher finds the first of many stop strings in text that arrives in pieces, and holds back what may become one.
// Threads:   a StopSet is immutable, and many matchers share it; a StopMatcher belongs to one sequence and thread.
// Ownership: a matcher shares its set.
// Invariant: what is emitted, and where the match is, do not depend on how the text is cut: the match is the one that
//            is complete first, of two that end together the longer; all text before it is emitted, none of it and
//            nothing after it. Emitted text never contains a stop string.
// Cost:      building is O(n log n) in the bytes of the strings; Push is amortised linear in the text, however many
//            strings there are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/flat_map.h"

namespace cachalot::text {

// An Aho-Corasick automaton over the bytes of the strings.
class StopSet {
 public:
  static constexpr size_t kMaxStrings = 8192;
  static constexpr size_t kMaxTotalBytes = size_t{1} << 20;

  // kInvalid for an empty string, invalid UTF-8, too many strings or too many bytes. Of equal strings the first counts.
  static Result<std::shared_ptr<const StopSet>> Create(std::span<const std::string> strings);

  // A state of the automaton: a beginning of some stop string, namely the longest that the text ends with.
  using State = uint32_t;
  static constexpr State kStart = 0;
  State Next(State state, char byte) const;
  // How many bytes of the text's end may be the beginning of a stop string.
  size_t depth(State state) const { return nodes_[state].depth; }
  struct Stop {
    uint32_t index;  // in `strings`
    uint32_t bytes;
  };
  // The longest stop string that the text ends with.
  std::optional<Stop> StopAt(State state) const { return nodes_[state].stop; }

 private:
  struct Node {
    uint32_t depth = 0;
    State fallback = kStart;  // the longest proper suffix of this beginning that is a beginning too
    std::optional<Stop> stop;
  };
  StopSet() = default;
  static uint64_t EdgeKey(State state, char byte) { return uint64_t{state} << 8 | static_cast<unsigned char>(byte); }
  void Add(std::string_view string, uint32_t index);
  void Link();

  std::vector<Node> nodes_ = {Node{}};
  struct Edge {
    State from;
    char byte;
    State to;
  };
  std::vector<Edge> edges_;  // in the order in which they were made
  FlatMap<State> next_;
};

class StopMatcher {
 public:
  // Without a set there is nothing to match.
  explicit StopMatcher(std::shared_ptr<const StopSet> set) : set_(std::move(set)) {}

  struct Step {
    std::string emit;               // text that is now known to come before any stop string
    std::optional<size_t> matched;  // index of the stop string that the text contains: nothing more is taken
  };
  Step Push(std::string_view text);
  // What is still held back, when the text ends without a match.
  std::string Finish();

 private:
  std::string Release(size_t keep_bytes);

  std::shared_ptr<const StopSet> set_;
  StopSet::State state_ = StopSet::kStart;
  std::string held_;  // [held_begin_, size) is held back
  size_t held_begin_ = 0;
  std::optional<size_t> matched_;
};

}  // namespace cachalot::text
