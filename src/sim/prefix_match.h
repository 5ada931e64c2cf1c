// MatchPrefixes finds for each of a list of texts how much of its beginning an earlier one begins with too.
// Threads:   pure functions.
// Ownership: none.
// Invariant: what it says is what comparing each text with all before it would say.
// Cost:      sorting the texts: O(n log n) comparisons of two, each linear in what they share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace cachalot::sim {

struct PrefixMatch {
  uint64_t length = 0;
  uint32_t with = 0;  // the earlier text; of no meaning where the length is 0
};

template <class T>
uint64_t CommonLength(std::span<const T> a, std::span<const T> b) {
  return static_cast<uint64_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// Sorted, the earlier text that is most like a text stands next to it once all later ones are taken out.
template <class T>
std::vector<PrefixMatch> MatchPrefixes(std::span<const std::span<const T>> texts) {
  const size_t count = texts.size();
  std::vector<uint32_t> order(count), place(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    const auto [in_a, in_b] = std::ranges::mismatch(texts[a], texts[b]);
    if (in_a == texts[a].end() || in_b == texts[b].end()) {
      return texts[a].size() != texts[b].size() ? texts[a].size() < texts[b].size() : a < b;
    }
    return *in_a < *in_b;
  });
  // By place: its neighbours that are left, and what it shares with the one before it. 0 and count + 1 are the ends.
  std::vector<size_t> before(count + 2), after(count + 2);
  std::vector<uint64_t> shared(count + 2, 0);
  for (size_t i = 0; i <= count + 1; ++i) {
    before[i] = i == 0 ? 0 : i - 1;
    after[i] = std::min(i + 1, count + 1);
    if (i >= 1 && i <= count) place[order[i - 1]] = static_cast<uint32_t>(i);
    if (i >= 2 && i <= count) shared[i] = CommonLength(texts[order[i - 2]], texts[order[i - 1]]);
  }
  std::vector<PrefixMatch> matches(count);
  for (size_t text = count; text-- > 0;) {
    const size_t at = place[text], left = before[at], right = after[at];
    PrefixMatch& match = matches[text];
    match.length = std::max(shared[at], shared[right]);
    if (match.length > 0) {
      match.with = shared[at] == match.length ? order[left - 1] : 0;
      if (shared[right] == match.length) match.with = std::max(match.with, order[right - 1]);
    }
    shared[right] = std::min(shared[at], shared[right]);
    after[left] = right;
    before[right] = left;
  }
  return matches;
}

}  // namespace cachalot::sim
