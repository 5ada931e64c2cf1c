#include "text/special_matcher.h"

namespace cachalot::text {

void SpecialMatcher::Add(std::string_view spelling, TokenId id) {
  begins_some_[static_cast<unsigned char>(spelling.front())] = true;
  uint32_t node = 0;
  for (char byte : spelling) {
    const uint32_t* next = edges_.Find(EdgeKey(node, byte));
    if (next != nullptr) {
      node = *next;
      continue;
    }
    const auto made = static_cast<uint32_t>(ends_.size());
    ends_.emplace_back();
    edges_.Set(EdgeKey(node, byte), made);
    node = made;
  }
  ends_[node] = id;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::LongestAt(std::string_view text, size_t begin) const {
  std::optional<Match> longest;
  uint32_t node = 0;
  for (size_t pos = begin; pos < text.size();) {
    const uint32_t* next = edges_.Find(EdgeKey(node, text[pos]));
    if (next == nullptr) break;
    node = *next;
    ++pos;
    if (ends_[node].has_value()) longest = Match{begin, pos, *ends_[node]};
  }
  return longest;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::Next(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_some_[static_cast<unsigned char>(text[begin])]) continue;
    if (const std::optional<Match> match = LongestAt(text, begin)) return match;
  }
  return std::nullopt;
}

}  // namespace cachalot::text
