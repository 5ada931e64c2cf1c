// SpecialMatcher finds tokens that are written out in the text: control tokens and other added ones.
// Threads:   immutable once filled; any thread may read.
// Ownership: owns its tree.
// Invariant: of overlapping spellings the one that begins first is found, and of those the longest, as Hugging Face
//            tokenizers does. (llama.cpp takes the longest wherever it is: on the spellings of real vocabularies, which
//            overlap in runs of one character at most, both are the same.)
// Cost:      one look per byte that begins no spelling; at most the longest spelling per byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/flat_map.h"

namespace cachalot::text {

class SpecialMatcher {
 public:
  // Requires a spelling that is not empty and has not been added.
  void Add(std::string_view spelling, TokenId id);

  struct Match {
    size_t begin, end;
    TokenId id;
  };
  // The first match at or after `from`.
  std::optional<Match> Next(std::string_view text, size_t from) const;

 private:
  static uint64_t EdgeKey(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<unsigned char>(byte); }
  std::optional<Match> LongestAt(std::string_view text, size_t begin) const;

  std::array<bool, 256> begins_some_{};
  FlatMap<uint32_t> edges_;
  std::vector<std::optional<TokenId>> ends_ = {std::nullopt};  // by node: the token that is spelled by the way to it
};

}  // namespace cachalot::text
