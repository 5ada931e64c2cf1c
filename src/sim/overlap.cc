#include "sim/overlap.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>

#include "sim/trace_text.h"

namespace cachalot::sim {
namespace {

constexpr uint64_t kHashSeed = 0x9E3779B97F4A7C15;

uint64_t Chain(uint64_t hash, uint64_t next) {
  const uint64_t mixed = (hash ^ next) * 0xD6E8FEB86659FD93;
  return (mixed ^ mixed >> 32) + kHashSeed;
}

uint64_t Distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

Change ChangeOf(const RequestOverlap& request) {
  if (request.runs.empty()) return Change::kNew;
  const RepeatedRun& first = request.runs.front();
  const uint64_t differing = first.begin - request.match.length;
  const bool in_place = Distance(first.begin, first.place) <= kMostEdited;
  return differing > 0 && differing <= kMostEdited && in_place ? Change::kEdited : Change::kMoved;
}

// Numbers the places where requests stop being alike. Text that differs in a few tokens, such as a time of day, begins
// to differ in one of them, and shuffled text after some that happens to come in the same order: the cut of such a
// request is where others of that sort were cut before.
class KindNames {
 public:
  // To be called with matches that ascend.
  template <class T>
  void Name(std::span<const T> text, uint64_t unit_tokens, RequestOverlap* request) {
    const uint64_t match = request->match.length;
    const uint64_t reach = request->change == Change::kMoved ? match : kMostEdited;
    Kinds& known = known_[static_cast<size_t>(request->change)];
    uint64_t hash = kHashSeed;
    for (uint64_t at = 0; at * unit_tokens < match; ++at) {
      const uint64_t position = at * unit_tokens;
      if (position + reach >= match && Knows(known, hash, position, request)) return;
      hash = Chain(hash, text[at]);
    }
    if (Knows(kinds_, hash, match, request)) {
      if (request->change != Change::kNew) known.emplace(hash, request->kind);
      return;
    }
    request->cut = match;
    request->kind = count_++;
    kinds_.emplace(hash, request->kind);
    if (request->change != Change::kNew) known.emplace(hash, request->kind);
  }
  uint32_t count() const { return count_; }

 private:
  using Kinds = std::unordered_map<uint64_t, uint32_t>;  // by hash of what is before the cut
  static bool Knows(const Kinds& kinds, uint64_t hash, uint64_t position, RequestOverlap* request) {
    const auto known = kinds.find(hash);
    if (known == kinds.end()) return false;
    request->cut = position;
    request->kind = known->second;
    return true;
  }
  Kinds kinds_;
  std::array<Kinds, 3> known_;  // by change, where later cuts may fall
  uint32_t count_ = 0;
};

template <class T>
void NameKinds(std::span<const std::span<const T>> texts, uint64_t unit_tokens, Overlap* overlap) {
  std::vector<uint32_t> order(texts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](uint32_t i) {
    const RequestOverlap& request = overlap->requests[i];
    return std::pair(request.match.length, request.change == Change::kNew);
  });
  KindNames names;
  for (const uint32_t i : order) names.Name(texts[i], unit_tokens, &overlap->requests[i]);
  overlap->kinds = names.count();
}

void FindInText(const Trace& trace, Overlap* overlap) {
  overlap->text_known = !trace.chained;
  for (const TraceRequest& request : trace.requests) overlap->words.push_back(WordsOf(trace, request));
  std::vector<std::span<const uint32_t>> texts(overlap->words.begin(), overlap->words.end());
  const std::vector<PrefixMatch> matches = MatchPrefixes<uint32_t>(texts);
  RepeatedText earlier;
  for (size_t i = 0; i < texts.size(); ++i) {
    RequestOverlap& request = overlap->requests[i];
    const uint64_t prompt = std::min<uint64_t>(trace.requests[i].input_tokens, texts[i].size());
    request.match = {std::min(matches[i].length, prompt), matches[i].with};
    const uint64_t earlier_prompt = trace.requests[request.match.with].input_tokens;
    request.goes_on = request.match.length > 0 && request.match.length >= earlier_prompt;
    if (!overlap->text_known) continue;
    request.runs = earlier.Find(texts[i].first(prompt), request.match.length, i);
    request.change = ChangeOf(request);
    earlier.Add(texts[i], matches[i].length);
  }
  NameKinds<uint32_t>(texts, 1, overlap);
  for (size_t i = 0; i < texts.size(); ++i) {
    RequestOverlap& request = overlap->requests[i];
    if (request.change != Change::kMoved) continue;
    request.runs = earlier.Find(texts[i].first(trace.requests[i].input_tokens), request.cut, i);
  }
}

// Of blocks one cannot see whether what follows an earlier prompt's last full block follows that prompt. Where many go
// on from the same block, they share a beginning; where few do, it is a conversation.
constexpr uint32_t kMostBranches = 3;

void FindInBlocks(const Trace& trace, Overlap* overlap) {
  overlap->position_tokens = trace.block_tokens;
  std::vector<std::span<const uint64_t>> texts;
  for (const TraceRequest& request : trace.requests) texts.emplace_back(request.blocks);
  const std::vector<PrefixMatch> matches = MatchPrefixes<uint64_t>(texts);
  std::unordered_map<uint64_t, uint32_t> branches;  // requests that go on from this block
  for (size_t i = 0; i < texts.size(); ++i) {
    RequestOverlap& request = overlap->requests[i];
    const uint64_t blocks = matches[i].length;
    request.match = {std::min(blocks * trace.block_tokens, trace.requests[i].input_tokens), matches[i].with};
    if (blocks > 0) ++branches[texts[i][blocks - 1]];
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    const uint64_t blocks = matches[i].length;
    const uint64_t full = trace.requests[matches[i].with].input_tokens / trace.block_tokens;
    overlap->requests[i].goes_on = full > 0 && blocks >= full && branches[texts[i][blocks - 1]] <= kMostBranches;
  }
  NameKinds<uint64_t>(texts, trace.block_tokens, overlap);
}

}  // namespace

uint64_t RequestOverlap::lost_tokens() const {
  uint64_t tokens = 0;
  for (const RepeatedRun& run : runs) {
    const uint64_t end = run.begin + run.words;
    tokens += end - std::min(end, std::max(run.begin, match.length));
  }
  return tokens;
}

Overlap FindOverlap(const Trace& trace) {
  Overlap overlap;
  overlap.requests.resize(trace.requests.size());
  uint64_t tokens = 0;
  bool all_text = !trace.requests.empty();
  for (const TraceRequest& request : trace.requests) {
    tokens += request.input_tokens + request.output_tokens;
    all_text = all_text && (!request.text.empty() || request.input_tokens == 0);
  }
  if (all_text && tokens <= kMostWords) {
    FindInText(trace, &overlap);
  } else {
    FindInBlocks(trace, &overlap);
  }
  return overlap;
}

}  // namespace cachalot::sim
